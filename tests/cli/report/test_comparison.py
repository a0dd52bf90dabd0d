"""The comparison: one split for all, honest measures, and no model that takes the others down."""

from __future__ import annotations

import io
import signal
import sys
from dataclasses import replace

import lightgbm
import numpy as np
import pytest
from rich.console import Console
from sklearn.datasets import load_diabetes, load_iris

from benchmarks.rivals.contenders import trees_of
from boostbp.cli.report.comparison import Job, Peak, compare_models, measure, rehearse, splits
from boostbp.cli.report.contenders import SINGLE_LAYER, deep
from boostbp.cli.report.result import Result, columns, depth_in_words, table, tables_for

QUICK = {"epochs": 1, "hidden_layer_sizes": (2,), "n_estimators": 3, "deep": True}
DEEP = [deep(backend, QUICK) for backend in ("lightgbm", "xgboost")]
SINGLE = ["LightGBM", "LightGBM linear_tree", "XGBoost"]


@pytest.mark.slow
def test_every_model_runs_on_classification():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])
    seen = []
    parts = splits(X, names[y], "classification")
    results = compare_models(parts, [*DEEP, *SINGLE_LAYER], watch=lambda label, fold: seen.append(label))
    assert [result.model for result in results] == ["boostbp (lightgbm)", "boostbp (xgboost)", *SINGLE] == seen
    for result in results:
        assert (result.state, result.reason) == ("ran", "")
        assert set(result.scores) == {"accuracy", "log_loss"}
        assert 0.6 < result.scores["accuracy"] <= 1.0
        assert result.fit_seconds > 0.0
        assert result.predict_seconds > 0.0


@pytest.mark.slow
def test_same_seed_gives_same_scores():
    X, y = load_diabetes(return_X_y=True)
    models = [DEEP[0], SINGLE_LAYER[0]]
    once, again = (compare_models(splits(X, y, "regression", seed=3), models, seed=3) for _ in range(2))
    assert [result.scores for result in once] == [result.scores for result in again]
    assert all(set(result.scores) == {"r2", "rmse"} for result in once)


def split(X, y, task):
    (data,) = splits(X, y, task)
    return data


def test_rehearsal_learns_nothing_and_ends_soon():
    data = split(*load_iris(return_X_y=True), "classification")
    fitted = rehearse(Job(deep("lightgbm", {**QUICK, "deep": "auto"}), 1, 0), data)
    np.testing.assert_array_equal(fitted.model.classes_, [0, 1, 2])
    assert 0 < trees_of(fitted.model) < 1000  # thousands if boosting went on to its end


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_split_keeps_test_rows_apart(task):
    X = np.arange(200.0)[:, None]
    y = np.repeat([0, 1], [150, 50])
    data = split(X, y, task)
    parts = [data.split.X[:, 0], data.split.X_valid[:, 0], data.X_test[:, 0]]
    assert [len(part) for part in parts] == [120, 30, 50]
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), X[:, 0])
    if task == "classification":
        shares = [data.split.y.mean(), data.split.y_valid.mean(), data.y_test.mean()]
        np.testing.assert_allclose(shares, 0.25, atol=0.02)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_each_row_is_a_test_row_in_one_fold(task):
    X = np.arange(100.0)[:, None]
    y = np.repeat([0, 1], [75, 25])
    folds = list(splits(X, y, task, folds=4))
    np.testing.assert_array_equal(np.sort(np.concatenate([data.X_test[:, 0] for data in folds])), X[:, 0])
    for data in folds:
        parts = [data.split.X[:, 0], data.split.X_valid[:, 0], data.X_test[:, 0]]
        assert [len(part) for part in parts] == [60, 15, 25]
        np.testing.assert_array_equal(np.sort(np.concatenate(parts)), X[:, 0])
        np.testing.assert_array_equal(data.y_test, y[data.X_test[:, 0].astype(int)])
        if task == "classification":
            assert 0.2 < data.y_test.mean() < 0.3


