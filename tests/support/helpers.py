"""One matrix of cases for all tests, small data, and plain second implementations."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from itertools import product

import numpy as np
import pytest
from known_leaves import fit_leaves

from boostbp import backends, core
from boostbp.backends.base import TreeParams
from boostbp.ensemble import constants
from boostbp.losses import LOSSES, Loss, traits_of
from boostbp.network import layers
from boostbp.network.layers import BoundInput, Fit, LayerSettings, SquaredObjective
from boostbp.trees.basis import Elementwise, Polynomial
from boostbp.trees.forest import Forest
from boostbp.trees.leaves import concat_leaves, leaves_of_tree, leaves_on_paths
from boostbp.trees.ridge import Ridge
from boostbp.trees.sparse import Table
from boostbp.trees.tree import Tree, Trees


def softlog(x):
    return np.log1p(x * x)


def softlog_slope(x):
    return 2.0 * x / (1.0 + x * x)


BASES = {
    "linear": Polynomial(1),
    "quadratic": Polynomial(2),
    "own": Elementwise([np.sin, softlog], [np.cos, softlog_slope]),
}
BACKENDS = backends.available()

needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="needs torch: pip install 'boostbp[torch]'")


@dataclass(frozen=True)
class Case:
    """One way to fit a layer."""

    backend: str
    basis: str = "quadratic"
    missing: bool = False
    base: bool = False
    shared: bool = False
    categorical: bool = False
    leaves: str = "refit"

    def __str__(self):
        flags = [name for name in ("missing", "base", "shared", "categorical") if getattr(self, name)]
        return "-".join([self.backend, self.basis, *flags, *(["native"] if self.leaves == "native" else [])])


# Where a test is long and hardly depends on the library: with one at once, with the others in `.ci/run` alone.
ONE_AT_ONCE = [name if name == "lightgbm" else pytest.param(name, marks=pytest.mark.slow) for name in BACKENDS]
ABLE = {name: backends.capabilities_of(backends.load_backend(name)) for name in BACKENDS}
WITH_CATEGORIES = [name for name in BACKENDS if ABLE[name].categories]
WITH_NATIVE_LEAVES = [name for name in BACKENDS if ABLE[name].native_leaves]

flags = (False, True)
REFIT = [Case(*row) for row in product(BACKENDS, BASES, flags, flags, flags)]
REFIT += [Case(*row, categorical=True) for row in product(WITH_CATEGORIES, BASES, flags, flags)]
NATIVE = [
    Case(backend, "linear", missing, base, categorical=categorical, leaves="native")
    for backend, missing, base in product(WITH_NATIVE_LEAVES, flags, flags)
    for categorical in (flags if backend in WITH_CATEGORIES else (False,))
]
MATRIX = REFIT + NATIVE


def every(cases):
    """Parametrise by cases: what LightGBM grew at once, of trees that another library grew one basis of the three."""

    def at_once(case):
        return case.backend == "lightgbm" or case.basis == "quadratic"

    return pytest.mark.parametrize(
        "case", [pytest.param(case, marks=() if at_once(case) else pytest.mark.slow, id=str(case)) for case in cases]
    )


def of_any_library(cases):
    """Parametrise by cases of what is done to a forest, whoever grew it: LightGBM's at once, the others slow."""
    marks = {case: () if case.backend == "lightgbm" else pytest.mark.slow for case in cases}
    return pytest.mark.parametrize(
        "case", [pytest.param(case, marks=mark, id=str(case)) for case, mark in marks.items()]
    )


