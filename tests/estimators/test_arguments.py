"""Evaluation sets have names, and the first one chooses."""

from __future__ import annotations

import logging
from unittest.mock import MagicMock

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from flat_parameters import parameters
from sklearn.datasets import load_diabetes
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from boostbp import BoostBPAutoencoder, BoostBPClassifier, BoostBPRegressor, callbacks

X, Y = load_diabetes(return_X_y=True)
SMALL = {"hidden_layer_sizes": (2,), "n_estimators": 2, "epochs": 3, "random_state": 0}
SETS = [(X[200:300], Y[200:300]), (X[300:], Y[300:])]
NAMES = ["calib", "late"]


def fit(kind=BoostBPRegressor, sets=SETS, names=NAMES, y=Y, **changes):
    calls = changes.pop("callbacks", None)
    model = kind(**parameters(**(SMALL | changes)))
    return model.fit(X[:200], y[:200], eval_set=sets, eval_names=names, callbacks=calls)


def test_names_are_those_of_history_log_record_and_bar(caplog, capsys):
    seen = {}
    with caplog.at_level(logging.INFO, "boostbp"):
        calls = [callbacks.log_evaluation(), callbacks.record(seen), callbacks.early_stopping(9, name="late")]
        history = fit(deep=True, callbacks=calls, verbose=1).history_
    last = history[-1].metrics
    assert list(last) == NAMES
    figures = f"calib {last['calib']:.6g}  late {last['late']:.6g}"
    assert figures in caplog.records[-1].getMessage()
    assert figures in capsys.readouterr().err
    assert seen == {
        "train": {"loss": history.loss},
        "calib": {"rmse": history.metrics("calib")},
        "late": {"rmse": history.metrics("late")},
    }


def test_a_set_may_be_called_train():
    seen = {}
    history = fit(names=["train", "late"], deep=True, callbacks=[callbacks.record(seen)]).history_
    assert seen["train"] == {"loss": history.loss, "rmse": history.metrics("train")}


def test_the_first_set_chooses_the_epoch_whatever_its_name():
    model = fit(deep=True, epochs=15, eval_metric="mae", n_iter_no_change=3)
    turned = fit(sets=SETS[::-1], names=NAMES[::-1], deep=True, epochs=15, eval_metric="mae", n_iter_no_change=3)
    for each, name in ((model, "calib"), (turned, "late")):
        history = each.history_
        assert history.best_epoch == int(np.argmin(history.metrics(name)))
        held_X, held_y = dict(zip(NAMES, SETS, strict=True))[name]
        error = np.abs(each.predict(held_X) - held_y).mean()
        assert history.scores[name] == pytest.approx(error, rel=1e-9)


def test_other_estimators_have_named_sets_too():
    labels = np.digitize(Y, [100, 200])
    sets = [(X[200:300], labels[200:300]), (X[300:], labels[300:])]
    assert list(fit(BoostBPClassifier, sets, y=labels).history_[0].metrics) == NAMES
    coder = BoostBPAutoencoder(**parameters(**SMALL)).fit(X[:200], eval_set=[X[200:300], X[300:]], eval_names=NAMES)
    assert list(coder.history_[0].metrics) == NAMES
    assert list(fit(sets=SETS[0], names="calib").history_[0].metrics) == ["calib"]


@pytest.mark.parametrize("names", [["calib"], ["calib", "calib"], ["calib", 2], "calib", []])
def test_names_must_fit_the_sets(names):
    with pytest.raises(ValueError, match=r"eval_names=.* must hold 2 different strings, one for each set"):
        fit(names=names)


DEEP = SMALL | {"deep": True}
W = np.linspace(0.5, 1.5, 142)


def history(**sets):
    return BoostBPRegressor(**parameters(**DEEP)).fit(X[:200], Y[:200], **sets).history_


SAME = {
    "list of pairs": {"eval_set": SETS},
    "tuple of pairs": {"eval_set": tuple(SETS)},
    "tuple of lists": {"eval_set": tuple(map(list, SETS))},
    "generator": {"eval_set": (one for one in SETS)},
    "lists of rows": {"eval_set": tuple((x.tolist(), y.tolist()) for x, y in SETS)},
    "frames": {"eval_set": [(pd.DataFrame(x).to_numpy(), pd.Series(y)) for x, y in SETS]},
    "tuples of columns": {"eval_X": tuple(x for x, _ in SETS), "eval_y": tuple(y for _, y in SETS)},
    "lists of columns": {"eval_X": [x for x, _ in SETS], "eval_y": [y for _, y in SETS]},
}


def test_evaluation_sets_may_be_passed_in_any_form():
    expected = history(eval_set=list(SETS))
    for form, sets in SAME.items():
        assert history(**sets)[-1].metrics == expected[-1].metrics, form


def test_one_evaluation_set_may_be_passed_in_any_form():
    one = history(eval_set=[SETS[0]])[-1].metrics
    for alone in ({"eval_set": SETS[0]}, {"eval_X": SETS[0][0], "eval_y": SETS[0][1]}, {"eval_set": (SETS[0],)}):
        assert history(**alone)[-1].metrics == one
    rows = {"eval_X": SETS[0][0].tolist(), "eval_y": SETS[0][1].tolist()}
    assert history(**rows)[-1].metrics == one
    assert history(eval_set=(rows["eval_X"], rows["eval_y"]))[-1].metrics == one


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_evaluation_sets_may_be_tables(make):
    columns = {f"c{j}": x for j, x in enumerate(X.T)}
    rows = [{name: x[part] for name, x in columns.items()} for part in (slice(200), slice(200, 300), slice(300, None))]
    fit, valid, late = map(make, rows)
    model = BoostBPRegressor(**parameters(**DEEP)).fit(fit, Y[:200], eval_set=((valid, Y[200:300]), (late, Y[300:])))
    assert model.history_[-1].metrics == history(eval_set=SETS)[-1].metrics
    named = BoostBPRegressor(**parameters(**DEEP)).fit(fit, Y[:200], eval_X=(valid, late), eval_y=(Y[200:300], Y[300:]))
    assert named.history_[-1].metrics == model.history_[-1].metrics


