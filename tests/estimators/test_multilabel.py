"""Several labels of a row: a column of 0 and 1 each, one logistic output each, on structures that all share."""

from __future__ import annotations

import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from command_line import run
from flat_parameters import parameters
from helpers import ONE_AT_ONCE, few_rounds
from sklearn import metrics
from sklearn.datasets import make_multilabel_classification
from sklearn.model_selection import GroupShuffleSplit, cross_val_score
from sklearn.multioutput import MultiOutputClassifier

import boostbp
from boostbp import BoostBPClassifier, losses, plots
from boostbp.estimators.held_out import _rarest_label

X, Y = make_multilabel_classification(500, 8, n_classes=4, random_state=0)
TRAIN, TEST = slice(0, 300), slice(300, None)
NAMES = ["news", "art", "sport", "art and news"]
FAST = {"n_estimators": 10, "epochs": 3, "deep": True, "random_state": 0}


def model(units=(3,), **settings):
    return BoostBPClassifier(units, **parameters(**FAST | settings))


@pytest.fixture(scope="module")
def fitted():
    with few_rounds():  # as in every test
        return model().fit(X[TRAIN], pd.DataFrame(Y[TRAIN], columns=NAMES))


def mean_log_loss(y, p):
    return np.mean([metrics.log_loss(of_label, p[:, k], labels=[0, 1]) for k, of_label in enumerate(y.T)])


@pytest.mark.slow
@pytest.mark.parametrize("backend", ONE_AT_ONCE)
@pytest.mark.parametrize("settings", [{"deep": "auto"}, {"deep": False, "quality": 1}, {"deep": True}], ids=str)
def test_it_is_as_good_as_a_model_of_each_label(backend, settings):
    settings = {"backend": backend, "random_state": 0, "hidden_layer_sizes": (4,), "epochs": 10} | settings
    one = BoostBPClassifier(**settings).fit(X[TRAIN], Y[TRAIN])
    each = MultiOutputClassifier(BoostBPClassifier(**settings)).fit(X[TRAIN], Y[TRAIN])
    of_each = np.column_stack([p[:, 1] for p in each.predict_proba(X[TEST])])
    assert mean_log_loss(Y[TEST], one.predict_proba(X[TEST])) < 1.03 * mean_log_loss(Y[TEST], of_each)


def test_it_answers_as_multilabel_estimators_of_scikit_learn_do(fitted):
    p, raw = fitted.predict_proba(X[TEST]), fitted.decision_function(X[TEST])
    assert p.shape == raw.shape == Y[TEST].shape
    np.testing.assert_allclose(p, 1 / (1 + np.exp(-raw)), rtol=1e-12)
    np.testing.assert_allclose(fitted.predict_log_proba(X[TEST]), np.log(p), rtol=1e-9)
    np.testing.assert_array_equal(fitted.predict(X[TEST]), p > 0.5)
    assert fitted.score(X[TEST], Y[TEST]) == metrics.accuracy_score(Y[TEST], p > 0.5)
    assert fitted.score(X[TEST], sp.csr_array(Y[TEST])) == fitted.score(X[TEST], Y[TEST])
    assert (fitted.n_classes_, fitted.n_outputs_, fitted.multilabel_) == (4, 4, True)
    assert fitted.classes_.tolist() == fitted.output_names() == NAMES
    assert fitted.jacobian(X[:2]).shape == fitted.attributions(X[:2]).values.shape == (2, 4, 8)
    for staged, last in ((fitted.staged_predict_proba, p), (fitted.staged_predict, p > 0.5)):
        np.testing.assert_allclose(list(staged(X[TEST]))[-1], last, rtol=1e-9)
    assert model().fit(X, Y).classes_.tolist() == [0, 1, 2, 3]
    assert not model().fit(X, Y[:, 0]).multilabel_
    scores = cross_val_score(model(), X, Y, scoring="roc_auc", cv=2)
    assert scores.min() > 0.7


@pytest.mark.parametrize(
    "held",
    [
        sp.csr_array, sp.csc_matrix, np.ndarray.tolist, np.asfortranarray, partial(np.asarray, dtype=bool),
        partial(np.asarray, dtype=np.float32), partial(np.asarray, dtype=np.int8), pd.DataFrame,
    ],
)  # fmt: skip
def test_the_model_does_not_depend_on_what_holds_the_labels(fitted, held):
    other = model().fit(X[TRAIN], held(Y[TRAIN]))
    np.testing.assert_array_equal(other.predict_proba(X), fitted.predict_proba(X))
    assert other.predict(X).dtype == getattr(held(Y), "dtype", np.int64)


def test_a_column_is_one_target_as_before():
    with pytest.warns(match="column-vector"):
        column = model().fit(X, Y[:, :1])
    assert column.predict_proba(X).shape == (500, 2)
    np.testing.assert_array_equal(column.predict(X), model().fit(X, Y[:, 0]).predict(X))


