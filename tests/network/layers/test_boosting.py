"""Rounds that the core boosts itself, with trees of a library or known ones: those of single rounds, to the bit."""

from __future__ import annotations

import ctypes
import gc
import signal
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from lightgbm.basic import _LIB, LightGBMError
from user_losses import LogCosh

from boostbp import core
from boostbp.backends import _lightgbm_calls, load_backend
from boostbp.backends._lightgbm_calls import UNKNOWN_TEXT
from boostbp.backends.base import TreeParams
from boostbp.losses import LOSSES
from boostbp.network import layers
from boostbp.network.layers import BoundInput, LayerSettings, LossObjective, SquaredObjective, boosting, fitting
from boostbp.network.layers.cheaper_growth import FixedStructure, SharedStructure
from boostbp.trees.basis import BASES, Elementwise
from boostbp.trees.sparse import Table

rng = np.random.default_rng(0)
ROWS = 500
X = np.column_stack([rng.standard_normal((ROWS, 3)), rng.integers(0, [70, 4], (ROWS, 2))]).astype(float)
X[rng.uniform(size=X.shape) < 0.1] = np.nan
MIXED, NUMBERS = Table(X, (3, 4)), Table(X)
product = np.nan_to_num(X[:, 0]) * np.nan_to_num(X[:, 1]) + (np.nan_to_num(X[:, 4]) % 2)
Y = np.column_stack([product, np.sin(3 * product), rng.standard_normal(ROWS)])
WEIGHT = rng.uniform(0.5, 2.0, ROWS)
GROWTH = TreeParams(max_depth=4, min_samples_leaf=10)
SETTINGS = LayerSettings(n_estimators=11, growth=GROWTH)
WAVES = Elementwise([lambda x: x, np.sin], [np.ones_like, np.cos])


def loss_of(name, target):
    return LossObjective.of(LOSSES[name](), target, WEIGHT, np.zeros(target.shape[1]))


def squared(n_outputs):
    return SquaredObjective(Y[:, :n_outputs], WEIGHT)


CLASSES = np.eye(3)[np.digitize(product, [0.0, 1.0])]
CASES = {
    "a hidden unit": (NUMBERS, SETTINGS, squared(1)),
    "hidden units": (MIXED, SETTINGS, squared(3)),
    "squared error": (MIXED, SETTINGS, loss_of("squared_error", Y[:, :1])),
    "squared errors": (MIXED, SETTINGS, loss_of("squared_error", Y)),
    "sampled rows": (MIXED, replace(SETTINGS, subsample=0.6), squared(2)),
    "sampled features": (MIXED, replace(SETTINGS, growth=replace(GROWTH, colsample_bytree=0.5)), squared(1)),
    "random thresholds": (NUMBERS, replace(SETTINGS, growth=replace(GROWTH, extra_trees=True)), squared(2)),
    "constant leaves": (MIXED, replace(SETTINGS, basis=BASES["constant"]), squared(1)),
    "linear leaves": (MIXED, replace(SETTINGS, basis=BASES["linear"], base="ridge"), squared(3)),
    "additive base": (NUMBERS, replace(SETTINGS, base="additive"), loss_of("squared_error", Y[:, :2])),
    "functions": (NUMBERS, replace(SETTINGS, basis=WAVES, base="ridge"), squared(2)),
    "no splits": (MIXED, replace(SETTINGS, growth=replace(GROWTH, min_samples_leaf=400)), squared(2)),
    "no limit of depth": (MIXED, replace(SETTINGS, growth=TreeParams(max_depth=-1, max_leaves=40)), squared(1)),
    "two classes": (MIXED, SETTINGS, loss_of("logistic", CLASSES[:, :1])),
    "steps that are shortened": (NUMBERS, replace(SETTINGS, learning_rate=3.0), loss_of("logistic", CLASSES[:, :1])),
    "classes": (MIXED, replace(SETTINGS, subsample=0.7), loss_of("softmax", CLASSES)),
    "counts": (MIXED, SETTINGS, loss_of("poisson", CLASSES[:, :1])),
    "quantile": (MIXED, SETTINGS, loss_of("quantile", Y[:, :1])),
}


LIBRARIES = "lightgbm", "xgboost"
IMPOSSIBLE = [("xgboost", "random thresholds")]


def fitted(table, settings, goal, *, backend="lightgbm", n_threads=1):
    backend = load_backend(backend) if isinstance(backend, str) else backend
    return layers.fit(BoundInput(backend, table, settings, WEIGHT), goal, n_threads=n_threads, seed=5)


