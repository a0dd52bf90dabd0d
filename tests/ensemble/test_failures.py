"""A candidate that fails for numerical reasons is left out, and the model says so."""

from __future__ import annotations

import numpy as np
import pytest
from flat_parameters import parameters
from lightgbm.basic import LightGBMError
from problems import problem_of
from sklearn.datasets import make_friedman1

from boostbp import BoostBPRegressor, backends, load, save
from boostbp.backends.failures import is_numerical
from boostbp.ensemble import ensemble, refits
from boostbp.ensemble.candidate import LayerTraining, NetworkTraining
from boostbp.ensemble.ensemble import train_model
from boostbp.ensemble.plan import Plan, Way
from boostbp.losses import SquaredError
from boostbp.network import stored
from boostbp.runtime import plain

X, Y = make_friedman1(300, n_features=5, random_state=0)
FAST = {"n_estimators": 5, "epochs": 2, "random_state": 0}
UNSOLVED = np.linalg.LinAlgError("Eigenvalues did not converge")
ERRORS = [UNSOLVED, FloatingPointError("overflow"), LightGBMError("Check failed: best_split_info.left_count > 0")]


def regressor(sizes=(3,), **changes):
    return BoostBPRegressor(sizes, **parameters(**FAST | changes))


def names_of(model):
    return [one.name for one in model.history_.choice.candidates]


@pytest.fixture
def fail(fails):
    """Let candidates of some names fail, from so many pieces or epochs on."""

    def fail(error, *names, pieces=0):
        def chosen(training, *args):
            return (not names or training.name in names) and training.n_pieces >= pieces

        fails(LayerTraining, "advance", error, chosen)
        fails(NetworkTraining, "advance", error, lambda one, *args: not names or one.name in names)

    return fail


def test_a_column_over_600_orders_of_magnitude_trains_the_default_model():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(300, 3))
    A[:, 0] = np.exp(rng.uniform(-700, 700, 300))
    model = BoostBPRegressor(random_state=0).fit(A, np.log(A[:, 0]) / 300 + A[:, 1] * A[:, 2])
    assert model.history_.choice.failed == (
        "directions of the single layer (FloatingPointError: slopes along the columns [0] are beyond float64)",
    )
    assert "directions of the single layer" not in names_of(model)
    words = f"Failed, and left out after that: {model.history_.choice.failed[0]}."
    assert words in model.history_.summary()
    assert model.score(A, np.log(A[:, 0]) / 300 + A[:, 1] * A[:, 2]) > 0.9


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.usefixtures("everything")
def test_candidates_of_each_kind_that_fail_are_left_out(error, fail):
    left_out = ["single layer", "single layer, sampled", "directions of the single layer", "additive network"]
    left_out += ["network", "linear network, final output layer"]
    fail(error, *left_out)
    model = regressor().fit(X, Y)
    needed = {"directions of the single layer", "network, final output layer", "additive network, final output layer"}
    assert not {*left_out, *needed} & set(names_of(model))
    assert {"single layer, constant leaves", "single layer, deep trees", "linear network"} <= set(names_of(model))
    failed = {text.partition(" (")[0] for text in model.history_.choice.failed}
    assert failed == set(left_out) - {"directions of the single layer"}  # which could not begin
    assert all(text.endswith(f"({type(error).__name__}: {error})") for text in model.history_.choice.failed)


@pytest.mark.parametrize("n_jobs", [1, 4])
@pytest.mark.usefixtures("everything")
def test_failures_come_in_the_order_of_the_candidates(n_jobs, fail):
    fail(UNSOLVED, "single layer, deep trees", "single layer, sampled", "single layer, constant leaves")
    model = regressor(deep=False, n_jobs=n_jobs).fit(X, Y)
    failed = [text.partition(" (")[0] for text in model.history_.choice.failed]
    assert failed == ["single layer, constant leaves", "single layer, deep trees", "single layer, sampled"]


@pytest.mark.parametrize("quality", [1, 3])
def test_a_layer_that_fails_later_keeps_the_pieces_that_it_had(quality, fail, tune):
    tune(MAX_PIECES=6)
    fail(UNSOLVED, pieces=3)
    model = regressor(quality=quality, deep=False).fit(X, Y)
    assert "single layer" in names_of(model)
    assert model.score(X, Y) > 0.5


