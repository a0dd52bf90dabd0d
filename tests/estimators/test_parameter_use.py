"""Every parameter in every way of training: it changes the model, or the fit warns of it or refuses it by name."""

from __future__ import annotations

import re
import warnings
from dataclasses import fields
from functools import cache
from inspect import signature
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_friedman1
from sklearn.model_selection import GridSearchCV

from boostbp import BoostBPAutoencoder, BoostBPClassifier, BoostBPRegressor, LayerSpec, callbacks, search
from boostbp.ensemble import constants
from boostbp.ensemble.budget import LEVELS
from boostbp.ensemble.plan import Way
from boostbp.estimators.nested_parameters import SPECS
from boostbp.estimators.parameter_use import (
    IF_NETWORK,
    IS_REFUSED,
    SCORES_AND_EPOCH,
    SCORES_ONLY,
    UNUSED,
    USED,
    USES,
    use_of,
)
from boostbp.estimators.request import Request
from boostbp.losses import Quantile
from boostbp.network.layers.layer import rounds_of
from boostbp.network.settings import BackpropSpec
from boostbp.network.steps import Normalised

X, Y = make_friedman1(240, n_features=11, noise=0.5, random_state=0)
WIDER = np.vstack([X, 1.5 * X - 0.25])  # beyond what leaves saw, where clipping tells
GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "parameters.md"
WAYS = {
    Way.ONE_LAYER: {"quality": 1},
    Way.AVERAGE: {},
    Way.NETWORK: {"deep": True, "hidden_layer_sizes": (4,)},
    Way.LAYERS: {"deep": False},
    Way.FIXED_LAYER: {"hidden_layer_sizes": ()},
}
# Of each parameter, a value other than its default.
OF_LAYERS = {
    "n_estimators": 3,
    "learning_rate": 0.35,
    "max_depth": 1,
    "max_leaves": 3,
    "min_samples_leaf": 60,
    "max_bins": 4,
    "subsample": 0.4,
    "colsample_bytree": 0.3,
    "extra_trees": False,
    "multi_strategy": "multi_output_tree",
    "leaves": "native",
    "basis": "linear",
    "reg_lambda": 200.0,
    "penalize_constant": False,
    "standardize": False,
    "clip": False,
    "base": "zero",
    "base_lambda": 50.0,
    "monotone_constraints": [1] + [0] * 10,
    "backend_params": {"lambda_l2": 80.0},
}
OF_BACKPROP = {
    "start": "noise",
    "step": "plain",
    "step_size": 0.1,
    "momentum": 0.1,
    "refit_order": "downward",
    "output_target": "moved",
    "skip": True,
    "structure_epochs": 1,
    "structure_samples": 0.5,
    "n_iter_no_change": 1,
}
VALUES = {
    "hidden_layer_sizes": (5,),
    "loss": "absolute_error",
    "backend": "sklearn",
    **{name: OF_LAYERS[name] for name in ("n_estimators", "learning_rate", "max_depth", "min_samples_leaf")},
    **{name: OF_LAYERS[name] for name in ("colsample_bytree", "backend_params")},
    "epochs": 2,
    "early_stopping": False,
    "validation": 0.3,
    "eval_metric": "rmsle",
    "random_state": 1,
    **{f"{spec}__{name}": value for spec in ("hidden", "output") for name, value in OF_LAYERS.items()},
    **{f"backprop__{name}": value for name, value in OF_BACKPROP.items()},
}
# Those that do not say how the model is trained, or not by one value: each has a test of its own, here or elsewhere.
OTHERS = {
    *("quality", "deep", "alpha", "calibration", "max_time", "categorical_features", "n_jobs", "verbose"),
    *("hidden", "output", "backprop"),
}


@pytest.fixture(autouse=True)
def short(tune):
    """Few rounds; all that a warning says is looked at."""
    tune(MAX_PIECES=3)
    warnings.filterwarnings("always", "No effect", UserWarning)


def model_of(way, **changes):
    how = {"random_state": 0, "epochs": 6 if way is Way.NETWORK else 4, **WAYS[way]}
    return BoostBPRegressor(**how).set_params(**changes)