@pytest.mark.parametrize(("folds", "rows"), [(1, 40), (41, 40)])
def test_folds_that_do_not_split_are_refused(folds, rows):
    with pytest.raises(ValueError, match=f"folds={folds} does not split {rows} rows"):
        splits(np.zeros((rows, 2)), np.arange(rows), "regression", folds=folds)


def trained_by_hand(data, **params):
    train_set = lightgbm.Dataset(data.split.X, data.split.y)
    held = lightgbm.Dataset(data.split.X_valid, data.split.y_valid, reference=train_set)
    shared = {"learning_rate": 0.05, "num_threads": 1, "verbosity": -1, "seed": 0}
    stop = lightgbm.early_stopping(50, verbose=False)
    return lightgbm.train({**shared, **params}, train_set, 2000, valid_sets=[held], callbacks=[stop])


def test_scores_of_a_classifier_match_the_library_used_by_hand():
    X, y = load_iris(return_X_y=True)
    data = split(X, y, "classification")
    outcome = measure(Job(SINGLE_LAYER[0], 1, 0), data)
    booster = trained_by_hand(data, objective="multiclass", num_class=3)
    predicted = booster.predict(data.X_test)
    log_loss = -np.mean(np.log(predicted[np.arange(len(predicted)), data.y_test]))
    assert outcome.scores["log_loss"] == pytest.approx(log_loss, rel=1e-12)
    assert outcome.scores["accuracy"] == np.mean(predicted.argmax(axis=1) == data.y_test)
    assert outcome.length == booster.best_iteration


def test_scores_of_a_regressor_match_the_library_used_by_hand():
    X, y = load_diabetes(return_X_y=True)
    data = split(X, y, "regression")
    outcome = measure(Job(SINGLE_LAYER[1], 1, 0), data)
    booster = trained_by_hand(data, objective="regression", linear_tree=True)
    residual = data.y_test - booster.predict(data.X_test)
    assert outcome.scores["rmse"] == pytest.approx(np.sqrt(np.mean(residual**2)), rel=1e-12)
    r2 = 1.0 - np.mean(residual**2) / np.var(data.y_test)
    assert outcome.scores["r2"] == pytest.approx(r2, rel=1e-12)


@pytest.fixture
def xgboost_that(tmp_path, monkeypatch):
    """Let a module of this code be the package xgboost in the processes of a comparison."""
    monkeypatch.syspath_prepend(tmp_path)
    return (tmp_path / "xgboost.py").write_text