@pytest.mark.parametrize("how", [{"quality": 1}, {"deep": False}, {"deep": "auto"}, {"deep": True}], ids=str)
def test_if_all_fail_the_first_error_is_raised_and_names_them(how, fail):
    fail(UNSOLVED)
    with pytest.raises(np.linalg.LinAlgError, match="Eigenvalues did not converge") as caught:
        regressor(**how).fit(X, Y)
    if how.get("deep") is not True:
        assert caught.value.__notes__[0].startswith(
            "Nothing could be trained: single layer, constant leaves (LinAlgError: "
        )


@pytest.mark.parametrize("quality", [1, 3])
def test_of_many_rows_others_stand_in_for_the_first_layer(quality, fail, tune):
    tune(MANY_ROWS=200, MANY_ROWS_SAMPLE=150, MIN_STRUCTURE_ROWS=150)
    fail(UNSOLVED, "single layer")
    model = regressor(deep=False, quality=quality).fit(X, Y)
    assert "single layer, constant leaves" in names_of(model)
    assert [text.partition(" (")[0] for text in model.history_.choice.failed] == ["single layer"]
    fail(UNSOLVED, "single layer", "single layer, constant leaves")
    if quality == 1:
        with pytest.raises(np.linalg.LinAlgError):
            regressor(quality=1, deep=False).fit(X, Y)


@pytest.mark.parametrize("error", [TypeError("a fault"), MemoryError(), ValueError("a value"), ZeroDivisionError()])
def test_other_errors_are_raised(error, fail):
    fail(error, "single layer, constant leaves")
    with pytest.raises(type(error)):
        regressor(deep=False).fit(X, Y)


def test_an_interrupt_is_one(fail):
    fail(KeyboardInterrupt(), "single layer")
    with pytest.raises(KeyboardInterrupt):
        regressor(deep=False).fit(X, Y)


class BreakingLoss(SquaredError):  # noqa: N818
    """A loss that breaks after some calls, with an error that candidates may have, too."""

    calls = 0

    def gradient(self, h, y):
        BreakingLoss.calls += 1
        if BreakingLoss.calls == 40:
            raise FloatingPointError("of the loss")
        return super().gradient(h, y)


class BrokenBackend:
    """A backend that cannot solve anything."""

    capabilities = backends.load_backend("lightgbm").capabilities

    def bind(self, table, growth):
        raise np.linalg.LinAlgError("of the backend")


def test_errors_of_the_users_code_are_raised():
    BreakingLoss.calls = 0
    with pytest.raises(FloatingPointError, match="of the loss"):
        regressor(loss=BreakingLoss(), deep=False).fit(X, Y)
    with pytest.raises(np.linalg.LinAlgError, match="of the backend") as caught:
        regressor(backend=BrokenBackend(), deep=False).fit(X, Y)
    assert not is_numerical(caught.value)

    def callback(progress):
        raise FloatingPointError("of the callback")

    with pytest.raises(FloatingPointError, match="of the callback"):
        regressor().fit(X, Y, callbacks=[callback])


def test_a_refit_that_fails_leaves_the_layer_as_it_was(fails):
    fails(refits, "boost_again", UNSOLVED, lambda problem, plan: len(plan.pieces) > 0)
    model = regressor(quality=1, deep=False).fit(X, Y)
    assert model.history_.choice.failed == (f"single layer, all rows (LinAlgError: {UNSOLVED})",)
    assert not model.history_.refitted


def test_a_member_that_fails_is_left_out_of_the_mean(fails):
    problems = [problem_of(seed=seed) for seed in (0, 0)]
    fails(ensemble, "_member_of", UNSOLVED, lambda driver, *rest: driver.problem.settings.seed > 0)
    plan = Plan.of(problems[0], Way.LAYERS, quality=max(ensemble_qualities()))
    _, history = train_model(problems[0], plan, [lambda: problems[1]])
    assert history.choice.members == 1
    assert history.choice.failed == (f"member 2 (LinAlgError: {UNSOLVED})",)


def ensemble_qualities():
    from boostbp.ensemble.budget import LEVELS

    return [quality for quality, level in LEVELS.items() if level.effort(networks=False).members > 1]


def test_files_keep_what_failed(fail, tmp_path):
    fail(UNSOLVED, "single layer, constant leaves")
    model = regressor(deep=False).fit(X, Y)
    save(model, tmp_path / "model")
    assert load(tmp_path / "model").history_.choice.failed == model.history_.choice.failed != ()
    facts = plain.encode(model.history_, records=True)
    facts["choice"]["failed"] = [1, 2]
    with pytest.raises(ValueError, match="is not"):
        stored.history_from(facts)