def make_X(rows, *, missing=False, categorical=False, seed=0, stretch=1.0):
    """Four numeric features of different location and scale, and a fifth of codes 0 .. 5 if `categorical`."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, 4)) * stretch
    X[:, 1] = 3.0 + 0.5 * X[:, 1]
    X[:, 2] = np.round(X[:, 2], 1)
    if missing:
        X[rng.random(X.shape) < 0.08] = np.nan
    if categorical:
        codes = rng.integers(0, 6, rows).astype(float)
        if missing:
            codes[rng.random(rows) < 0.08] = np.nan
        X = np.column_stack([X, codes])
    return np.ascontiguousarray(X)


def make_targets(X, outputs=3, seed=0):
    """Smooth functions of the input with a kink and a little noise, (rows, outputs)."""
    rng = np.random.default_rng(seed)
    Z = np.nan_to_num(X)
    codes = Z[:, 4] if X.shape[1] > 4 else 0.0
    parts = [
        np.sin(Z[:, 0]) + Z[:, 1] * (Z[:, 3] > 0) + (codes == 2),
        Z[:, 2] ** 2 - 0.5 * Z[:, 1] + (codes > 3),
        np.abs(Z[:, 3]) + Z[:, 0] * Z[:, 2],
    ]
    Y = np.column_stack([parts[k % 3] for k in range(outputs)])
    return Y + 0.1 * rng.standard_normal(Y.shape)


def settings_of(case, **changes):
    start = {
        "n_estimators": 5,
        "learning_rate": 0.5,
        "growth": TreeParams(max_depth=3, min_samples_leaf=8, multi_output=case.shared),
        "basis": BASES[case.basis],
        "ridge": Ridge(0.3),
        "base": "ridge" if case.base else None,
        "leaves": case.leaves,
    }
    return LayerSettings(**(start | changes))


def training_rows(case, rows=260):
    """Input, targets and row weights, some of them 0."""
    X = make_X(rows, missing=case.missing, categorical=case.categorical)
    weight = np.random.default_rng(5).uniform(0.5, 2.0, rows)
    weight[::37] = 0.0
    return X, make_targets(X), weight


def categories_of(case):
    return (4,) if case.categorical else ()


def fit_case(case, *, n_threads=1, **changes) -> Fit:
    X, Y, weight = training_rows(case)
    bound = BoundInput(
        backends.load_backend(case.backend), Table(X, categories_of(case)), settings_of(case, **changes), weight
    )
    return layers.fit(bound, SquaredObjective(Y, weight), n_threads=n_threads, seed=3)


@cache
def fitted(case) -> Fit:
    """The case fitted once for all tests, which must not change it."""
    return fit_case(case)


def fresh_rows(case, rows=60):
    """Rows not trained on, some of them beyond the training range."""
    return make_X(rows, missing=case.missing, categorical=case.categorical, seed=99, stretch=1.3)


@contextmanager
def few_rounds():
    """Single layers and final output layers of 32 rounds at most."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(constants, "MAX_PIECES", 4)
        patch.setattr(constants, "PIECE_ROUNDS", 8)
        yield


def interrupted_fit(model, *args, **options):
    """The model after a fit that Ctrl-C ends, which leaves it the best state."""
    with pytest.raises(KeyboardInterrupt):
        model.fit(*args, **options)
    return model


def random_tree(rng, n_splits, *, features=4, categorical=()):
    """A tree of any shape, splitting a random leaf again and again."""
    left, right = np.empty(n_splits, int), np.empty(n_splits, int)
    slots = [None]  # where each open end hangs: (array, split)
    for split in range(n_splits):
        slot = slots.pop(rng.integers(len(slots)))
        if slot is not None:
            slot[0][slot[1]] = split
        slots += [(left, split), (right, split)]
    for leaf, slot in enumerate(slots):
        if slot is not None:
            slot[0][slot[1]] = ~leaf
    feature = rng.integers(features, size=n_splits)
    is_category = np.isin(feature, categorical)
    words = np.where(is_category, rng.integers(1, 3, n_splits), 0)
    start = np.where(is_category, np.cumsum(words) - words, -1)
    return Tree.of(
        feature,
        np.where(is_category, np.nan, rng.standard_normal(n_splits).round(1)),
        left,
        right,
        rng.random(n_splits) < 0.5,
        cat_start=start,
        cat_words=words,
        categories=rng.integers(0, 2**32, int(words.sum()), dtype=np.uint32),
    )