def assert_same(fit, other):
    for of, names in (
        (lambda f: f.layer.forest.trees, core.Nodes._fields),
        (lambda f: f.layer.forest.leaves, core.Leaves._fields),
    ):
        for name in names:
            np.testing.assert_array_equal(getattr(of(fit), name), getattr(of(other), name), err_msg=name)
    np.testing.assert_array_equal(fit.layer.forest.trees.gain, other.layer.forest.trees.gain)
    np.testing.assert_array_equal(fit.output, other.output)
    np.testing.assert_array_equal(fit.trace.leaf, other.trace.leaf)


@pytest.fixture
def calls(monkeypatch):
    """The numbers of rounds of the calls of the core."""
    found, grow = [], boosting.boost_rounds

    def counted(*args, **options):
        trees, leaves, fault = grow(*args, **options)
        found.append(len(trees) // len(options["out"]))
        return trees, leaves, fault

    monkeypatch.setattr(boosting, "boost_rounds", counted)
    return found


@pytest.fixture
def one_by_one(calls, monkeypatch):
    """A function that fits a layer with a call of `grow` for each round."""

    def fit(*args, **options):
        with monkeypatch.context() as patch:
            patch.setattr(boosting.Boosting, "boost_in_core", lambda _: False)
            before = calls.copy()
            fit = fitted(*args, **options)
            assert calls == before
            return fit

    return fit


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(
    ("library", "case"), [(name, case) for name in LIBRARIES for case in CASES if (name, case) not in IMPOSSIBLE]
)
def test_the_bits_are_those_of_single_rounds(library, case, shared, calls, one_by_one):
    table, settings, goal = CASES[case]
    backend = SharedStructure(load_backend(library)) if shared else library
    fit = fitted(table, settings, goal, backend=backend)
    assert calls == [11]
    assert_same(fit, one_by_one(table, settings, goal, backend=backend))


@pytest.mark.parametrize("case", [case for case in CASES if not case.startswith(("sampled features", "random"))])
def test_known_trees_have_the_bits_of_single_rounds(case, calls, one_by_one):
    """Also those of another fit: here, of trees grown on some of the rows, with other shrinkage."""
    table, settings, goal = CASES[case]
    known = FixedStructure.of(fitted(table, replace(settings, subsample=0.5), goal).layer.forest, shared=False)
    settings = replace(settings, learning_rate=1.5 * settings.learning_rate)
    calls.clear()
    fit = fitted(table, settings, goal, backend=known)
    assert calls == [11]
    assert_same(fit, one_by_one(table, settings, goal, backend=known))


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("case", ["hidden units", "steps that are shortened", "classes", "quantile"])
def test_rounds_in_several_calls_are_the_same(case, library, calls, one_by_one, monkeypatch):
    """As few rows or path columns fit one call, or a booster has grown its number of trees."""
    table, settings, goal = CASES[case]
    expected = one_by_one(table, settings, goal, backend=library)
    monkeypatch.setattr(boosting, "TREE_ROWS", 4 * goal.n_outputs * ROWS)
    assert_same(fitted(table, settings, goal, backend=library), expected)
    assert calls == [4, 4, 3]
    if library == "xgboost":
        monkeypatch.setattr("boostbp.backends.xgboost.TREES_PER_BOOSTER", 3 * goal.n_outputs)
        fit = fitted(table, settings, goal, backend=library)
        assert_same(fit, one_by_one(table, settings, goal, backend=library))
        return
    monkeypatch.setattr("boostbp.backends.lightgbm.TREES_PER_BOOSTER", 3 * goal.n_outputs)
    assert_same(fitted(table, settings, goal), one_by_one(table, settings, goal))
    assert calls[3:] == [3, 3, 3, 2]


@pytest.mark.parametrize("case", ["hidden units", "squared errors"])
@pytest.mark.parametrize("keeps_leaf", [True, False])
def test_outputs_that_threads_share(case, keeps_leaf, calls, one_by_one, monkeypatch):
    monkeypatch.setattr(boosting, "OUTPUTS_PER_CALL", 2)
    monkeypatch.setattr(boosting, "TREE_ROWS", 6 * ROWS)
    monkeypatch.setattr(fitting, "MOST_TRACE", 1 << 30 if keeps_leaf else 0)
    table, settings, goal = CASES[case]
    expected = one_by_one(table, settings, goal)
    assert len(expected.layer.forest.trees.categories)
    assert_same(fitted(table, settings, goal, n_threads=2), expected)
    assert sorted(calls) == [2, 3, 3, 3, 5, 6]  # of two outputs, and of one


def test_leaf_numbers_that_are_not_kept(calls, one_by_one, monkeypatch):
    monkeypatch.setattr(fitting, "MOST_TRACE", 0)
    fit, other = (fit(MIXED, SETTINGS, squared(2)) for fit in (fitted, one_by_one))
    np.testing.assert_array_equal(fit.output, other.output)
    assert fit.trace.kept is None
    assert calls == [11]


@pytest.mark.parametrize(
    "limits",
    [{"VALUES": 1}, {"PATH_COLUMNS": 1}, {"TREE_ROWS": ROWS}],
    ids=["values of rows", "path columns", "rows"],
)
def test_layers_too_large_for_a_call_are_grown_one_by_one(limits, calls, one_by_one, monkeypatch):
    for name, value in limits.items():
        monkeypatch.setattr(boosting, name, value)
    assert_same(fitted(MIXED, SETTINGS, squared(2)), one_by_one(MIXED, SETTINGS, squared(2)))
    assert not calls


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        (replace(SETTINGS, growth=replace(GROWTH, params={"lambda_l2": 1.0})), {}),
        (replace(SETTINGS, growth=replace(GROWTH, multi_output=True)), {}),
        (SETTINGS, {"backend": "sklearn"}),
    ],
    ids=["native parameters", "one tree for all outputs", "another library"],
)
def test_what_the_core_cannot_grow(settings, options, calls):
    assert fitted(NUMBERS, settings, squared(2), **options).layer.forest.n_trees
    assert not calls