@pytest.mark.parametrize("backend", ONE_AT_ONCE)
@pytest.mark.parametrize("deep", [True, "auto"])
def test_threads_do_not_change_it(backend, deep):
    one, two = (model(backend=backend, deep=deep, n_jobs=n).fit(X, Y).decision_function(X) for n in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_labels_that_all_rows_have_or_none_are_learnt_as_such():
    y = Y.copy()
    y[:, 1], y[:, 2] = 0, 1
    p = model().fit(X, y).predict_proba(X)
    assert p[:, 1].max() < 1e-5 < 1 - 1e-5 < p[:, 2].min()


def test_classes_as_columns_get_a_warning():
    with pytest.warns(UserWarning, match=r"Each row of y has one of the 4 labels.*numpy.argmax\(y, axis=1\)"):
        model().fit(X, np.eye(4)[Y.argmax(axis=1)])


def test_an_offset_and_an_earlier_model_are_added(fitted):
    known = fitted.decision_function(X)
    more = model().fit(X, Y, init_model=fitted)
    assert mean_log_loss(Y, more.predict_proba(X)) < mean_log_loss(Y, fitted.predict_proba(X))
    assert more.classes_.tolist() == NAMES
    on_top = model().fit(X, Y, offset=known)
    moved = on_top.decision_function(X, offset=known + 1.0) - on_top.decision_function(X, offset=known)
    np.testing.assert_allclose(moved, 1.0, rtol=1e-9)


def test_rare_labels_are_on_both_sides_of_the_split():
    labels = np.random.default_rng(1).random((400, 5)) < [0.5, 0.4, 0.03, 0.02, 0.0]
    strata = _rarest_label(labels, np.ones(400))
    order = [4, 3, 2, *np.argsort(labels[:, :2].sum(axis=0))]
    expected = [next((k for k in order if row[k]), 5) for row in labels]
    np.testing.assert_array_equal(strata, expected)
    seen = []
    rows = np.random.default_rng(0).normal(size=(400, 3))

    class Splitter(GroupShuffleSplit):
        def split(self, X, y, groups):
            seen.append(y)
            return super().split(X, y, np.arange(len(y)))

    model(validation=Splitter(1, test_size=0.2, random_state=0)).fit(rows, labels)
    np.testing.assert_array_equal(seen[0], labels)  # a splitter gets the labels as they are


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        (None, mean_log_loss),
        ("log_loss", mean_log_loss),
        ("accuracy", lambda y, p: metrics.accuracy_score(y, p > 0.5)),
        ("auc", lambda y, p: metrics.roc_auc_score(y, p, average="weighted")),
        ("average_precision", lambda y, p: metrics.average_precision_score(y, p, average="weighted")),
        (metrics.hamming_loss, lambda y, p: metrics.hamming_loss(y, p > 0.5)),
        (partial(metrics.f1_score, average="macro"), lambda y, p: metrics.f1_score(y, p > 0.5, average="macro")),
        (("brier", lambda y, p: np.mean((y - p) ** 2), False), lambda y, p: np.mean((y - p) ** 2)),
    ],
)
def test_metrics_of_evaluation_sets_are_those_of_scikit_learn(metric, expected):
    watched = model(eval_metric=metric).fit(X[TRAIN], Y[TRAIN], eval_set=(X[TEST], Y[TEST]))
    [[score]] = [scores.values() for scores in watched.best_score_.values()]
    np.testing.assert_allclose(score, expected(Y[TEST], watched.predict_proba(X[TEST])), rtol=1e-9)


class Focal(losses.Logistic):
    """A loss of one's own for several labels: without the trait it is for classes."""

    name = "own"
    multilabel = True
    max_outputs = None


def test_a_loss_of_ones_own_says_that_it_takes_several_labels(fitted):
    own = model(loss=Focal()).fit(X[TRAIN], Y[TRAIN])
    np.testing.assert_array_equal(own.predict_proba(X), fitted.predict_proba(X))
    assert model(loss="binary:logistic").fit(X[TRAIN], Y[TRAIN]).model_.targets.loss == losses.Multilabel()


REFUSED = [
    ({"class_weight": "balanced"}, Y, {}, "class_weight='balanced' with several labels.*pass sample_weight"),
    ({"calibration": 0.2}, Y, {}, "no sets of classes.*MultiOutputClassifier"),
    ({"loss": "softmax"}, Y, {}, "loss='softmax' is for classes that exclude.*y has several labels"),
    ({"loss": losses.Multilabel()}, Y.sum(axis=1), {}, r"Multilabel\(\) is for several labels"),
    ({"loss": "squared_error"}, Y, {}, "is for regression"),
    ({"eval_metric": "auc_mu"}, Y, {}, "eval_metric='auc_mu' is not for several labels: use logloss"),
    ({"eval_metric": "error@0.3"}, Y, {}, "eval_metric='error@0.3' is not for several labels"),
    ({"output": {"monotone_constraints": (1,) * 8}, "deep": "auto"}, Y, {}, "monotone_constraints.*4 outputs"),
    ({}, Y * 2, {}, "that holds 2.*MultiOutputClassifier"),
    ({}, Y, {"eval_set": (X, Y[:, 0])}, r"eval_set\[0\]: y has shape \(500,\).*\(rows, 4\)"),
    ({}, Y, {"eval_set": (X, Y[:, :3])}, r"y has shape \(500, 3\).*\(rows, 4\)"),
    ({}, Y[:, 0], {"eval_set": (X, Y)}, r"y has shape \(500, 4\).*\(rows,\)"),
    ({}, pd.DataFrame(Y, columns=NAMES), {"eval_set": (X, pd.DataFrame(Y, columns=NAMES[::-1]))}, "y has the labels"),
    ({}, Y, {"offset": np.zeros(500)}, r"offset has shape \(500,\): give \(500, 4\)"),
]


