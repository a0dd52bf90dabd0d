"""Each promise of docs/extending.md, and an object of a user's own that breaks it: refused in every way of training.

The quick tests take each object with qualities up to 3, each with one `deep`, and every other way with some of the
objects; the slow ones take each object in every way.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from helpers import needs_torch
from user_losses import LogCosh, UserLoss

from boostbp import BoostBPAutoencoder, BoostBPRegressor, fit_layer
from boostbp.backends import Capabilities
from boostbp.trees.basis import Elementwise
from boostbp.trees.tree import Tree
from tests.test_extending import SECTIONS

rng = np.random.default_rng(0)
X = rng.standard_normal((60, 3))
Y = X[:, 0] * X[:, 1] + np.sin(2.0 * X[:, 2])
QUALITIES, DEEPS = range(1, 6), ("auto", True, False)
WAYS = {f"{quality}-{deep}": {"quality": quality, "deep": deep} for quality, deep in product(QUALITIES, DEEPS)}
OTHER_WAYS = {
    "one layer": {"hidden_layer_sizes": ()},
    "one layer on all rows": {"hidden_layer_sizes": (), "early_stopping": False},
    "network on all rows": {"deep": True, "early_stopping": False},
    "output target that moves": {"deep": True, "backprop": {"output_target": "moved"}, "epochs": 30},
    "weights": {"sample_weight": np.linspace(0.0, 2.0, 60)},
    "offset": {"offset": np.linspace(-1.0, 1.0, 60)},
    "evaluation set": {"eval_set": (X[:20], Y[:20])},
    "trees of all outputs": {"output": {"multi_strategy": "multi_output_tree"}},
    "leaves of the library": {"output": {"leaves": "native", "basis": "linear"}},
    "two outputs": {"y": np.column_stack([Y, X[:, 0]])},
    "threads": {"n_jobs": 2},
}


def in_ways(objects, *, others=False):
    """Pairs of an object and a way of training; quick are those that are told above."""
    pairs = []
    for number, name in enumerate(objects):
        quick = {f"{quality}-{DEEPS[(quality + number) % 3]}" for quality in range(1, 4)}
        quick |= {way for place, way in enumerate(OTHER_WAYS) if (place + number) % 3 == 0}
        for way in [*WAYS, *(OTHER_WAYS if others else ())]:
            pairs.append(pytest.param(name, way, marks=[] if way in quick else pytest.mark.slow))
    return pairs


OF_FIT = ("sample_weight", "offset", "eval_set", "callbacks")


def fit(y=Y, **how):
    passed = {name: how.pop(name) for name in OF_FIT if name in how}
    how = {"hidden_layer_sizes": (3,), "epochs": 3, "random_state": 0, "quality": 1} | how
    sizes = how.pop("hidden_layer_sizes")
    return BoostBPRegressor(sizes, **how).fit(X, y, **passed)


def from_call(number, good, bad):
    """A function that is good until so many calls."""
    calls = []

    def function(h, y):
        calls.append(1)
        return (good if len(calls) < number else bad)(h, y)

    return function


def residual(h, y):
    return h - y


def spoilt(found, *, row=7):
    found = found.copy()
    found[min(row, len(found) - 1)] = np.nan
    return found


def in_place(h, y):
    h -= y
    return h


class Buffered(UserLoss):
    """Returns one array again and again."""

    def gradient(self, h, y):
        if getattr(self, "room", np.empty(0)).shape != h.shape:
            self.room = np.empty(h.shape)
        return np.subtract(h, y, out=self.room)


def log_cosh(h, y):
    return LogCosh().value(h, y)


def everywhere(number):
    return lambda h, y: np.full(h.shape, number)


def wrote(h):
    h += 1.0
    return h


def centred(y, weight):
    y -= y.mean(axis=0)
    return np.zeros(y.shape[1])


def zeroed(y):
    y[:] = 0.0


class UnknownLink(UserLoss):
    """A link that is no number, but where all raw outputs are one."""

    def link(self, h):
        return h if np.ptp(h) == 0.0 else np.full(h.shape, np.nan)


CURE = r"(return \w+\[:, None\]|each row and output)"
LOSSES = {
    "hessian below 0": (
        lambda: UserLoss(hessian=everywhere(-1.0)),
        r"its hessian is \[-1\.( -1\.)?\] in row 0, where y",
    ),
    "hessian of 0": (lambda: UserLoss(hessian=everywhere(0.0)), "its hessian is .* let it be above 0 there"),
    "hessian that is NaN": (lambda: UserLoss(hessian=everywhere(np.nan)), "its hessian is .*nan.* in row 0"),
    "hessian without end": (lambda: UserLoss(hessian=everywhere(np.inf)), "its hessian is .*inf.* in row 0"),
    "flat hessian": (
        lambda: UserLoss(hessian=lambda h, y: np.ones(len(h))),
        rf"its hessian has shape \(\d+,\), .*{CURE}",
    ),
    "hessian far too small": (
        lambda: UserLoss(hessian=everywhere(1e-3)),
        "its hessian is 0.001 where finite differences of its",
    ),
    "link that is NaN": (lambda: UserLoss(link=lambda h: np.full(h.shape, np.nan)), "its link is .*nan.* in row 0"),
    "link that becomes NaN": (UnknownLink, r"its link is .*nan.* in row \d"),
    "flat link": (lambda: UserLoss(link=lambda h: h[:, 0]), rf"its link has shape \(\d+,\), .*{CURE}"),
    "link that writes": (lambda: UserLoss(link=wrote), r"writes into h or y, or another array that its link\(\)"),
    "value of all rows": (
        lambda: UserLoss(value=lambda h, y: np.square(h - y).sum()),
        r"its value has shape \(\), .* return one number for each row, not their sum",
    ),
    "value in a column": (
        lambda: UserLoss(value=lambda h, y: np.square(h - y)),
        r"its value has shape .* return value.sum\(axis=1\)",
    ),
    "value that is NaN": (lambda: UserLoss(value=lambda h, y: spoilt(h[:, 0])), "its value is nan in row 7"),
    "flat gradient": (
        lambda: UserLoss(gradient=lambda h, y: (h - y)[:, 0]),
        rf"its gradient has shape \(\d+,\), .*{CURE}",
    ),
    "gradient of objects": (
        lambda: UserLoss(gradient=lambda h, y: (h - y).astype(object)),
        "its gradient has dtype object, not numbers: return float64",
    ),
    "gradient that writes into h": (lambda: UserLoss(gradient=in_place), "writes into h or y"),
    "gradient that writes into y": (lambda: UserLoss(gradient=lambda h, y: in_place(y, h)), "writes into h or y"),
    "gradient of the wrong sign": (
        lambda: UserLoss(gradient=lambda h, y: y - h),
        "its gradient is .* where finite differences of its value are .* raises",
    ),
    "gradient of the mean": (
        lambda: UserLoss(gradient=lambda h, y: (h - y) / len(h)),
        "its gradient in row . is .* do not divide by the number",
    ),
    "gradient of the last call": (Buffered, r"a later call changed an array that its gradient\(\) returned"),
    "gradient of chance": (
        lambda: UserLoss(gradient=lambda h, y: h - y + rng.standard_normal(h.shape)),
        "two results for the same h and y",
    ),
    "gradient that becomes NaN": (
        lambda: UserLoss(gradient=from_call(31, residual, lambda h, y: spoilt(h - y))),
        r"its gradient is .*nan.* in row \d+, where y is .*, in (round|epoch) \d+.* of training",
    ),
    "hessian that falls below 0": (
        lambda: UserLoss(hessian=from_call(31, everywhere(1.0), everywhere(-1.0))),
        r"its hessian is \[-1\.( -1\.)?\] in row 0, .*, in round \d+.* of training",
    ),
    "value that becomes NaN": (
        lambda: LogCosh(value=from_call(80, log_cosh, lambda h, y: spoilt(log_cosh(h, y)))),
        "its value is nan in row 7, .* in training",
    ),
    "baseline that writes": (lambda: UserLoss(baseline=centred), r"another array that its baseline\(\) receives"),
    "baseline that is one number": (
        lambda: UserLoss(baseline=lambda y, weight: 0.0),
        r"its baseline has shape \(\), .* each output",
    ),
    "baseline that is NaN": (
        lambda: UserLoss(baseline=lambda y, weight: np.full(y.shape[1], np.nan)),
        "its baseline is .*nan",
    ),
    "check that writes": (lambda: UserLoss(check=zeroed), r"another array that its check\(\) receives"),
    "no shift with the target": (
        lambda: LogCosh(gradient=lambda h, y: h * np.exp(-y), value=lambda h, y: (h * h / 2 * np.exp(-y)).sum(axis=1)),
        "has scale_free=True, but its gradient in row",
    ),
    "two derivatives": (
        lambda: UserLoss(derivatives=lambda h, y: (h - y, np.ones(h.shape))),
        r"has 2 members, not 3: return \(value, gradient, hessian\)",
    ),
}


NOT_ASKED_FOR = {
    ("output target that moves", "hessian that falls below 0"),
    ("output target that moves", "value that becomes NaN"),
    ("leaves of the library", "value that becomes NaN"),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("broken", "way"), in_ways(LOSSES, others=True))
def test_a_loss_that_breaks_a_promise_is_refused_by_name(broken, way):
    make, message = LOSSES[broken]
    if (way, broken) in NOT_ASKED_FOR:
        pytest.skip("no hessian is asked for there, or no value between epochs and pieces")
    how = (WAYS | OTHER_WAYS)[way]
    before = X.copy(), Y.copy()
    with pytest.raises(ValueError, match=rf"^loss='(own|log_cosh)'.*{message}"):
        fit(loss=make(), **how)
    np.testing.assert_array_equal(before[0], X)
    np.testing.assert_array_equal(before[1], Y)


KEPT = {"residual": UserLoss, "log-cosh": LogCosh}


@pytest.mark.parametrize(("kept", "way"), in_ways(KEPT, others=True))
def test_a_loss_that_keeps_them_learns_in_every_way(kept, way):
    how = (WAYS | OTHER_WAYS)[way]
    model, y = fit(loss=KEPT[kept](), **how), how.get("y", Y)
    offset = how.get("offset", 0.0)
    prediction = model.predict(X, offset=how.get("offset"))
    assert np.square(prediction - y).mean() < 0.95 * np.var(y - offset)


class Rule:
    """A step that any member may be given in the place of."""

    alpha, decay = 0.3, 1.0

    def __init__(self, **members):
        self.__dict__.update(members)

    def move(self, h, m, g, weight):
        return h - self.alpha * g, g


def added(h, m, g, weight):
    h -= g
    return h, m


STEPS = {
    "length that is text": (Rule(alpha="0.3"), "has alpha='0.3': it must be a positive number"),
    "length of 0": (Rule(alpha=0.0), "has alpha=0.0: it must be a positive number"),
    "growing steps": (Rule(decay=2.0), r"has decay=2.0: it must be a number in \(0, 1\]"),
    "no number": (
        Rule(move=lambda h, m, g, weight: (h - g / np.zeros_like(g) * 0.0, m)),
        r"the target that its move\(\) returns is nan",
    ),
    "flat target": (Rule(move=lambda h, m, g, weight: (h[:, 0], m)), "the target that its move.* shape of h"),
    "flat momentum": (Rule(move=lambda h, m, g, weight: (h, m[:, 0])), "the momentum that its move.* shape of h"),
    "target alone": (Rule(move=lambda h, m, g, weight: h), r"return \(target, momentum\)"),
    "written input": (Rule(move=added), "writes into h, m, g or weight"),
}


@pytest.mark.parametrize(("broken", "way"), in_ways(STEPS))
def test_a_step_rule_that_breaks_a_promise_is_refused_by_name(broken, way):
    rule, message = STEPS[broken]
    with pytest.raises(ValueError, match=rf"step=.*Rule.*{message}"):
        fit(backprop={"step": rule}, **WAYS[way])


def test_a_step_rule_that_breaks_one_while_it_trains_is_refused_by_name():
    moves = []

    def until(h, m, g, weight):
        moves.append(1)
        return (h - 0.3 * g if len(moves) < 4 else np.full(h.shape, np.nan)), g

    with pytest.raises(ValueError, match=r"^step=.*: the target that its move\(\) returns is nan in row 0, where h is"):
        fit(backprop={"step": Rule(move=until)}, deep=True, epochs=10)


class Squares:
    """phi(x) = [1, x, x^2], any member of which may be given in the place of those here."""

    powers, columns_per_feature, has_functions = 1, 2, True

    def __init__(self, **members):
        self.__dict__.update(members)

    def expand(self, X):
        return np.stack([X, X**2], axis=2).reshape(len(X), -1)

    def vjp(self, X, G):
        slopes = np.stack([np.ones_like(X), 2.0 * X], axis=2).reshape(len(X), *(1,) * (G.ndim - 2), X.shape[1], 2)
        return (G.reshape(*G.shape[:-1], X.shape[1], 2) * slopes).sum(axis=-1)


def squares(X):
    return Squares().expand(X)


def zeroed_gradient(X, G):
    G[:] = 0.0
    return Squares().vjp(X, G)


BASES = {
    "powers that kernels lack": (Squares(powers=3), "has powers=3: let it be 1 or 2"),
    "half a column": (Squares(columns_per_feature=0.5), "has columns_per_feature=0.5, not a count"),
    "too few columns": (Squares(expand=lambda X: X), r"its expand\(\) returned .* not an array of the shape"),
    "no columns": (Squares(expand=lambda X: None), r"its expand\(\) returned NoneType"),
    "columns that are not finite": (
        Squares(expand=lambda X: squares(X) / np.zeros(1)),
        "basis function 0 gave .*inf for the value",
    ),
    "columns of other rows": (
        Squares(expand=lambda X: squares(X) - squares(X).mean(axis=0)),
        r"its expand\(\) depends on other rows",
    ),
    "columns in another order": (
        Squares(expand=lambda X: np.hstack([X, X**2])),
        r"column \d of its expand\(\) changes with feature \d",
    ),
    "written input": (Squares(expand=wrote), "writes into its input"),
    "written gradient": (Squares(vjp=zeroed_gradient), "writes into its input"),
    "slopes in columns": (Squares(vjp=lambda X, G: G), r"its vjp\(\) returned .* not an array of the shape"),
    "wrong slope": (
        Squares(vjp=lambda X, G: -Squares().vjp(X, G)),
        r"its vjp\(\) gives the slope -.* let it be the deriv",
    ),
    "slope that is NaN": (
        Squares(vjp=lambda X, G: np.nan * Squares().vjp(X, G)),
        r"its vjp\(\) gives NaN for function 0",
    ),
    "functions unsaid": (
        Squares(has_functions=False, columns_per_feature=1, expand=np.exp, vjp=lambda X, G: G),
        "has has_functions=False, but its expand",
    ),
    "elementwise with a wrong slope": (Elementwise([np.sin], [np.sin]), r"its vjp\(\) gives the slope"),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("broken", "way"), in_ways(BASES))
def test_a_basis_that_breaks_a_promise_is_refused_by_name(broken, way):
    basis, message = BASES[broken]
    with pytest.raises(ValueError, match=rf"^(layer\.|output\.|hidden\.)?basis.*{message}|{message}"):
        fit(hidden={"basis": basis}, output={"basis": basis}, **WAYS[way])


class Stumps:
    """Splits the first feature at its median; any member may be given in the place of those here."""

    def __init__(self, **members):
        self.__dict__.update(members)

    def bind(self, table, growth):
        return self

    def fork(self, outputs, seed):
        return self

    def grow(self, grad, hess):
        return [stump()] * grad.shape[1]


def stump(**changes):
    return Tree.of(
        **({"feature": [0], "threshold": [0.0], "left": [~0], "right": [~1], "missing_left": [True]} | changes)
    )


def chain(n):
    return Tree.of(
        np.zeros(n, int), np.linspace(-1, 1, n), ~np.arange(n), np.append(np.arange(1, n), ~n), np.ones(n, bool)
    )


def growing(make):
    return Stumps(grow=lambda grad, hess: [make() for _ in range(grad.shape[1])])


def careless(grad, hess):
    grad[:] = 0.0
    return [stump()] * grad.shape[1]


BACKENDS = {
    "nothing bound": (Stumps(bind=lambda table, growth: None), "its bind.* has no method grow and no fork"),
    "no tree": (Stumps(grow=lambda grad, hess: []), r"the backend grew 0 trees instead of \d"),
    "nothing grown": (Stumps(grow=lambda grad, hess: None), r"the backend grew None instead of \d"),
    "no objects of Tree": (growing(dict), r"the backend grew \{\}: `grow` must return objects of"),
    "unknown feature": (growing(lambda: stump(feature=[9])), "splits feature 9, of 3"),
    "child that does not exist": (
        growing(lambda: stump(right=[5])),
        "is not consistent. .* a child that does not exist",
    ),
    "circle": (growing(lambda: stump(right=[0])), "is not consistent."),
    "one leaf twice": (growing(lambda: stump(right=[~0])), "is not consistent. .* a leaf has no parent, or two"),
    "no threshold": (growing(lambda: stump(threshold=[np.nan])), "is not consistent. .* a threshold and a set"),
    "arrays of other lengths": (growing(lambda: replace(stump(), threshold=np.zeros(0))), "is not consistent."),
    "too many leaves": (growing(lambda: chain(100)), "grew 101 leaves: "),
    "written gradient": (Stumps(grow=careless), "writes into grad or hess"),
    "capabilities of another kind": (Stumps(capabilities={"missing": True}), "has capabilities="),
}


@pytest.mark.parametrize(("broken", "way"), in_ways(BACKENDS))
def test_a_backend_that_breaks_a_promise_is_refused_by_name(broken, way):
    backend, message = BACKENDS[broken]
    with pytest.raises((TypeError, ValueError), match=message):
        fit(backend=backend, **WAYS[way])


def test_streams_that_are_none_are_refused():
    backend = Stumps(capabilities=Capabilities(streams=lambda n_rows, n_outputs, growth: 0))
    with pytest.raises(ValueError, match=r"the streams of the backend's capabilities returned 0 for 1 outputs"):
        fit(backend=backend)


def sorted_in_place(y_true, y_pred):
    y_true.sort()
    return float(np.mean(y_true - y_pred))


METRICS = {
    "text": (lambda y_true, y_pred: "good", "returned 'good': return a single number"),
    "number for each row": (lambda y_true, y_pred: y_true - y_pred, "returned array.*: return a single number"),
    "nothing": (lambda y_true, y_pred: None, "returned None: return a single number"),
    "written target": (sorted_in_place, "writes into its arguments"),
}


@pytest.mark.parametrize(("broken", "way"), in_ways(METRICS))
def test_a_metric_that_breaks_a_promise_is_refused_by_name(broken, way):
    metric, message = METRICS[broken]
    with pytest.raises((TypeError, ValueError), match=f"(?s)^eval_metric=.*{message}"):
        fit(eval_metric=("mine", metric, False), **WAYS[way])


CALLBACKS = {
    "no function": (3, "cannot be called"),
    "no argument": (lambda: None, "does not take the progress as its one argument"),
    "two arguments": (lambda progress, more: None, "does not take the progress as its one argument"),
}


@pytest.mark.parametrize(("broken", "way"), in_ways(CALLBACKS))
def test_a_callback_that_breaks_a_promise_is_refused_by_name(broken, way):
    callback, message = CALLBACKS[broken]
    with pytest.raises(ValueError, match=rf"^callbacks\[0\]=.*{message}"):
        fit(callbacks=[callback], **WAYS[way])


@pytest.mark.parametrize("broken", [*BASES.values(), *BACKENDS.values()], ids=[*BASES, *BACKENDS])
def test_single_layers_and_auto_encoders_refuse_them_as_well(broken):
    own, message = broken
    name = "backend" if isinstance(own, Stumps) else "basis"
    with np.errstate(all="ignore"):
        with pytest.raises((TypeError, ValueError), match=message):
            fit_layer(X, Y, **({"backend": own} if name == "backend" else {"layer": {"basis": own}}))
        how = {"backend": own} if name == "backend" else {"hidden": {"basis": own}}
        with pytest.raises((TypeError, ValueError), match=message):
            BoostBPAutoencoder((2,), epochs=2, **how).fit(X)


@needs_torch
@pytest.mark.parametrize("broken", STEPS)
def test_tree_layers_of_torch_models_refuse_step_rules_as_well(broken):
    from boostbp.torch import GBDTModule

    rule, message = STEPS[broken]
    with pytest.raises(ValueError, match=message):
        GBDTModule(2, 1, step=rule)


def test_an_earlier_model_and_a_loss_that_breaks_a_promise():
    first = BoostBPRegressor((3,), loss=UserLoss(), quality=1, random_state=0).fit(X, Y)
    loss = UserLoss()
    loss.gradient = lambda h, y: y - h
    second = BoostBPRegressor((3,), loss=loss, quality=1, random_state=0)
    first.model_.targets.loss.gradient = loss.gradient  # the same words
    with pytest.raises(ValueError, match=r"its gradient is .* where finite differences of its value are"):
        second.fit(X, Y, init_model=first)


def test_the_page_names_what_is_refused():
    """Each kind of object of a user's own has a section that says what a fit refuses."""
    for heading in ("A new loss", "A new step rule", "A new basis", "A new backend", "A new metric", "A new callback"):
        assert "efuse" in SECTIONS[heading], heading
