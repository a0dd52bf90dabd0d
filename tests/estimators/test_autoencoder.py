"""BoostBPAutoencoder: evaluation sets, which it also calls eval_X, and what it refuses."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from flat_parameters import parameters
from sklearn.datasets import load_diabetes

from boostbp import BoostBPAutoencoder

X, _ = load_diabetes(return_X_y=True)
SMALL = {"hidden_layer_sizes": (2,), "n_estimators": 2, "epochs": 3, "random_state": 0}


def changed(array, place, value):
    array = array.copy()
    array[place] = value
    return array


def test_auto_encoder_checks_early_stopping():
    with pytest.raises(ValueError, match=r"early_stopping='maybe'"):
        BoostBPAutoencoder(epochs=1, early_stopping="maybe").fit(X)


def test_auto_encoder_takes_numbers_only():
    with pytest.raises(ValueError, match=r"NaN"):
        BoostBPAutoencoder().fit(changed(X, (0, 0), np.nan))


def test_an_auto_encoder_has_the_other_name_too():
    def metrics(**sets):
        return BoostBPAutoencoder(**parameters(**SMALL)).fit(X[:200], **sets).history_[-1].metrics

    tables = (X[200:300], X[300:])
    assert metrics(eval_X=tables) == metrics(eval_set=tables) == metrics(eval_set=list(tables))
    assert metrics(eval_X=tables[0]) == metrics(eval_set=tables[0]) == metrics(eval_set=tables[0].tolist())
    with pytest.raises(ValueError, match="eval_set and eval_X are both given"):
        metrics(eval_X=tables, eval_set=tables)
    with pytest.raises(ValueError, match=r"eval_X\[1\]: X has 3 features"):
        metrics(eval_X=(X, X[:, :3]))


@pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame])
def test_one_evaluation_set_of_an_auto_encoder_needs_no_list(kind):
    alone, listed = (
        BoostBPAutoencoder((2,), **parameters(n_estimators=3, epochs=1, random_state=0)).fit(
            kind(X[:80]), eval_set=given
        )
        for given in (kind(X[80:]), [kind(X[80:])])
    )
    assert alone.history_.metrics("valid_0") == listed.history_.metrics("valid_0")


def test_autoencoder_refuses_skip():
    with pytest.raises(ValueError, match="skip=True: an auto-encoder"):
        BoostBPAutoencoder((2,), **parameters(skip=True)).fit(X)
