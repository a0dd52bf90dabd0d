"""Evaluation sets have names, and the first one chooses."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from sklearn.datasets import load_diabetes

from boostbp import BoostBPAutoencoder, BoostBPClassifier, BoostBPRegressor, callbacks

X, Y = load_diabetes(return_X_y=True)
SMALL = {"hidden_layer_sizes": (2,), "n_estimators": 2, "epochs": 3, "random_state": 0}
SETS = [(X[200:300], Y[200:300]), (X[300:], Y[300:])]
NAMES = ["calib", "late"]


def fit(kind=BoostBPRegressor, sets=SETS, names=NAMES, y=Y, **changes):
    return kind(**(SMALL | changes)).fit(X[:200], y[:200], eval_set=sets, eval_names=names)


def test_names_are_those_of_history_log_record_and_bar(caplog, capsys):
    seen = {}
    with caplog.at_level(logging.INFO, "boostbp"):
        calls = [callbacks.log_evaluation(), callbacks.record(seen), callbacks.early_stopping(9, name="late")]
        history = fit(callbacks=calls, verbose=1).history_
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
    history = fit(names=["train", "late"], callbacks=[callbacks.record(seen)]).history_
    assert seen["train"] == {"loss": history.loss, "rmse": history.metrics("train")}


def test_the_first_set_chooses_the_epoch_whatever_its_name():
    model = fit(deep=True, epochs=15, eval_metric="mae", n_iter_no_change=3)
    turned = fit(sets=SETS[::-1], names=NAMES[::-1], deep=True, epochs=15, eval_metric="mae", n_iter_no_change=3)
    for each, name in ((model, "calib"), (turned, "late")):
        history = each.history_
        assert history.best_epoch == int(np.argmin(history.metrics(name)))
        held_X, held_y = dict(zip(NAMES, SETS, strict=True))[name]
        error = np.abs(each.predict(held_X) - held_y).mean()
        assert history[history.best_epoch].metrics[name] == pytest.approx(error, rel=1e-9)


def test_other_estimators_have_named_sets_too():
    labels = np.digitize(Y, [100, 200])
    sets = [(X[200:300], labels[200:300]), (X[300:], labels[300:])]
    assert list(fit(BoostBPClassifier, sets, y=labels).history_[0].metrics) == NAMES
    coder = BoostBPAutoencoder(**SMALL).fit(X[:200], eval_set=[X[200:300], X[300:]], eval_names=NAMES)
    assert list(coder.history_[0].metrics) == NAMES
    assert list(fit(sets=SETS[0], names="calib").history_[0].metrics) == ["calib"]


@pytest.mark.parametrize("names", [["calib"], ["calib", "calib"], ["calib", 2], "calib", []])
def test_names_must_fit_the_sets(names):
    with pytest.raises(ValueError, match=r"eval_names=.* must hold 2 different strings, one for each eval_set"):
        fit(names=names)
