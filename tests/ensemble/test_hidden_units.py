"""Directions: those in which a model varies most, as hidden units beside the features."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from flat_parameters import parameters
from helpers import BACKENDS, interrupted_fit
from problems import GROWTH, LAYER, problem_of
from sklearn.datasets import make_friedman1

from boostbp import BoostBPRegressor, load, save
from boostbp.ensemble import candidate, constants
from boostbp.ensemble.budget import Budget
from boostbp.ensemble.candidate import NetworkTraining, directions_of, single_layer
from boostbp.ensemble.candidate_settings import has_directions
from boostbp.ensemble.driver import Driver
from boostbp.ensemble.hidden_units import (
    directions_layer,
    leading_directions,
    paired_directions,
    sizes_and_directions,
)
from boostbp.ensemble.plan import Plan
from boostbp.network.history import Stop
from boostbp.network.network import HIDDEN_BITS

W = np.array([0.6, -0.8, 0.0, 0.0])
SMOOTH = replace(LAYER, learning_rate=0.1, base="ridge", growth=replace(GROWTH, min_samples_leaf=40))
CANDIDATES = [
    single_layer("single layer", lambda problem: SMOOTH),
    directions_of("single layer", lambda problem: SMOOTH, name="directions"),
    directions_of("directions", lambda problem: SMOOTH, name="again"),
]


@pytest.fixture(autouse=True)
def whole_pieces(tune):
    tune(PIECE_ROUNDS=25, MAX_PIECES=4)


def along(rows, seed, *, scales=1.0, missing=0.0, groups=False):
    """Targets that follow one direction of four features, and a fifth of categories if asked for."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((rows, 4))
    t = Z @ W
    y = np.tanh(2.0 * t) + 0.3 * t
    X = 5.0 + Z * scales
    X[rng.random(X.shape) < missing] = np.nan
    if groups:
        group = rng.integers(0, 4, rows)
        X, y = np.column_stack([X[:, :2], group, X[:, 2:]]), y + 0.5 * (group == 1)
    return np.ascontiguousarray(X), y[:, None]


def problem_along(rows=1500, **how):
    """A problem of such rows; the categories stand between the features."""
    changes = {name: how.pop(name) for name in ("backend", "n_threads") if name in how}
    categorical = (2,) if how.get("groups") else ()
    return problem_of(along(rows, 0, **how), along(400, 1, **how), categorical=categorical, layer=SMOOTH, **changes)


def trained(problem, n_candidates=3, pieces=4):
    driver = Driver(problem, Budget(None), Plan.of(problem))
    driver.begin(CANDIDATES[:n_candidates], pieces)
    return driver


def numeric_of(problem):
    return np.setdiff1d(np.arange(problem.rows.X.shape[1]), problem.rows.table.categorical)


def leading_of(problem, model):
    return sizes_and_directions(problem, model, numeric_of(problem))[1]


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_leading_direction_is_that_of_the_target(backend):
    problem = problem_along(backend=backend)
    single = trained(problem, 1).trained()[0].model
    directions = leading_of(problem, single)
    np.testing.assert_allclose(directions.T @ directions, np.eye(4), atol=1e-12)
    cosine = directions[:, 0] @ W
    assert abs(cosine) > np.cos(np.deg2rad(6.0))


def test_directions_are_of_features_in_standard_deviations():
    scales = np.array([1e-3, 1.0, 1e4, 7.0])
    models = [trained(problem_along(scales=one), 1) for one in (1.0, scales)]
    found = [leading_of(driver.problem, driver.trained()[0].model) for driver in models]
    assert abs(found[0][:, 0] @ found[1][:, 0]) > 0.99
    layers = [directions_layer(driver.problem, driver.trained()[0].model) for driver in models]
    for driver, layer, directions in zip(models, layers, found, strict=True):
        X = driver.problem.rows.X
        units = layer.predict(X)
        expected = (X - X.mean(0)) / X.std(0) @ directions
        np.testing.assert_allclose(units[:, :4], expected, atol=16 * 2.0 ** -(HIDDEN_BITS + 1))