def test_values_that_lightgbm_would_merge_are_ranks(calls):
    tiny = Table(np.where(np.isnan(X), 0.0, X) * 1e-40)
    fit = fitted(tiny, SETTINGS, squared(1))
    assert len(np.unique(fit.output)) > 10
    assert not calls


@pytest.mark.parametrize(("library", "title"), [("lightgbm", "LightGBM"), ("xgboost", "XGBoost")])
def test_a_gradient_beyond_float32_is_refused(library, title):
    goal = SquaredObjective(np.where(np.arange(ROWS) == 7, 1e39, product)[:, None], WEIGHT)
    with pytest.raises(ValueError, match=f"exceeds the range of float32, in which {title} grows trees: standardise"):
        fitted(NUMBERS, SETTINGS, goal, backend=library)


def test_native_parameters_and_ranks_of_xgboost(calls, one_by_one):
    large = X.copy()
    large[:, 0] = np.arange(ROWS) + 2.0**30  # which float32 merges
    settings = replace(SETTINGS, growth=replace(GROWTH, params={"reg_lambda": 3.0, "colsample_bynode": 0.5}))
    arguments = Table(large, (3, 4)), settings, squared(2)
    assert_same(fitted(*arguments, backend="xgboost"), one_by_one(*arguments, backend="xgboost"))
    assert calls == [11, 11]  # each output has its own random draws


UPDATE = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 4)
SAVE = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, *[ctypes.c_int] * 3, ctypes.c_int64, ctypes.POINTER(ctypes.c_int64), ctypes.c_void_p
)


def writes(change):
    """SaveModelToString with another text."""

    def save(booster, first, number, importances, size, length, text):
        buffer = ctypes.create_string_buffer(1 << 16)
        _LIB.LGBM_BoosterSaveModelToString(
            ctypes.c_void_p(booster), first, number, importances, ctypes.c_int64(1 << 16), length, buffer
        )
        changed = change(buffer.value) + b"\0"
        length[0] = len(changed)
        ctypes.memmove(text, changed, min(size, len(changed)))
        return 0

    return SAVE(save)


@pytest.fixture
def replace_function(monkeypatch):
    """A function that replaces one of LightGBM's functions, by its place in the addresses."""

    def replaced(place, function):
        def addresses(*args):
            found = list(_lightgbm_calls.addresses(*args))
            found[place] = ctypes.cast(function, ctypes.c_void_p).value
            return tuple(found)

        patched = SimpleNamespace(**vars(_lightgbm_calls) | {"addresses": addresses})
        monkeypatch.setattr("boostbp.backends.lightgbm._lightgbm_calls", patched)

    return replaced