def fitted(model, X=X, Y=Y, **of_fit):
    """The model, and the names of parameters that a warning says have no effect."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, Y, **of_fit)
    told = [re.match("No effect on the model: (.*?), as ", str(one.message)) for one in caught]
    return model, {name for match in told if match for name in re.findall(r"(\w+)=", match[1])}


@cache
def plain(way):
    return fitted(model_of(way))[0]


def test_every_parameter_stands_in_the_table_and_has_a_value_here():
    known = set(VALUES) | OTHERS
    for kind in (BoostBPRegressor, BoostBPClassifier, BoostBPAutoencoder):
        for name in kind().get_params():
            assert use_of(name, Way.AVERAGE)
            assert name in known | {"class_weight"}
    for kind, values in ((LayerSpec, OF_LAYERS), (BackpropSpec, OF_BACKPROP)):
        assert [field.name for field in fields(kind)] == list(values)


def test_the_ways_are_told_apart():
    assert {way: Request.of(model_of(way)).way for way in WAYS} == {way: way for way in WAYS}
    assert Request.of(BoostBPAutoencoder()).way is Way.NETWORK
    for quality, level in LEVELS.items():
        assert Request.of(BoostBPRegressor(quality=quality)).way is (Way.AVERAGE if level.networks else Way.ONE_LAYER)


@pytest.mark.parametrize(
    "way", [pytest.param(way, marks=() if way is Way.FIXED_LAYER else pytest.mark.slow, id=way.name) for way in WAYS]
)
def test_each_value_changes_the_model_or_is_warned_of_or_refused(way):
    wrong = []
    for name, value in VALUES.items():
        use = use_of(name, way)
        if name == "hidden_layer_sizes" and way is Way.FIXED_LAYER:
            continue
        model = model_of(way, **{name: value})
        if use == IS_REFUSED:
            with pytest.raises(ValueError, match=name.partition("__")[2]):
                model.fit(X, Y)
            continue
        model, unused = fitted(model)
        differs = not np.allclose(model.predict(WIDER), plain(way).predict(WIDER), rtol=1e-9)  # beyond rounding
        if use in (SCORES_ONLY, SCORES_AND_EPOCH):
            has_network = use == SCORES_AND_EPOCH and model.history_.network is not None
            right = (has_network or not differs) and list(model.best_score_["held_out"]) == [value]
        elif use == UNUSED:
            right = name in unused and not differs
        else:
            right = differs != (name in unused) if use == IF_NETWORK else differs and name not in unused
        if not right:
            wrong.append(f"{name}={value!r} is {use!r}: the model differs: {differs}, warned of: {name in unused}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("quality", [1, 3])
def test_a_grid_of_rounds_and_shrinkage_has_as_many_scores_as_points(quality):
    grid = {"n_estimators": [2, 4, 8], "learning_rate": [0.03, 0.1, 0.3]}
    found = GridSearchCV(BoostBPRegressor(quality=quality, random_state=0), grid, cv=2).fit(X, Y)
    assert len(set(found.cv_results_["mean_test_score"])) == 9


@pytest.mark.parametrize("kind", [BoostBPRegressor, BoostBPClassifier])
def test_trees_of_all_layers_keep_to_the_sizes_that_are_given(kind):
    """An outside look: at the trees themselves, rows counted by routing."""
    how = {"max_depth": 3, "min_samples_leaf": 20, "output": {"max_leaves": 5, "subsample": 1.0}, "n_estimators": 7}
    y = Y if kind is BoostBPRegressor else (Y > 14).astype(int)
    split = {"eval_set": [(X[200:], y[200:])]}
    model = kind(deep=False, random_state=0, **how).fit(X[:200], y[:200], **split)
    parts = [one for one in model.history_.choice.candidates if one.weight and one.name != "constant"]
    assert rounds_of(model.network_.layers[-1].forest) <= (7 + 1) * len(parts)  # and the base
    assert model.trees_to_dataframe()["path"].map(len).max() == 3
    for leaf_of in model.apply(X[:200]).T:
        counts = np.unique(leaf_of, return_counts=True)[1]
        assert len(counts) <= 5
        if kind is BoostBPRegressor:  # of classes LightGBM estimates the rows of a leaf by its hessian
            assert counts.min() >= 20


@pytest.mark.parametrize("how", [{"quality": 1}, {"deep": False}, {"hidden_layer_sizes": ()}], ids=str)
def test_shrinkage_is_the_share_of_its_target_that_one_round_learns(how):
    """In closed form: without a base, the output of one round is in proportion to its learning rate."""
    layer = {"base": "zero", "extra_trees": False, "subsample": 1.0, "basis": "linear", "min_samples_leaf": 20}
    how = {"n_estimators": 1, "colsample_bytree": 1.0, "max_depth": 3, "random_state": 0, **how}
    of_rate = {}
    for rate in (0.1, 0.2, 0.4):
        model = BoostBPRegressor(learning_rate=rate, output={**layer, "reg_lambda": 2.0}, **how).fit(X, Y)
        of_rate[rate] = model.predict(X) - (
            model.network_.baseline[0] * model.model_.targets.scale[0] + model.model_.targets.shift[0]
        )
    assert np.ptp(of_rate[0.1]) > 0
    for rate in (0.2, 0.4):
        np.testing.assert_allclose(of_rate[rate], of_rate[0.1] * rate / 0.1, rtol=1e-3, atol=1e-5)


def test_a_number_is_honoured_also_where_it_equals_a_default():
    chosen = BoostBPRegressor(quality=1, random_state=0).fit(X, Y)
    few = BoostBPRegressor(quality=1, random_state=0, n_estimators=constants.PIECE_ROUNDS).fit(X, Y)
    n_few, n_chosen = (rounds_of(model.network_.layers[-1].forest) for model in (few, chosen))
    assert n_few == constants.PIECE_ROUNDS < n_chosen
    all_of_it = constants.MAX_PIECES * constants.PIECE_ROUNDS
    same = BoostBPRegressor(quality=1, random_state=0, n_estimators=all_of_it, learning_rate=0.1).fit(X, Y)
    np.testing.assert_array_equal(same.predict(X), chosen.predict(X))


def test_rounds_need_not_come_in_whole_pieces():
    for rounds in (1, constants.PIECE_ROUNDS - 1, constants.PIECE_ROUNDS + 7):
        model = BoostBPRegressor(quality=1, random_state=0, n_estimators=rounds, learning_rate=0.01).fit(X, Y)
        assert rounds_of(model.network_.layers[-1].forest) == rounds


def test_leaves_alone_bound_a_tree_whose_depth_is_not_given():
    for kind, most in (({"max_leaves": 40}, 40), ({"max_leaves": 40, "max_depth": 2}, 4)):
        model = BoostBPRegressor((), random_state=0, n_estimators=5, output=kind, min_samples_leaf=2).fit(X, Y)
        leaves = [len(np.unique(of_tree)) for of_tree in model.apply(X).T]
        assert (max(leaves) > 16) == (most > 16)
        assert max(leaves) <= most


@pytest.mark.parametrize(
    ("kind", "quality", "rows", "stopping"),
    [
        (kind, quality, *((35, "auto") if (place + quality) % 2 else (240, False)))
        for place, kind in enumerate([BoostBPRegressor, BoostBPClassifier])
        for quality in LEVELS
    ],
)
def test_without_held_out_rows_each_quality_is_one_layer_of_a_fixed_number_of_rounds(kind, quality, rows, stopping):
    y = Y[:rows] if kind is BoostBPRegressor else (Y[:rows] > 14).astype(int)
    how = {"early_stopping": stopping, "random_state": 0}
    for rounds, expected in ((None, 100), (7, 7)):
        model, _ = fitted(kind(quality=quality, n_estimators=rounds, **how), X[:rows], y)
        assert model.n_iter_ == 0
        assert rounds_of(model.network_.layers[-1].forest) == expected
        alone = kind((), n_estimators=rounds, **how).fit(X[:rows], y)
        np.testing.assert_array_equal(model.predict(X), alone.predict(X))


def test_callbacks_have_the_network_trained_without_held_out_rows_too():
    seen = []
    model, unused = fitted(BoostBPRegressor((3,), epochs=2, early_stopping=False), callbacks=[seen.append])
    assert len(seen) == 3
    assert len(model.network_.layers) == 2
    assert not unused


class FewParameters(BoostBPRegressor):
    """An estimator of a user's own, which fixes most parameters."""

    def __init__(self, n_estimators=7, quality=1):
        super().__init__(n_estimators=n_estimators, quality=quality, hidden={"max_depth": 2}, random_state=0)