def test_directions_of_many_features_are_those_of_the_matrix_that_is_not_formed(tune):
    A = np.random.default_rng(2).standard_normal((12, 30)) * np.geomspace(1.0, 1e-3, 12)[:, None]
    np.testing.assert_allclose(leading_directions(A, of_rows=True), leading_directions(A.T @ A), atol=1e-9)
    flat = leading_directions(np.outer(np.ones(12), A[0]), of_rows=True)
    assert flat.shape == (30, 1)  # the other eigenvalues are rounding errors
    np.testing.assert_allclose(np.abs(flat[:, 0]), np.abs(A[0]) / np.linalg.norm(A[0]))


def test_many_features_take_memory_in_proportion_to_their_table(tune):
    """G would have 8e6 numbers."""
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((60, 2800)), rng.standard_normal((60, 1))
    problem = problem_of((X[:40], y[:40]), (X[40:], y[40:]), layer=SMOOTH)
    model = trained(problem, 1).trained()[0].model
    tracemalloc.start()
    directions_layer(problem, model)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 * X.nbytes, f"{peak / X.nbytes:.1f} times the table"


def test_pairs_are_of_the_features_along_which_the_model_varies_most(tune):
    tune(DIRECTIONS_PAIRED=3)
    G = np.diag([3.0, 0.0, 1.0, 2.0]) + 0.1
    half = np.sqrt(0.5)
    sums = [[half, 0, 0, half], [half, 0, half, 0], [0, 0, half, half]]
    differences = [[half, 0, 0, -half], [half, 0, -half, 0], [0, 0, -half, half]]
    np.testing.assert_array_equal(paired_directions(np.diag(G)).T, sums + differences)
    problem = problem_along()
    model = trained(problem, 1).trained()[0].model
    units, X = directions_layer(problem, model).predict(problem.rows.X), problem.rows.X
    expected = (X - X.mean(0)) / X.std(0) @ paired_directions(sizes_and_directions(problem, model, np.arange(4))[0])
    np.testing.assert_allclose(units[:, 4:], expected, atol=16 * 2.0 ** -(HIDDEN_BITS + 1))


def test_two_features_have_one_pair():
    assert paired_directions(np.ones(2)).shape == (2, 2)


def test_the_sign_of_a_direction_is_that_of_its_largest_coefficient():
    problem = problem_along()
    model = trained(problem, 1).trained()[0].model
    directions = leading_of(problem, model)
    assert (directions[np.abs(directions).argmax(0), np.arange(4)] > 0).all()
    eigh, calls = np.linalg.eigh, []

    def flipped(G):
        values, vectors = eigh(G)
        calls.append(1)
        return values, -vectors

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(np.linalg, "eigh", flipped)
        np.testing.assert_array_equal(leading_of(problem, model), directions)
    assert calls


def test_there_are_no_more_directions_than_wanted(tune):
    tune(LEADING_DIRECTIONS=2, DIRECTIONS_PAIRED=2)
    problem = problem_along()
    driver = trained(problem, 2)
    assert [layer.forest.n_outputs for layer in driver.trained()[1].model.layers] == [2 + 2, 1]


def test_weights_of_rows_count():
    """Rows of weight 0 follow another direction."""
    X, y = along(1500, 0)
    y[::2] = np.tanh(2.0 * X[::2, 3:]) * 5.0
    weight = np.ones(1500)
    weight[::2] = 0.0
    problem = problem_of((X, y), along(400, 1), weight=weight, layer=SMOOTH)
    single = trained(problem, 1).trained()[0].model
    assert abs(leading_of(problem, single)[:, 0] @ W) > 0.99


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_categories_are_not_summed_and_missing_values_have_a_place(backend, missing):
    if backend not in BACKENDS:
        pytest.skip(f"needs {backend}")
    problem = problem_along(backend=backend, groups=True, missing=missing)
    driver = trained(problem, 3)
    directions = leading_of(problem, driver.trained()[0].model)
    assert directions.shape == (4, 4)
    assert abs(directions[:, 0] @ W) > 0.97
    for one in driver.trained()[1:]:
        assert np.isfinite(one.held_out).all()
        below, top = one.model.layers
        nodes = top.forest.nodes
        split_by_category = nodes.feature[nodes.cat_start >= 0]
        assert set(split_by_category) <= {4 + 12 + 2}  # behind the directions
        other = problem.held_out.X.copy()
        other[:, 2] = 3.0
        np.testing.assert_array_equal(below.predict(other), below.predict(problem.held_out.X))
        np.testing.assert_allclose(one.model.predict(problem.held_out.X), one.held_out, rtol=1e-9, atol=1e-12)