@pytest.mark.parametrize(
    ("change", "is_read"),
    [
        (lambda text: text + b" " * (1 << 15), True),
        (lambda text: text.replace(b"split_feature=", b"split_feature=9"), False),
        (lambda text: text.replace(b"num_leaves=", b"num_leaves=9"), False),
        (lambda text: b"nothing\n", False),
    ],
    ids=["long", "another feature", "more leaves", "no tree"],
)
def test_texts_that_are_not_as_expected(change, is_read, replace_function, one_by_one):
    save = writes(change)
    replace_function(3, save)
    if is_read:
        assert_same(fitted(NUMBERS, SETTINGS, squared(1)), one_by_one(NUMBERS, SETTINGS, squared(1)))
        return
    with pytest.raises(ValueError, match=UNKNOWN_TEXT):
        fitted(NUMBERS, SETTINGS, squared(1))


def test_an_error_of_lightgbm_is_raised(replace_function):
    update = UPDATE(lambda *_: -1)
    replace_function(1, update)
    with pytest.raises(LightGBMError):
        fitted(NUMBERS, SETTINGS, squared(1))


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_loss_may_train_models_with_another_number_of_threads(library):
    """It runs between the calls of LightGBM, which has one number of threads for the process."""

    class Nested(LogCosh):
        n_fits = 0

        def gradient(self, h, y):
            if len(h) == ROWS:
                Nested.n_fits += 1
                growth = replace(GROWTH, n_threads=2)
                few, classes = replace(SETTINGS, n_estimators=2, growth=growth), loss_of("logistic", CLASSES[:, :1])
                fitted(NUMBERS, few, classes, backend=library)
            return super().gradient(h, y)

    goal = LossObjective.of(Nested(), Y[:, :1], WEIGHT, np.zeros(1))
    plain = LossObjective.of(LogCosh(), Y[:, :1], WEIGHT, np.zeros(1))
    expected = fitted(NUMBERS, SETTINGS, plain, backend=library)
    assert_same(fitted(NUMBERS, SETTINGS, goal, backend=library), expected)
    assert Nested.n_fits >= 11


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("case", ["hidden units", "two classes", "classes"])
def test_no_cycle_of_references_keeps_the_arrays_of_a_fit(case, library):
    table, settings, goal = CASES[case]
    gc.collect()
    gc.disable()
    try:
        before = len(_growing())
        fitted(table, settings, goal, backend=library)
        assert len(_growing()) == before
    finally:
        gc.enable()


def _growing():
    return [found for found in gc.get_objects() if type(found) is boosting.Boosting]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers")
@pytest.mark.parametrize("library", LIBRARIES)
def test_an_error_of_a_signal_handler_is_raised(library):
    """Wherever it arrives but in a `__del__`, also where the core calls the function that computes derivatives.

    In a process of its own: an error that a handler raises anywhere may also leave a lock of a library taken.
    """
    code = f"import sys; sys.path[:] = {sys.path!r}; import {__name__} as tests; tests.fit_until_signals({library!r})"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def fit_until_signals(library):
    class LateError(Exception):
        pass

    def raise_late(*_):
        raise LateError

    ignored: list[str] = []
    sys.unraisablehook = lambda lost: ignored.append(repr(lost.object))
    table, settings, goal = CASES["two classes"]
    bound = BoundInput(load_backend(library), table, replace(settings, n_estimators=60), WEIGHT)

    def fit_until(seconds):
        signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
        while True:
            layers.fit(bound, goal)

    signal.signal(signal.SIGALRM, raise_late)
    for number in range(25):
        with pytest.raises(LateError):
            fit_until(0.001 * (1 + number))
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert all("__del__" in of for of in ignored), ignored


@pytest.mark.parametrize("seed", range(6))
def test_derivatives_along_a_direction_beyond_float32_are_refused(seed):
    """By both ways: the next direction, along which they may be in the range, is not drawn."""
    goal = SquaredObjective(np.sign(np.nan_to_num(X[:, :2])) * 3e38, WEIGHT)
    backend = SharedStructure(load_backend("lightgbm"))
    bound = BoundInput(backend, NUMBERS, replace(SETTINGS, n_estimators=1), np.ones(ROWS))
    results = []
    for in_core in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            if not in_core:
                patch.setattr(boosting.Boosting, "boost_in_core", lambda _: False)
            try:
                results.append(layers.fit(bound, goal, seed=seed).output.tobytes())
            except ValueError as error:
                results.append(str(error).partition("size")[0])
    assert results[0] == results[1]