def test_derived_estimators_need_not_have_all_parameters():
    model, unused = fitted(FewParameters())
    same = BoostBPRegressor(n_estimators=7, quality=1, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), same.predict(X))
    assert unused == {"hidden__max_depth"}


def test_defaults_of_other_numeric_types_are_defaults():
    epochs = np.int64(BoostBPRegressor().epochs)
    assert fitted(BoostBPRegressor(quality=1, epochs=epochs))[1] == set()


@pytest.mark.parametrize(
    ("how", "of_fit", "unused"),
    [
        ({"alpha": 0.9}, {}, {"alpha"}),
        ({"alpha": 0.9, "loss": "quantile"}, {}, set()),
        ({"alpha": 0.9, "loss": Quantile(0.5)}, {}, {"alpha"}),
        ({"quality": 2, "deep": True, "epochs": 2}, {}, {"quality"}),
        ({"quality": 5, "deep": True, "epochs": 2}, {}, set()),
        ({"quality": 5, "hidden_layer_sizes": ()}, {}, {"quality"}),
        ({"quality": 5, "early_stopping": False}, {}, {"quality"}),
        ({"quality": 1, "early_stopping": False}, {}, set()),  # which asks for a single layer, too
        ({"validation": 0.2}, {"eval_set": (X, Y)}, {"validation"}),
        ({"validation": 0.2, "early_stopping": False}, {}, {"validation"}),
        ({"eval_metric": "mape", "early_stopping": False}, {}, {"eval_metric"}),
        ({"early_stopping": False}, {"eval_set": (X, Y)}, {"early_stopping"}),
        ({"deep": False}, {"callbacks": [print]}, {"callbacks"}),
        ({"deep": False}, {"callbacks": [callbacks.stop_on_interrupt()]}, set()),
        ({"output": {"leaves": "native", "reg_lambda": 3.0}, "quality": 1}, {}, {"output__reg_lambda"}),
        (
            {"deep": True, "epochs": 1, "backprop": {"step": Normalised(0.3, 0.5), "momentum": 0.1}},
            {},
            {"backprop__momentum"},
        ),
        (
            {"deep": True, "epochs": 1, "early_stopping": False, "backprop": {"n_iter_no_change": 3}},
            {},
            {"backprop__n_iter_no_change"},
        ),
        ({"output": {"monotone_constraints": [1] + [0] * 10}, "hidden": {"max_depth": 2}}, {}, {"hidden__max_depth"}),
    ],
    ids=str,
)
def test_what_another_parameter_or_the_rows_leave_without_effect_is_warned_of(how, of_fit, unused):
    assert fitted(BoostBPRegressor(random_state=0, **how), **of_fit)[1] == unused


