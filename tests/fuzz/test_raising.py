"""An error of a user's function arrives as itself: some cases here, any number by ``python -m tests.fuzz.raising``."""

from __future__ import annotations

import numpy as np
import pytest

from boostbp import BoostBPRegressor
from boostbp.losses import load_loss
from tests.fuzz.raising import ERRORS, Calls, Case, Counted, X, Y, outcome_of


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("quality", [1, 2, 3])
def test_a_stop_iteration_in_the_40th_gradient_ends_the_fit(quality, n_jobs):
    error = StopIteration("no more numbers")
    loss = Counted(load_loss("squared_error", n_outputs=2), Calls(error, 40), "gradient")
    model = BoostBPRegressor((2,), loss=loss, quality=quality, n_jobs=n_jobs, n_estimators=20, epochs=2)
    with pytest.raises(StopIteration) as caught:
        model.fit(X, Y)
    assert caught.value is error
    assert not hasattr(model, "model_")


def test_an_error_of_a_loss_that_refuses_an_evaluation_set_arrives_with_a_note():
    error = ValueError("mine")
    loss = Counted(load_loss("squared_error", n_outputs=2), Calls(error, 2), "check")
    with pytest.raises(ValueError, match="mine") as caught:
        BoostBPRegressor((2,), loss=loss, deep=False, n_estimators=3).fit(X, Y, eval_set=[(X, Y)])
    assert caught.value is error
    assert error.__notes__ == ["eval_set[0] was being read."]


def test_staged_predictions_do_not_end_early_at_a_stop_iteration():
    calls = Calls()
    loss = Counted(load_loss("squared_error", n_outputs=2), calls, "link")
    model = BoostBPRegressor(deep=False, early_stopping=False, n_estimators=5, loss=loss).fit(X, Y)
    stages = model.staged_predict(X)
    next(stages)
    calls.error, calls.at = StopIteration(), calls.count + 1
    with pytest.raises(RuntimeError, match="StopIteration"):
        next(stages)


@pytest.mark.parametrize("place", ["loss", "metric", "backend", "basis", "callback", "step"])
def test_a_stop_iteration_in_any_call_arrives(place):
    for share in np.linspace(0, 1, 7):
        case = Case("StopIteration", (place,), share, deep=True, outputs=2)
        assert outcome_of(case) == "arrived", case


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_an_error_of_any_kind_in_any_call_arrives(seed):
    for number in range(40):
        assert outcome_of(Case.drawn(np.random.default_rng([1000 + seed, number]))) in ("arrived", "no such call")


def test_cases_draw_each_error():
    drawn = {Case.drawn(np.random.default_rng(seed)).error for seed in range(1000)}
    assert drawn == ERRORS.keys()