@pytest.mark.parametrize(("settings", "y", "how", "message"), REFUSED)
def test_what_makes_no_sense_for_labels_is_refused_with_a_cure(settings, y, how, message):
    with pytest.raises(ValueError, match=message):
        model(**settings).fit(X, y, **how)


def test_methods_that_make_no_sense_are_refused(fitted):
    for call in (lambda: fitted.calibrate(X, Y), lambda: fitted.predict_set(X)):
        with pytest.raises(ValueError, match="Several labels have no sets of classes"):
            call()
    for other in (Y[:, 0], Y[:, :3]):
        with pytest.raises(ValueError, match="the model has targets of shape"):
            model().fit(X, other, init_model=fitted)
    with pytest.raises(ValueError, match=r"y has shape \(500, 4\)"):
        model().fit(X, Y, init_model=model().fit(X, Y[:, 0]))
    with pytest.raises(ValueError, match="draw one label"):
        plots.calibration(Y, fitted.predict_proba(X))


@pytest.mark.parametrize("y", [Y, Y.astype(bool), Y.astype(">f4"), pd.DataFrame(Y[:, :2], columns=["z", "a"])])
def test_files_and_pickles_hold_names_and_dtype(tmp_path, y):
    first = model().fit(X, y)
    boostbp.save(first, tmp_path / "model")
    for again in (boostbp.load(tmp_path / "model"), pickle.loads(pickle.dumps(first))):
        np.testing.assert_array_equal(again.predict_proba(X), first.predict_proba(X))
        assert again.predict(X).dtype == first.predict(X).dtype
        assert again.classes_.tolist() == first.classes_.tolist()
        assert again.multilabel_


def test_rows_in_blocks_and_files_give_the_same_model(tmp_path, fitted):
    blocks = ((X[first : first + 100], Y[first : first + 100]) for first in range(0, 300, 100))
    np.testing.assert_array_equal(model().fit(blocks).predict_proba(X), fitted.predict_proba(X))
    columns = [f"x{j}" for j in range(8)]
    pd.DataFrame(np.c_[X[TRAIN], Y[TRAIN]], columns=[*columns, *NAMES]).to_csv(tmp_path / "rows.csv", index=False)
    of_file = model().fit(tmp_path / "rows.csv", NAMES)
    assert of_file.classes_.tolist() == NAMES
    np.testing.assert_array_equal(of_file.predict_proba(pd.DataFrame(X, columns=columns)), fitted.predict_proba(X))


def test_a_graph_gives_what_predict_gives(fitted):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(boostbp.to_onnx(fitted).SerializeToString(), providers=["CPUExecutionProvider"])
    assert [part.shape for part in session.get_outputs()] == [["rows", 4], ["rows", 4]]
    for rows in (X, X[:1], X[:0]):
        label, p = session.run(None, {"X": rows})
        np.testing.assert_array_equal(label, fitted.predict(rows) if len(rows) else Y[:0])
        np.testing.assert_allclose(p, fitted.predict_proba(rows) if len(rows) else p, rtol=1e-9)


def test_the_command_line_predicts_each_label(tmp_path):
    rows = pd.DataFrame(X, columns=list("abcdefgh"))
    named = model().fit(rows, pd.DataFrame(Y, columns=NAMES))
    boostbp.save(named, tmp_path / "model")
    rows.to_csv(tmp_path / "rows.csv", index=False)
    result = run("predict", tmp_path / "rows.csv", "-m", tmp_path / "model", "-o", tmp_path / "out.csv", "--proba")
    assert result.exit_code == 0, result.output
    out = pd.read_csv(tmp_path / "out.csv")
    np.testing.assert_array_equal(out[[f"prediction_{name}" for name in NAMES]], named.predict(rows))
    np.testing.assert_allclose(out[[f"probability_{name}" for name in NAMES]], named.predict_proba(rows))
    rows.assign(news=Y[:, 0]).to_csv(tmp_path / "rows.csv", index=False)
    words = ["--kind", "calibration", "--target", "news", "-o", tmp_path / "out.png"]
    assert "draw a label with boostbp.plots" in run("plot", tmp_path / "model", tmp_path / "rows.csv", *words).output