def test_a_warning_names_the_line_of_the_fit_and_the_cure():
    with pytest.warns(
        UserWarning, match=r"No effect .*: epochs=5, .*hidden__max_depth=2, as quality=1 .*deep=True"
    ) as told:
        BoostBPRegressor(quality=1, epochs=5, hidden={"max_depth": 2}, random_state=0).fit(X, Y)
    assert Path(told[0].filename) == Path(__file__)


@pytest.mark.parametrize("rows", [30, 240])
@pytest.mark.parametrize("how", WAYS.values(), ids=str)
def test_defaults_are_never_warned_of(how, rows):
    short = {"epochs": 2} if how.get("deep") else {}
    y = (Y[:rows] > 14).astype(int)
    for model, target in ((BoostBPRegressor(), Y[:rows]), (BoostBPClassifier(), y)):
        told = fitted(model.set_params(**how, **short), X[:rows], target)[1]
        assert not told


def test_networks_that_the_held_out_rows_left_out_are_told_of():
    steps = (X[:, :1] > 0.5).astype(float)
    model, unused = fitted(BoostBPRegressor((8,), hidden={"max_depth": 2}, epochs=9, random_state=0), X, steps[:, 0])
    assert not model.history_.weight("network")
    assert {"hidden_layer_sizes", "hidden__max_depth", "epochs"} <= unused


def test_spaces_vary_what_is_used():
    for name in search.SPACES["single"]:
        assert {use_of(name, way) for way in WAYS if way is not Way.NETWORK} == {USED}
    for name in search.SPACES["deep"]:
        assert use_of(name, Way.NETWORK) == USED
    assert search.SPACES["deep"]["deep"].options == (True,)


def test_the_table_of_the_guide_is_that_of_the_code():
    assert table() in GUIDE.read_text(encoding="utf-8")


def table():
    groups: dict[tuple[str, ...], list[str]] = {}
    for name, uses in USES.items():
        spec, _, field = name.partition("__")
        groups.setdefault(uses, []).append(f"`{field}` of `{spec}`" if field else f"`{name}`")
    rows = [("parameter", *(way.value for way in WAYS)), ("---",) * 6]
    rows += [(", ".join(names), *uses) for uses, names in groups.items()]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def test_fields_of_specs_need_no_row_of_their_own():
    for name in USES:
        spec, is_field, field = name.partition("__")
        assert not is_field or field in {one.name for one in fields(SPECS[spec])}
        assert is_field or name in {*signature(BoostBPRegressor).parameters, "class_weight", "callbacks"}


def test_a_warning_after_a_fit_leaves_the_model_where_warnings_are_errors():
    model = model_of(Way.AVERAGE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match=r"^No effect on the model: epochs=4, as no network has weight"):
            model.fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), plain(Way.AVERAGE).predict(X))
