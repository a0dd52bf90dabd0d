"""The verdict: which model is named, in which words."""

from __future__ import annotations

import numpy as np
import pytest

from boostbp.comparison.measures import measures_of
from boostbp.comparison.verdict import Judgement, Scored, digits, percent

RMSE = measures_of("regression", np.zeros(2), np.array([]))["rmse"]
AUC = measures_of("classification", np.array([0, 1]), np.array(["a", "b"]))["auc"]
JITTER = 0.001 * np.array([1, -1, 2, -2, 0, 1, -1, 3, -3, 0])
BASE = 1.0 + 0.1 * np.arange(10)


def judged(measure=RMSE, **models):
    return Judgement.of(measure, "LightGBM", {"LightGBM": Scored(BASE, 2.0), **models}, 0.25)


def test_the_best_is_named_with_its_gain_and_cost():
    better = judged(ours=Scored(0.9 * BASE + JITTER, 6.0))
    (sentence,) = better.sentences
    assert sentence.startswith("ours has 10 % less RMSE than LightGBM (")
    assert sentence.endswith("), for 3 times the seconds.")
    assert better.best == "ours"


def test_what_is_not_better_beyond_chance_is_not_named():
    close = judged(ours=Scored(BASE * np.exp(0.1 * np.array([1, -1, 1, -1, 1, -1, 1, -1, 1, -2])), 6.0))
    assert close.best is None
    first, second = close.sentences
    assert first == "Keep LightGBM: no model is better beyond chance."
    assert second.startswith("Nearest to it: ours has ")
    assert "the chance that it is better is" in second


def test_a_worse_model_is_told_as_more():
    first, second = judged(ours=Scored(1.2 * BASE + JITTER, 6.0)).sentences
    assert first.startswith("Keep LightGBM")
    assert "20 % more RMSE than LightGBM (" in second
    assert "less than 1 %" in second


def test_a_cheaper_model_that_is_level_with_the_best_is_told():
    cheap, dear = Scored(0.9 * BASE + JITTER, 3.0), Scored(0.8999 * BASE - 2 * JITTER, 12.0)
    sentences = judged(cheap=cheap, dear=dear).sentences
    assert sentences[0].startswith("dear has 10 %")
    assert sentences[1] == "cheap is not worse than it beyond chance, in 25 % of the seconds."
    assert judged(cheap=Scored(0.95 * BASE + JITTER, 3.0), dear=dear).cheaper is None  # worse than the best
    assert judged(cheap=Scored(cheap.scores, 12.0), dear=dear).cheaper is None  # no cheaper


def test_scores_are_told_as_differences():
    base, better = 0.9 + JITTER, 0.92 - JITTER
    models = {"LightGBM": Scored(base, 2.0), "ours": Scored(better, 1.0)}
    (sentence,) = Judgement.of(AUC, "LightGBM", models, 0.25).sentences
    assert sentence.startswith("ours has AUC 0.9200, 0.0200 above LightGBM (")
    assert sentence.endswith(", in 50 % of the seconds.")


def test_errors_of_zero_have_differences_and_no_ratio():
    zero = judged(ours=Scored(np.zeros(10), 2.0))
    assert not zero.is_ratio
    assert zero.differences["ours"].mean == pytest.approx(BASE.mean())


def test_folds_of_larger_errors_count_no_more():
    scale = np.array([1, 10, 100, 1, 10, 100, 1, 10, 100, 1000.0])
    models = {"LightGBM": Scored(scale, 1.0), "ours": Scored(0.9 * scale, 1.0)}
    assert Judgement.of(RMSE, "LightGBM", models, 0.25).differences["ours"].mean == pytest.approx(-np.log(0.9))


@pytest.mark.parametrize("models", [{}, {"ours": Scored(BASE[:1], 1.0)}])
def test_one_fold_or_one_model_gives_no_verdict(models):
    base = Scored(BASE[:1], 1.0) if models else Scored(BASE, 1.0)
    (sentence,) = Judgement.of(RMSE, "LightGBM", {"LightGBM": base, **models}, 0.25).sentences
    assert sentence == "No verdict: it needs two folds of LightGBM and of another model."


def test_numbers_are_short():
    assert [digits(value) for value in (0.04, 2.96, 3.0, 9.96, 340.2, -0.01)] == ["0", "3", "3", "10", "340", "0"]
    assert [percent(share) for share in (0.004, 0.5, 0.996, 1.0, 0.0)] == [
        *("less than 1 %", "50 %", "more than 99 %", "100 %", "0 %")
    ]
