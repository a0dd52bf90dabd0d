"""A group of workers gives what one machine with all rows gives, and alone costs and changes nothing."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from process_workers import many_from
from thread_workers import Everywhere, in_group, shares

from boostbp import BoostBPClassifier, BoostBPRegressor
from boostbp.estimators import held_out
from boostbp.estimators.classifier import classes_of, weights_of_classes
from boostbp.estimators.held_out import hold_out
from boostbp.estimators.request import Request
from boostbp.inputs.repeats import hashes_of
from boostbp.inputs.rows import Rows
from boostbp.inputs.schema import learn_schema
from boostbp.inputs.targets import weights_in_rows
from boostbp.losses.residuals import AbsoluteError, SquaredError
from boostbp.model.model import units_of
from boostbp.network.history import Stop
from boostbp.network.layers import bound
from boostbp.network.steps import STARTS, Normalised, start_of, std
from boostbp.runtime.group import SINGLE_PROCESS, evenly_spaced, training_in, workers
from boostbp.trees.linear import RidgeBase, Standardised
from boostbp.trees.sparse import Table

SIZES = (1, 2, 3)
MODEL = BoostBPRegressor(random_state=0)
EXACT = 1e-12  # of the largest number: sums in another order


@pytest.fixture(autouse=True)
def rows_stay_apart(tune):
    tune(bound, GATHERED_ROWS=0)


def table(n_rows=400, n_columns=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns)) * np.array([1.0, 30.0, 0.01, 1.0])[:n_columns] + 5.0
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, rng.integers(1, 4, n_rows).astype(float)


def close(got, expected):
    np.testing.assert_allclose(got, expected, rtol=0, atol=EXACT * np.nanmax(np.abs(expected)))


def test_alone_hands_back_what_it_is_given():
    a, b = np.arange(3.0), np.ones((2, 2))
    for verb in (SINGLE_PROCESS.sum, SINGLE_PROCESS.max, SINGLE_PROCESS.allgather_rows, SINGLE_PROCESS.sample):
        first, second = verb(a, b)
        assert first is a
        assert second is b
    assert SINGLE_PROCESS.agree(a) is a
    assert SINGLE_PROCESS.gather(a)[0] is a
    assert workers() is SINGLE_PROCESS


def test_a_group_is_left_even_after_an_error():
    def fail(x):
        assert workers().size == 2
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        in_group(2, fail, np.arange(6))
    with pytest.raises(ZeroDivisionError), training_in(SINGLE_PROCESS):
        1 / 0  # noqa: B018
    assert workers() is SINGLE_PROCESS


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("most", [1, 7, 59, 60, 61, 1000])
def test_the_sample_is_the_same_rows_for_any_number_of_workers(size, most):
    X = np.arange(120.0).reshape(60, 2)
    expected = X[evenly_spaced(60, most)]
    for got in in_group(size, lambda part: workers().sample(part, most=most)[0], X):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("size", SIZES)
def test_workers_know_their_place(size):
    got = in_group(size, lambda part: workers().row_runs(len(part)), np.arange(50))
    assert got == [([(rows.start, rows.stop - rows.start)], 50) for rows in shares(50, size)]


@pytest.mark.parametrize("most", [1, 7, 50])
def test_rows_have_the_numbers_of_their_parts_whoever_holds_them(most):
    X = np.arange(100.0).reshape(50, 2)
    some = X[:, 0] % 3 > 0

    def found(X):
        group, here = workers(), X[:, 0] % 3 > 0
        numbers, total = group.row_numbers(len(X))
        np.testing.assert_array_equal(numbers, X[:, 0] // 2)
        more = group.select_rows(here).append_rows(2 * (group.rank == group.size - 1))
        rest = np.concatenate([X[here], X[:2]]) if group.rank == group.size - 1 else X[here]
        return total, group.allgather_rows(X)[0], group.sample(X, most=most)[0], more.allgather_rows(rest)[0]

    for total, everything, sample, rest in in_group(3, found, X, n_parts=11):
        assert total == 50
        np.testing.assert_array_equal(everything, X)
        np.testing.assert_array_equal(sample, X[evenly_spaced(50, most)])
        np.testing.assert_array_equal(rest[:-2], X[some])


@pytest.mark.parametrize("size", SIZES)
def test_deviations_units_and_steps_are_those_of_all_rows(size):
    rng = np.random.default_rng(0)
    h, m, g = rng.normal(size=(3, 300, 3)) * 7.0 + 100.0
    _, weight = table(300)
    for got in in_group(size, std, h, weight):
        close(got, std(h, weight))
    for loss in (SquaredError(), AbsoluteError()):
        for got in in_group(size, lambda t, w, loss=loss: units_of(t, w, loss), h, weight):
            close(got, units_of(h, weight, loss))
    expected, momentum = Normalised().move(h, m, g, weight)
    moved = in_group(size, Normalised().move, h, m, g, weight)
    close(np.concatenate([part[0] for part in moved]), expected)
    close(np.concatenate([part[1] for part in moved]), momentum)
    for got in in_group(size, weights_in_rows, weight / 100):
        assert got.max() == pytest.approx(weights_in_rows(weight / 100).max(), rel=EXACT)


@pytest.mark.parametrize("size", SIZES)
def test_standardised_columns_are_those_of_all_rows(size):
    X, weight = table()
    X[::3, 3] = 0.0  # zeros take no part in the sums
    X[:, 2] = np.where(np.arange(len(X)) < 300, np.nan, X[:, 2])  # a worker may have none of a column
    expected = Standardised.of(X, weight)
    for got in in_group(size, Standardised.of, X, weight):
        for name in ("scaling", "zero", "variance"):
            close(getattr(got, name), getattr(expected, name))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("how", ["bind", "additive"])
def test_a_ridge_base_is_that_of_all_rows(size, how):
    X, weight = table()
    target = np.nan_to_num(X[:, :2]) ** 2 + np.arange(len(X))[:, None] % 7

    def weights(X, target, weight):
        columns = np.arange(X.shape[1], dtype=np.int32)
        if how == "additive":
            base = RidgeBase.additive(X, columns, weight, degree=2)
        else:
            base = RidgeBase.bind(X, columns, weight, least=None)
        logistic = base.minimise(lambda fit: logistic_loss(fit, target[:, :1] > 30, weight), 0.25 * weight[:, None])
        return base.fit(target).weight, logistic.weight

    expected = weights(X, target, weight)
    for got in in_group(size, weights, X, target, weight):
        close(got[0], expected[0])
        np.testing.assert_allclose(got[1], expected[1], atol=1e-6 * np.abs(expected[1]).max())  # some fifty steps


def logistic_loss(fit, y, weight):
    value = weight @ (np.logaddexp(0.0, fit) - y * fit).ravel()
    return float(value), weight[:, None] * (1.0 / (1.0 + np.exp(-fit)) - y)


def test_more_columns_than_rows_are_refused_in_a_group_only():
    X, weight = np.random.default_rng(0).normal(size=(9, 12)), np.ones(9)
    columns = np.arange(12, dtype=np.int32)
    RidgeBase.bind(X, columns, weight)
    with pytest.raises(ValueError, match=r"12 numeric columns for 9 rows.*several workers.*base='zero'"):
        in_group(3, lambda X, weight: RidgeBase.bind(X, columns, weight), X, weight)
    X, weight = np.random.default_rng(0).normal(size=(30, 12)), np.ones(30)  # one worker has 5 rows
    expected = RidgeBase.bind(X, columns, weight).fit(X[:, :1]).weight
    for got in in_group(3, lambda X, weight: RidgeBase.bind(X, columns, weight).fit(X[:, :1]), X, weight):
        close(got.weight, expected)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", sorted(STARTS))
def test_starts_are_those_of_all_rows(size, name):
    X, weight = table()
    start = STARTS[name]
    expected = start(X, weight, 3, np.random.default_rng(5))
    got = in_group(size, lambda X, weight: start(X, weight, 3, np.random.default_rng(5)), X, weight)
    np.testing.assert_allclose(np.concatenate(got), expected, atol=1e-9 * np.abs(expected).max())


def test_a_table_of_categories_alone_starts_from_their_indicators():
    codes = np.array([0.0] * 30 + [1.0, 2.0] * 10 + [np.nan] * 10)[:, None]
    weight = np.ones(len(codes))

    def start(codes, weight):
        return start_of(STARTS["projection"], Table(codes, (0,)), weight, 2, np.random.default_rng(0))

    expected = start(codes, weight)
    assert expected.std() > 0
    close(np.concatenate(in_group(3, start, codes, weight)), expected)  # the first workers have one category


def test_classes_and_categories_are_the_union_of_those_of_all_workers():
    labels = np.array(["b"] * 20 + ["c"] * 10 + ["a"] * 30)
    for got in in_group(3, classes_of, labels):
        assert got.tolist() == ["a", "b", "c"]
    weight = np.concatenate(in_group(3, lambda labels: weights_of_classes("balanced", labels), labels))
    np.testing.assert_allclose(weight, weights_of_classes("balanced", labels), rtol=EXACT)
    frame = pd.DataFrame({"city": labels, "age": np.arange(60.0)})

    def read(rows):
        model = BoostBPRegressor()
        schema, table = learn_schema(model, frame.iloc[rows])
        return table.X, schema

    expected, schema = read(np.arange(60))
    got = in_group(3, read, np.arange(60))
    np.testing.assert_array_equal(np.concatenate([X for X, _ in got]), expected)
    assert all(other.categories == schema.categories for _, other in got)


def test_tables_and_labels_of_different_kinds_are_refused():
    labels = np.array(["1"] * 30, object)
    labels[:15] = 1
    with pytest.raises(ValueError, match=r"y holds labels of dtype .* on different workers"):
        in_group(2, lambda part: classes_of(np.array(part.tolist())), labels)

    def read(rows):
        frame = pd.DataFrame({"a": rows, "b" if rows[0] == 0 else "c": rows})
        return learn_schema(BoostBPRegressor(), frame)[1]

    with pytest.raises(ValueError, match=r"X of worker 1 has names=\('a', 'c'\).*worker 0 has \('a', 'b'\)"):
        in_group(2, read, np.arange(40))


def test_hashes_of_rows_are_uniform_and_of_the_values_alone():
    X = np.random.default_rng(0).normal(size=(20_000, 3))
    share = hashes_of(X, 1) / 2.0**64
    assert abs(np.mean(share < 0.1) - 0.1) < 4 * np.sqrt(0.1 * 0.9 / len(X))
    assert abs(np.corrcoef(share, hashes_of(X, 2) / 2.0**64)[0, 1]) < 4 / np.sqrt(len(X))
    np.testing.assert_array_equal(hashes_of(X[::-1], 1), hashes_of(X, 1)[::-1])


NETWORK = {"deep": True, "epochs": 5, "random_state": 0, "n_estimators": 8, "backend": Everywhere()}
CASES = {
    "squared error, two hidden layers": ({"hidden_layer_sizes": (5, 3)}, {}),
    "kept structures, skip, additive base": (
        {"hidden_layer_sizes": (4,), "hidden": {"base": "additive"}, "backprop": {"skip": True}},
        {},
    ),
    "one tree for all units, some rows": (
        {"hidden_layer_sizes": (4,), "hidden": {"multi_strategy": "multi_output_tree", "subsample": 0.7}},
        {},
    ),
    "downward, moved, noise": (
        {
            "hidden_layer_sizes": (4,),
            "backprop": {"refit_order": "downward", "output_target": "moved", "start": "noise"},
        },
        {},
    ),
    "median": ({"hidden_layer_sizes": (4,), "loss": "absolute_error"}, {}),
    "classes": ({"hidden_layer_sizes": (4,)}, {"labels": 3}),
    "two classes, several threads": ({"hidden_layer_sizes": (4,), "n_jobs": 2}, {"labels": 2}),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "classes" else pytest.mark.slow) for name in CASES]
)
def test_a_network_is_that_of_all_rows(name):
    changes, task = CASES[name]
    X, weight = table(360)
    y = np.sin(np.nan_to_num(X[:, 0])) + np.nan_to_num(X[:, 1] / 30.0) ** 2
    kind = BoostBPRegressor
    if task:
        y, kind = np.searchsorted(np.quantile(y, np.arange(1, task["labels"]) / task["labels"]), y), BoostBPClassifier
    held, rest = slice(0, 60), slice(60, None)

    def fitted(X, y, weight):
        model = kind(**NETWORK | changes)
        return model.fit(X, y, weight, eval_set=[(X_held, y_held)])

    X_held, y_held = X[held], y[held]
    expected, got = fitted(X[rest], y[rest], weight[rest]), in_group(3, fitted, X[rest], y[rest], weight[rest])
    for model in got:
        for ours, theirs in zip(model.network_.layers, expected.network_.layers, strict=True):
            for a, b in zip(ours.forest.nodes, theirs.forest.nodes, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-9 * (a.dtype.kind == "f"), atol=1e-12 * (a.dtype.kind == "f"))
        assert model.history_.best_epoch == expected.history_.best_epoch
        np.testing.assert_allclose(model.history_.loss, expected.history_.loss, rtol=1e-9)
        for mine, one in zip(model.history_.epochs, expected.history_.epochs, strict=True):
            for numbers in ("gradient_norms", "dead", "drift", "stds", "r2", "explained", "explained_held"):
                np.testing.assert_allclose(getattr(mine, numbers), getattr(one, numbers), rtol=1e-5, atol=1e-9)
        np.testing.assert_allclose(model._raw(X_held), expected._raw(X_held), rtol=0, atol=1e-8)
        np.testing.assert_allclose(model.feature_importances_, expected.feature_importances_, atol=1e-8)
    assert len({model._raw(X_held).tobytes() for model in got}) == 1, "workers have models of different bits"


@pytest.mark.parametrize("name", ["network", "sum", pytest.param("sum of many rows", marks=pytest.mark.slow)])
def test_a_model_does_not_depend_on_who_holds_which_part(tune, name):
    X, weight = table(300)
    y = np.sin(np.nan_to_num(X[:, 0])) + np.nan_to_num(X[:, 1] / 30.0) ** 2
    weight[::7] = 0.0
    how = NETWORK | {
        "hidden": {"subsample": 0.7},
        "output": {"subsample": 0.7},
        "backprop": {"start": "noise"},
        "validation": 0.2,
        "early_stopping": True,
    }
    if name != "network":  # real libraries, and rows that are gathered
        tune(bound, GATHERED_ROWS=300)
        how = {"quality": 2, "epochs": 8, "random_state": 0}
    if name == "sum of many rows":
        tune(**many_from(200))

    def fitted(X, y, weight):
        return BoostBPRegressor((3,), **how).fit(X, y, weight)

    one = fitted(X, y, weight)
    for model in in_group(3, fitted, X, y, weight, n_parts=11):
        assert model.history_.metrics("held_out") == pytest.approx(one.history_.metrics("held_out"), rel=1e-9)
        np.testing.assert_allclose(model.predict(X), one.predict(X), rtol=0, atol=1e-9)


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_layersof_few_rows_are_fitted_to_the_rows_of_all_without_sums(tune, backend):
    X, weight = table(300)
    y = np.sin(np.nan_to_num(X[:, 0])) + np.nan_to_num(X[:, 1] / 30.0) ** 2
    how = {
        **NETWORK,
        "backend": backend,
        "epochs": 2,
        "early_stopping": False,
        "hidden": {"subsample": 0.7},
        "n_jobs": 2,
    }
    one = BoostBPRegressor((4,), **how).fit(X, y, weight)

    def fitted(X, y, weight):
        model = BoostBPRegressor((4,), **how).fit(X, y, weight)
        return model, workers().messages

    tune(bound, GATHERED_ROWS=300)
    for model, n_messages in in_group(3, fitted, X, y, weight):
        np.testing.assert_allclose(model.predict(X), one.predict(X), rtol=0, atol=1e-9)
        assert n_messages < 100, "of some for each of 8 rounds in 6 layers"


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("number", [0, 2])
@pytest.mark.parametrize("classes", [0, 3])
def test_held_out_rows_are_those_of_one_machine(size, number, classes):
    X, weight = table(300)
    X[100:150] = X[200:250]  # repeated rows stay together
    weight[:80] = 0.0  # a worker may have no rows of weight
    y = np.nan_to_num(X[:, :1])
    labels = np.digitize(y[:, 0], np.quantile(y, np.arange(1, classes) / classes)) if classes else np.zeros(300)

    def split(X, y, weight, labels):
        strata = labels if classes else None
        kept, [part] = hold_out(Request.of(MODEL), Rows(Table(X), y, weight, group=workers()), strata, number=number)
        held = part.rows
        return kept.X, held.X, held.y, held.weight

    expected = split(X, y, weight, labels)
    got = in_group(size, split, X, y, weight, labels)
    np.testing.assert_array_equal(np.concatenate([kept for kept, *_ in got]), expected[0])
    for parts in got:
        for ours, theirs in zip(parts[1:], expected[1:], strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_held_out_rows_of_many_do_not_depend_on_the_number_of_workers(tune):
    tune(held_out, SAMPLE=100)
    X, weight = table(600)
    X[100:200] = X[400:500]  # repeated rows stay together

    def held(X, weight, number):
        rows = Rows(Table(X), weight[:, None], weight, group=workers())
        _, [held] = hold_out(Request.of(MODEL), rows, None, number=number)
        return held.rows.X

    def lines(X):
        return {row.tobytes() for row in X}

    first, *others = [part for size in SIZES[1:] for part in in_group(size, lambda *rows: held(*rows, 0), X, weight)]
    assert 30 < len(first) < 90
    for other in others:
        np.testing.assert_array_equal(other, first)
    rest = X[~np.isin(hashes_of(X, 0), hashes_of(first, 0))]
    assert len(rest) + len(first) == len(X)
    assert lines(in_group(2, lambda *rows: held(*rows, 1), X, weight)[0]) != lines(first)


def test_offsets_go_with_their_rows():
    X, weight = table(200)
    offset = np.log(weight)
    y = np.random.default_rng(1).poisson(weight)

    def losses(X, y, offset):
        model = BoostBPRegressor((3,), loss="poisson", **NETWORK).fit(X, y, offset=offset)
        return [model.network_.baseline[0], *model.history_.metrics("held_out")]

    first, *others = [found for size in SIZES for found in in_group(size, losses, X, y, offset)]
    assert all(np.allclose(other, first, rtol=1e-9) for other in others)


def test_the_clock_of_rank_0_ends_the_training_of_all():
    X, _ = table(200)
    y = np.nan_to_num(X[:, 0])

    def fitted(X, y):
        seconds = 1e-9 if workers().rank == 0 else 1e9
        return BoostBPRegressor((3,), early_stopping=False, max_time=seconds, **NETWORK).fit(X, y)

    assert {(model.n_iter_, model.history_.stop) for model in in_group(3, fitted, X, y)} == {(0, Stop.TIME)}


def test_rank_0_decides_when_training_stops():
    X, _ = table(200)
    y, calls = np.nan_to_num(X[:, 0]), []

    def fitted(X, y):
        rank = workers().rank

        def stop_after_two(progress):
            calls.append(rank)
            return progress.epoch.epoch == 2

        return BoostBPRegressor((3,), early_stopping=False, **NETWORK).fit(X, y, callbacks=[stop_after_two])

    models = in_group(3, fitted, X, y)
    assert [model.n_iter_ for model in models] == [2, 2, 2]
    assert calls == [0, 0, 0]