def test_weights_of_evaluation_sets_may_be_an_argument():
    expected = history(eval_set=[SETS[0], (*SETS[1], W)])[-1].metrics
    assert history(eval_set=SETS, eval_sample_weight=[None, W])[-1].metrics == expected
    columns = {"eval_X": SETS[1][0], "eval_y": SETS[1][1]}
    alone = history(eval_set=(*SETS[1], W))[-1].metrics
    for weight in (W, W.tolist(), [W], (W,)):
        assert history(**columns, eval_sample_weight=weight)[-1].metrics == alone


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        ({"eval_set": SETS, "eval_X": X, "eval_y": Y}, "eval_set and eval_X, eval_y are both given"),
        ({"eval_X": X}, "eval_X is given without eval_y"),
        ({"eval_y": Y}, "eval_y is given without eval_X"),
        ({"eval_X": (X, X), "eval_y": (Y,)}, "eval_y holds 1 entries for 2 evaluation sets"),
        ({"eval_X": (X, X), "eval_y": Y}, "eval_y holds a ndarray for 2 evaluation sets"),
        ({"eval_set": SETS, "eval_sample_weight": [W]}, "eval_sample_weight holds 1 entries for 2 evaluation sets"),
        ({"eval_set": [(X, Y, np.ones(442))], "eval_sample_weight": W}, r"eval_set\[0\] has weights, and"),
        ({"eval_set": pd.DataFrame(X)}, r"eval_set is a DataFrame: give pairs \(X, y\)"),
        ({"eval_set": X}, "eval_set is a ndarray: give pairs"),
        ({"eval_set": {"late": SETS[1]}}, "eval_set is a dict: give pairs"),
        ({"eval_set": 3}, "eval_set is a int: give pairs"),
        ({"eval_set": "valid"}, "eval_set is a str: give pairs"),
        ({"eval_set": ["ab"]}, r"eval_set\[0\] is a str: give \(X, y\)"),
        ({"eval_set": (X, Y, W, W)}, r"eval_set\[0\] is a ndarray: give \(X, y\)"),
        (
            {"eval_set": [(X, Y), (X[:, :3], Y)]},
            r"eval_set\[1\]: X has 3 features, but BoostBPRegressor is expecting 10",
        ),
        ({"eval_X": (X, X), "eval_y": (Y, Y[1:])}, r"eval_X\[1\], eval_y\[1\]: .*inconsistent numbers of samples"),
        ({"eval_X": X, "eval_y": np.where(Y > 99, np.nan, Y)}, r"eval_X\[0\], eval_y\[0\]: Input y contains NaN"),
    ],
)
def test_evaluation_sets_of_another_form_are_refused_by_name(sets, message):
    with pytest.raises(ValueError, match=message):
        history(**sets)


@pytest.mark.parametrize("kind", [BoostBPRegressor, BoostBPClassifier])
def test_a_pipeline_transforms_evaluation_sets(kind):
    """`eval_set` itself cannot pass: scikit-learn transforms each member of a tuple, its targets too."""
    y = Y if kind is BoostBPRegressor else Y > 140
    with sklearn.config_context(enable_metadata_routing=True):
        model = kind(**parameters(**DEEP)).set_fit_request(eval_X=True, eval_y=True)
        pipeline = make_pipeline(StandardScaler(), model, transform_input=["eval_X"])
        both = {"eval_X": (X[200:300], X[300:]), "eval_y": (y[200:300], y[300:])}
        piped = [
            pipeline.fit(X[:200], y[:200], **sets)[-1].history_
            for sets in (both, {name: parts[0] for name, parts in both.items()})
        ]
        search = GridSearchCV(
            pipeline, {f"{kind.__name__.lower()}__backprop__step_size": [0.2, 0.4]}, cv=2, error_score="raise"
        )
        assert list(search.fit(X[:200], y[:200], **both).best_estimator_[-1].history_[-1].metrics) == [
            "valid_0",
            "valid_1",
        ]
    scaler = StandardScaler().fit(X[:200])
    scaled = [scaler.transform(part) for part in (X[:200], X[200:300], X[300:])]
    by_hand = kind(**parameters(**DEEP)).fit(
        scaled[0], y[:200], eval_set=list(zip(scaled[1:], (y[200:300], y[300:]), strict=True))
    )
    assert piped[0][-1].metrics == by_hand.history_[-1].metrics
    assert piped[1][-1].metrics == {"valid_0": by_hand.history_[-1].metrics["valid_0"]}


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_callbacks_of_other_libraries_are_refused_with_ours(library):
    theirs = pytest.importorskip(f"{library}.callback")
    made = (
        [theirs.early_stopping(10), theirs.log_evaluation()]
        if library == "lightgbm"
        else [theirs.EarlyStopping(rounds=10)]
    )
    for callback in made:
        with pytest.raises(
            ValueError, match=r"callbacks\[1\]=.* is a callback of .*n_iter_no_change.*boostbp.callbacks"
        ):
            fit(callbacks=[callbacks.log_evaluation(), callback])
    seen = MagicMock(return_value=None)
    fit(callbacks=[seen], deep=True)
    assert seen.call_count == 4