def test_a_column_of_which_nothing_is_known_has_no_part():
    problem = problem_along()
    model = trained(problem, 1).trained()[0].model
    problem.rows.X[:, 3] = np.nan
    directions = leading_of(problem, model)
    np.testing.assert_allclose(directions[3, 0], 0.0, atol=1e-12)
    assert abs(directions[:, 0] @ W) > 0.97


@pytest.mark.parametrize("number", [1, 2], ids=["directions", "directions of directions"])
def test_jacobian_of_the_whole_model_is_that_of_finite_differences(number):
    """In the middle of the rows, where no input of a leaf is clipped, and where no threshold is crossed."""
    model = trained(problem_along(), 3).trained()[number].model
    rng = np.random.default_rng(3)
    rows, step = 5.0 + 0.3 * rng.standard_normal((200, 4)), 1e-6
    J = model.jacobian(rows)
    numeric = np.empty_like(J)
    crossed = np.zeros(len(rows), dtype=bool)
    for j in range(4):
        moved = step * (np.arange(4) == j)
        ahead, here, behind = (model.predict(rows + sign * moved) for sign in (1, 0, -1))
        numeric[:, :, j] = (ahead - behind) / (2 * step)
        crossed |= (np.abs((ahead - here) - (here - behind)) > 1e-9).any(axis=1)
    assert np.mean(~crossed) > 0.9
    np.testing.assert_allclose(J[~crossed], numeric[~crossed], rtol=1e-4, atol=1e-4)


def test_the_candidate_is_a_network_with_linear_units_beside_the_features():
    problem = problem_along()
    single, directions, again = trained(problem, 3).trained()
    assert [one.on_directions for one in (single, directions, again)] == [False, True, True]
    assert not any(one.network for one in (single, directions, again))  # no back-propagation trains them
    for one in (directions, again):
        assert one.model.skip
        assert [layer.forest.n_outputs for layer in one.model.layers] == [4 + 12, 1]
        assert one.model.layers[0].forest.n_trees == 1  # the linear function alone
        assert one.history is None
        assert one.plan is not None
    assert problem.score(directions.held_out) < problem.score(single.held_out)


def test_where_they_are_tried():
    assert has_directions(problem_along(200))
    assert not has_directions(problem_of((np.zeros((9, 1)), np.zeros((9, 1))), (np.zeros((9, 1)), np.zeros((9, 1)))))
    two = problem_along(200)
    assert not has_directions(replace(two, settings=replace(two.settings, units=(3, 3), layers=(LAYER,) * 3)))


# In a whole fit.

X, Y = make_friedman1(300, n_features=5, random_state=0)
FAST = {"hidden": {"n_estimators": 5}, "epochs": 1, "random_state": 0}
NAMES = ["directions of the single layer", "directions of directions"]


@pytest.fixture(scope="module")
def fitted():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(constants, "MAX_PIECES", 2)
        patch.setattr(constants, "TRIALS_WORK", 1.0)
        yield fit_with_directions(pd.DataFrame(X, columns=list("abcde")))


