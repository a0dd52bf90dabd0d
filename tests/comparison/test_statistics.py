"""Paired differences: the corrected t test against its formula, joint intervals, and no winner in noise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t as student
from scipy.stats import ttest_1samp
from sklearn.tree import ExtraTreeClassifier, ExtraTreeRegressor

from boostbp.comparison.folds import folds_of, ratio_of_rows
from boostbp.comparison.measures import measures_of
from boostbp.comparison.statistics import jointly, paired
from boostbp.comparison.verdict import Judgement, Scored

RNG = np.random.default_rng(0)


def test_without_overlap_it_is_the_plain_t_test():
    values = RNG.normal(0.3, 1.0, 12)
    ours, plain = paired(values, 0.0), ttest_1samp(values, 0.0)
    assert ours.p_value == pytest.approx(plain.pvalue)
    assert (ours.low, ours.high) == pytest.approx(tuple(plain.confidence_interval(0.95)))


def test_overlap_widens_the_standard_error_as_nadeau_and_bengio_say():
    values = RNG.normal(0.3, 1.0, 10)
    ours = paired(values, 0.25)
    error = np.sqrt((1 / 10 + 0.25) * values.var(ddof=1))
    assert ours.standard_error == pytest.approx(error)
    assert ours.chance == pytest.approx(student.cdf(values.mean() / error, 9))
    assert paired(-values, 0.25).chance == pytest.approx(1 - ours.chance)


def test_copies_of_a_model_are_level_and_the_same_gain_in_all_folds_proves_nothing():
    level, ahead = paired(np.zeros(10), 0.25), paired(np.full(10, 0.1), 0.25)
    assert (level.chance, level.p_value, level.low, level.high) == (0.5, 1.0, 0.0, 0.0)
    assert not level.is_better
    assert not level.is_worse
    assert (ahead.mean, ahead.chance, ahead.p_value) == (pytest.approx(0.1), 0.5, 1.0)
    assert not ahead.is_better


def test_intervals_hold_together():
    gains, covered = np.array([0.0, 0.5, 2.0, -2.0]), 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        plain = {str(k): paired(rng.normal(gain, 1.0, 10), 0.0) for k, gain in enumerate(gains)}
        corrected = jointly(plain)
        assert list(corrected) == list(plain)
        covered += all(d.low <= gain <= d.high for d, gain in zip(corrected.values(), gains, strict=True))
    assert covered >= 0.93 * 400  # at least .95, less two standard errors


def noise(kind, rng, n=200):
    """Features, a target that knows nothing of them, and a small tree."""
    X = rng.standard_normal((n, 4))
    if kind in ("normal", "heavy tails"):
        return X, rng.standard_normal(n) if kind == "normal" else rng.standard_t(2, n), ExtraTreeRegressor
    shares = {"two classes": [0.5, 0.5], "rare class": [0.93, 0.07], "three classes": [0.4, 0.3, 0.3]}[kind]
    return X, rng.choice(len(shares), n, p=shares), ExtraTreeClassifier


def scores(X, y, folds, measure, tree, seed):
    """The scores of a small tree over folds; another seed is another copy of the same model."""
    values = []
    for number, (train, test) in enumerate(folds):
        model = tree(min_samples_leaf=10, random_state=seed + number).fit(X[train], y[train])
        if tree is ExtraTreeClassifier:
            predicted = np.maximum(model.predict_proba(X[test]), 0.01)
        else:
            predicted = model.predict(X[test])
        values.append(measure.function(y[test], predicted, None))
    return Scored(np.array(values), 1.0)


@pytest.mark.slow
def test_noise_and_copies_of_a_model_have_no_winner():
    named = 0
    for run in range(100):
        kind = ("normal", "heavy tails", "two classes", "rare class", "three classes")[run % 5]
        X, y, tree = noise(kind, np.random.default_rng(run))
        is_classes = tree is ExtraTreeClassifier
        folds = folds_of(len(y), 5, 2, strata=y if is_classes else None, seed=run)
        measures = measures_of("classification" if is_classes else "regression", y, np.unique(y))
        measure = next(iter(measures.values()))
        copies = {name: scores(X, y, folds, measure, tree, 1000 * run + 100 * k) for k, name in enumerate("ab")}
        judged = Judgement.of(measure, "a", copies, ratio_of_rows(folds))
        named += any(d.is_better or d.is_worse for d in judged.differences.values())
    assert named <= 5, f"{named} of 100 runs name a winner"


@pytest.mark.slow
def test_a_real_difference_is_found():
    found = 0
    for run in range(20):
        rng = np.random.default_rng(run)
        X = rng.standard_normal((300, 4))
        y = X[:, 0] + 0.5 * rng.standard_normal(300)
        folds = folds_of(300, 5, 2, seed=run)
        models = {}
        for leaf in (5, 120):
            trees = [ExtraTreeRegressor(min_samples_leaf=leaf, random_state=run).fit(X[a], y[a]) for a, _ in folds]
            errors = [np.sqrt(np.mean((t.predict(X[b]) - y[b]) ** 2)) for t, (_, b) in zip(trees, folds, strict=True)]
            models[str(leaf)] = Scored(np.array(errors), 1.0)
        measure = measures_of("regression", y, np.array([]))["rmse"]
        found += Judgement.of(measure, "120", models, ratio_of_rows(folds)).best == "5"
    assert found >= 18, found