@pytest.mark.slow
def test_missing_library_is_skipped_with_the_cure(xgboost_that):
    xgboost_that("raise ModuleNotFoundError('No module', name='xgboost')")
    X, y = load_iris(return_X_y=True)
    results = compare_models(splits(X, y, "classification"), [DEEP[1], *SINGLE_LAYER[::2]])
    assert [result.state for result in results] == ["skipped", "ran", "skipped"]
    assert "pip install 'boostbp[xgboost]'" in results[0].reason
    assert "XGBoost needs the xgboost package" in results[-1].reason


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_library_that_kills_its_process_leaves_the_others_alone(xgboost_that):
    xgboost_that("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    X, y = load_iris(return_X_y=True)
    results = compare_models(splits(X, y, "classification"), SINGLE_LAYER[::2])
    assert [result.state for result in results] == ["ran", "failed"]
    assert "code -9" in results[-1].reason


@pytest.mark.slow
def test_model_that_raises_is_reported_with_its_reason():
    X, y = load_iris(return_X_y=True)
    [result] = compare_models(splits(X, y, "classification"), [deep("catboost", {})])
    assert (result.state, result.scores) == ("failed", {})
    assert "catboost" in result.reason


def test_class_too_small_to_split_is_refused():
    with pytest.raises(ValueError, match=r"smallest with 3 rows.*merge small classes"):
        splits(np.zeros((40, 2)), np.repeat([0, 1], [37, 3]), "classification")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can reset its high-water mark")
def test_peak_counts_what_was_held_since_and_only_that():
    before = bytearray(200_000_000)
    del before
    peak = Peak()
    ballast = bytearray(100_000_000)
    del ballast
    held = peak.bytes()
    assert 95_000_000 < held < 130_000_000, held
    assert Peak().bytes() < 20_000_000


def test_table_marks_the_best_and_says_who_did_not_run():
    results = [
        Result("one", "ran", "", {"r2": 0.5, "rmse": 2.0}, 1.0, 0.1, 5_000_000, 7),
        Result("two", "ran", "", {"r2": 0.4, "rmse": 1.0}, 2.0, 0.2, None, None),
        Result("three", "skipped", "needs it", {}),
    ]
    rendered = table(results, "a title", columns(results))
    cells = [[str(cell) for cell in column.cells] for column in rendered.columns]
    assert cells[1] == ["0.5000", "0.4000", "skipped"]
    assert cells[-3] == ["5", "", ""]
    styles = [[cell.style for cell in column.cells] for column in rendered.columns[1:3]]
    assert styles == [["bold", "", "dim"], ["", "bold", "dim"]]
    console = Console(width=100, record=True, quiet=True)
    console.print(rendered)


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("std", [False, True])
def test_no_number_is_cut_in_a_narrow_terminal(width, std):
    folds = ({"accuracy": 0.91, "log_loss": 0.2}, {"accuracy": 0.95, "log_loss": 0.3}) if std else ()
    scores = {"accuracy": 0.93123, "log_loss": 0.25456}
    names = ["boostbp (lightgbm)", "boostbp (xgboost)", *SINGLE]
    results = [Result(name, "ran", "", scores, 10.25, 0.0123, 45_000_000, 412, 1_230_000, folds) for name in names]
    console = Console(width=width, record=True, file=io.StringIO())
    shown = tables_for(results, "a title", console)
    assert len(shown) == (1 if width == 120 else 2)
    for part in shown:
        console.print(part)
    text = console.export_text()
    assert "…" not in text
    assert text.count("0.9312") == text.count("0.2546") == text.count("10.25") == text.count("0.0123") == len(names)
    assert text.count("412") == len(names)
    assert max(map(len, text.splitlines())) <= width


@pytest.mark.parametrize("params", [{}, {"deep": True, "epochs": 2, "hidden_layer_sizes": (2,)}])
def test_length_of_a_deep_model_is_that_of_its_leading_piece(params):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(200, 3))
    data = split(X, np.sin(6 * X[:, 0]) + X[:, 1], "regression")
    outcome = measure(Job(deep("lightgbm", params), 1, 0, evidence=True), data)
    assert outcome.length == outcome.evidence.history.best_iteration
    assert outcome.length > 0 or not outcome.evidence.history.by_rounds
    assert outcome.unit == ("rounds" if outcome.evidence.history.by_rounds else "epochs")
    assert outcome.depth == outcome.evidence.history.choice.depth_in_words


def test_it_says_whether_depth_pays():
    single, deep_model = (
        Result("one layer", "ran", ""),
        Result("deep", "ran", "", depth="They helped.", depth_pays=True),
    )
    assert depth_in_words([single]) == []
    assert depth_in_words([single, deep_model]) == ["Depth pays on this table.", "  deep: They helped."]
    no_gain = replace(deep_model, depth="No effect.", depth_pays=False)
    assert depth_in_words([no_gain])[0] == "Depth does not pay on this table: try quality=1, which takes less time."
    assert depth_in_words([no_gain, deep_model])[0] == "Depth pays on this table."


@pytest.mark.parametrize("params", [{}, {"deep": True, "backprop": {"output_target": "moved"}}])
@pytest.mark.usefixtures("everything")
def test_hidden_representations_are_of_the_network_that_is_compared(params, weights_of):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (200, 1))  # of one feature there are no directions
    data = split(X, np.sin(6 * X[:, 0]), "regression")
    weights_of(lambda one: 1.0)
    job = Job(deep("lightgbm", {"epochs": 2, "hidden_layer_sizes": (2,), **params}), 1, 0, evidence=True)
    evidence = measure(job, data).evidence
    best = evidence.history.best_epoch
    assert evidence.history.weight() > 0.0
    assert set(evidence.hidden) == ({0, best} if params else {best})
    if params:
        assert {H.shape for H in evidence.hidden.values()} == {(50, 2)}