def fit_with_directions(table, **changes):
    """A fit of single layers and directions; the work of any network is beyond its limit."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(constants, "NETWORKS_WORK", 0.0)
        return BoostBPRegressor((3,), **parameters(**FAST | changes)).fit(table, Y)


def test_directions_join_the_sum_as_one_hidden_layer(fitted, tmp_path):
    candidates = {one.name: one for one in fitted.history_.choice.candidates}
    assert all(candidates[name].directions and candidates[name].network is None for name in NAMES)
    weight = sum(candidates[name].weight for name in NAMES)
    assert weight > 0
    assert fitted.history_.weight() == pytest.approx(weight)
    assert fitted.history_.weight("network") == 0.0
    network = fitted.network_
    assert len(network.layers) == 2
    used = [name for name in NAMES if candidates[name].weight]
    assert network.layers[0].forest.n_outputs == (5 + 12) * len(used)
    assert fitted.transform(pd.DataFrame(X, columns=list("abcde"))).shape == (300, (5 + 12) * len(used))
    save(fitted, tmp_path / "model")
    again = load(tmp_path / "model")
    frame = pd.DataFrame(X, columns=list("abcde"))
    np.testing.assert_array_equal(again.predict(frame), fitted.predict(frame))
    assert again.history_.choice == fitted.history_.choice
    assert again.summary() == fitted.summary()


def test_jacobian_and_importances_are_of_the_features(fitted):
    frame = pd.DataFrame(X, columns=list("abcde"))
    assert fitted.jacobian(frame).shape == (300, 1, 5)
    assert len(fitted.feature_importances_) == 5
    assert fitted.feature_importances_.sum() == pytest.approx(1.0)


def test_an_interrupt_while_directions_are_found_keeps_what_is_there(press, tune):
    tune(MAX_PIECES=2)
    press(candidate, "directions_layer", 1)
    model = interrupted_fit(BoostBPRegressor((3,), **parameters(**FAST)), X, Y)
    assert model.history_.stop is Stop.INTERRUPTED
    assert 1 <= len(model.history_.choice.candidates) <= 4
    assert np.isfinite(model.predict(X)).all()


def test_sparse_tables_have_none():
    table = sp.csr_matrix(np.where(X < 0.3, 0.0, X))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(constants, "MAX_PIECES", 1)
        model = fit_with_directions(table)
    assert not set(NAMES) & {one.name for one in model.history_.choice.candidates}


def test_without_hidden_layers_there_are_none():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(constants, "MAX_PIECES", 1)
        model = BoostBPRegressor((3,), **parameters(**FAST | {"deep": False})).fit(X, Y)
    assert not model.history_.choice.has_hidden


def designs(rows, seed):
    """Shapes in few sizes that depend on one another: features of few distinct values, and rows that repeat them."""
    rng = np.random.default_rng(seed)
    length, height = rng.choice([4.0, 5.5, 7.0, 8.5], rows), 3.5 * rng.integers(1, 3, rows)
    width = 60.0 / length + rng.integers(0, 3, rows)
    X = np.column_stack(
        [length, width, height, length * width, 2 * (length + width) * height, rng.integers(0, 4, rows)]
    )
    y = np.where(X[:, 3] > 6 * X[:, 5] + 50, length - width, 0.1 * X[:, 4]) + 0.01 * rng.normal(size=rows)
    return X, y[:, None]


@pytest.mark.parametrize("backend", BACKENDS)
def test_numbers_of_few_bits_move_no_rows_across_splits(tune, backend):
    """Of few values a ridge penalty makes many, 1e-10 apart: trees must not tell rows apart by what rounding undoes."""
    tune(MAX_PIECES=20)
    X, y = designs(500, 0)
    X_held, y_held = designs(200, 1)
    layer = replace(SMOOTH, growth=replace(SMOOTH.growth, min_samples_leaf=5, max_depth=4))
    problem = problem_of((X, y), (X_held, y_held), layer=layer, backend=backend)
    one = single_layer("single layer", lambda problem: layer)
    driver = Driver(problem, Budget(None), Plan.of(problem))
    driver.begin([one, directions_of("single layer", lambda problem: layer, name="directions")], 20)
    _, directions = driver.trained()
    np.testing.assert_allclose(directions.model.rounded().predict(X_held), directions.held_out, atol=0.01)


def test_a_network_is_judged_in_the_numbers_that_it_is_kept_in():
    """And what stands on its hidden units is fitted to them."""
    problem = problem_of(designs(500, 0), designs(200, 1), layer=replace(SMOOTH, base_lambda=1.0))
    training = NetworkTraining("network", problem)
    training.advance()
    kept = training.result.model.rounded()
    np.testing.assert_allclose(kept.predict(problem.held_out.X), training.result.held_out, atol=0.01)
    hidden = training.result.model.layers[0].forest.leaves.weight
    np.testing.assert_array_equal(kept.layers[0].forest.leaves.weight, hidden)
    assert not np.array_equal(training._training.network.layers[0].forest.leaves.weight, hidden)