def random_members(rng, X, basis, sizes, n_outputs, *, categorical=()):
    """Trees of so many splits, each with its leaves on some rows, for one or more of the outputs."""
    members = []
    for number, n_splits in enumerate(sizes):
        tree = random_tree(rng, n_splits, features=X.shape[1], categorical=categorical)
        served = 1 + number % n_outputs
        paths, Y = leaves_on_paths(tree, basis, served), rng.standard_normal((len(X), served))
        leaves = fit_leaves(tree.leaf_of(X), paths, basis.expand(X), -Y, np.ones(len(X)), Ridge(0.1))
        members.append((tree, serving(leaves, int(rng.integers(n_outputs - served + 1)))))
    return members


def long_chain(count):
    """A forest of one tree that is a chain of so many splits of one column, each value with a leaf of its own."""
    down = np.append(np.arange(1, count), ~0)
    tree = Tree.of(np.zeros(count), np.arange(count, 0.0, -1.0), down, ~np.arange(1, count + 1), np.zeros(count, bool))
    columns, scaling = np.zeros(count + 1), np.ones((count + 1, 4))
    leaves = leaves_of_tree(np.arange(count + 2), columns, scaling, np.ones(2 * (count + 1)))
    return forest_of([(tree, leaves)], 1, 1, Polynomial(1))


def plain_leaf_of(tree, x):
    """Leaf of one row, by the words of `Tree`."""
    if len(tree.feature) == 0:
        return 0
    node = 0
    while node >= 0:
        value = x[tree.feature[node]]
        if np.isnan(value):
            goes_left = tree.missing_left[node]
        elif tree.cat_start[node] < 0:
            goes_left = value <= tree.threshold[node]
        else:
            words = tree.categories[tree.cat_start[node] :][: tree.cat_words[node]]
            members = {32 * w + bit for w, word in enumerate(words) for bit in range(32) if int(word) >> bit & 1}
            goes_left = value in members
        node = int(tree.left[node] if goes_left else tree.right[node])
    return ~node


def plain_terms(Z, degree):
    return np.hstack([np.ones((len(Z), 1)), Z, Z**2][: 1 + degree])


def plain_leaf(Z, y, h, ridge, degree):
    """One leaf regression in closed form: training columns, targets, weights -> a function of fresh columns.

    A missing value counts as the weighted mean of its column in the leaf; 0 if there is none.
    """
    present = np.where(np.isnan(Z), 0.0, h[:, None])
    mean = (present * np.nan_to_num(Z)).sum(0) / np.maximum(present.sum(0), 1e-300)
    lower, upper = np.where(np.isnan(Z), np.inf, Z).min(0), np.where(np.isnan(Z), -np.inf, Z).max(0)
    mean = np.where(lower == upper, lower, mean)  # exactly, or rounding would make a constant column vary
    size = np.abs(np.where(np.isnan(Z), 0.0, Z - mean)).max(0)
    size[size == 0.0] = 1.0

    def terms(Z):
        Z = np.where(np.isnan(Z), mean, Z)
        return plain_terms((Z - mean) / size if ridge.standardize else Z, degree)

    Phi = terms(Z)
    penalty = np.full(Phi.shape[1], ridge.reg_lambda)
    penalty[0] *= ridge.penalize_constant
    # The normal equations as least squares with rows of the penalty added: half the digits are not lost.
    A = np.vstack([np.sqrt(h)[:, None] * Phi, np.diag(np.sqrt(penalty))])
    b = np.vstack([np.sqrt(h)[:, None] * y, np.zeros((len(penalty), y.shape[1]))])
    w = np.linalg.lstsq(A, b, rcond=None)[0]
    return lambda fresh: terms(fresh) @ w


def plain_forest(forest, X):
    """A forest's values, row by row and tree by tree, and which leaf inputs are clipped there.

    Returns
    -------
    out : (rows, outputs)
    clipped : list of bytes, (rows,)
        Rows with the same entry have the same leaves and the same inputs clipped, on the same side.
    """
    Z, leaf, leaves = forest.basis.expand(X), forest.route(X), forest.leaves
    out, state = np.zeros((len(X), forest.n_outputs)), []
    for row in range(len(X)):
        sides = []
        for tree in range(forest.n_trees):
            number = leaves.tree_leaf[tree] + int(leaf[tree, row])
            path = slice(leaves.start[number], leaves.start[number + 1])
            first, outputs = leaves.tree_output[tree]
            z, (center, inverse, lower, upper) = Z[row, leaves.column[path]], leaves.scaling[path].T
            u = np.where(np.isnan(z), 0.0, (z - center) * inverse)
            side = (u > upper).astype(int) - (u < lower)
            sides += [int(leaf[tree, row]), *side]
            if forest.clip:
                u = np.clip(u, lower, upper)
            phi = np.concatenate([[1.0], u, u**2][: 1 + leaves.tree_degree[tree]])
            w = leaves.weight[leaves.weight_start[number] : leaves.weight_start[number + 1]].reshape(len(phi), outputs)
            out[row, first : first + outputs] += phi @ w
        state.append(np.array(sides, np.int16).tobytes())
    return out, state


def values(leaves, leaf, Z, clip=False):
    out = np.zeros((len(Z), leaves.tree_output[0, 1]))
    core.evaluate(leaves, (np.ascontiguousarray(leaf[None]), Z), clip, 0, len(Z), out)
    return out


def unfitted(start, column, *, degree=1, outputs=1):
    """The leaves of one tree, with weights of 0."""
    terms = len(start) - 1 + degree * len(column)
    return leaves_of_tree(start, column, np.zeros((len(column), 4)), np.zeros(terms * outputs), degree=degree)


def serving(leaves, first_output):
    """The leaves of a tree that serves outputs from another one on."""
    return leaves._replace(tree_output=leaves.tree_output + np.array([first_output, 0]))


def forest_of(members, n_features, n_outputs, basis, clip=True):
    """The forest of some trees, each with its leaves."""
    trees, leaves = Trees.concat([tree for tree, _ in members]), concat_leaves([leaves for _, leaves in members])
    return Forest(trees, leaves, n_features, n_outputs, basis, clip)


def one_leaf(Z, y, settings, *, h=None, degree=1, learning_rate=1.0):
    """A regression on all columns of `Z` in a single leaf."""
    h = np.ones(len(Z)) if h is None else h
    y = y.reshape(len(Z), -1)
    leaf = np.zeros(len(Z), np.int32)
    leaves = unfitted([0, Z.shape[1]], np.arange(Z.shape[1]), degree=degree, outputs=y.shape[1])
    return fit_leaves(leaf, leaves, np.ascontiguousarray(Z), -h[:, None] * y, h, settings, learning_rate)


def at(model, Z):
    return values(model, np.zeros(len(Z), np.int32), np.ascontiguousarray(Z))


def assert_close(got, expected, rtol):
    size = max(np.abs(expected).max(), 1e-300)
    error = np.abs(got - expected).max()
    assert error <= rtol * size, f"error {error:.3g} of {size:.3g}"


def keeps_convention(estimator, check):
    """Run a check of scikit-learn; what it skips is skipped."""
    try:
        check(estimator)
    except Exception as error:
        if type(error).__name__ == "SkipTest":
            pytest.skip(str(error))
        raise


# Targets of two outputs, from the widest kind to the narrowest.
KINDS_OF_TARGET = {
    "numbers": np.array([[-1.5, 2.0]]),
    "counts": np.array([[0.0, 2.0]]),
    "positive": np.array([[0.5, 2.0]]),
    "classes": np.array([[0.0, 1.0]]),
}


def losses_of_outputs() -> list[Loss]:
    """The losses by name, with their defaults, whose targets have a column for each output."""
    return [loss() for loss in LOSSES.values() if not traits_of(loss).columns]


def kind_of_target(loss: Loss) -> str:
    """The widest kind of targets that a loss does not refuse."""
    for kind, y in KINDS_OF_TARGET.items():
        try:
            loss.check(y)
        except ValueError:
            continue
        return kind
    raise AssertionError(f"{loss} takes no targets")


def derivative(function: object, h: np.ndarray, step: float) -> np.ndarray:
    """Central differences of a (rows,) or (rows, outputs) function by each column of `h`, (rows, outputs)."""
    columns = []
    for output in range(h.shape[1]):
        move = np.zeros_like(h)
        move[:, output] = step
        change = (function(h + move) - function(h - move)) / (2 * step)
        columns.append(change if change.ndim == 1 else change[:, output])
    return np.stack(columns, axis=1)
