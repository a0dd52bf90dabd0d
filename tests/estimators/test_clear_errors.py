"""What cannot be is refused before anything is trained, by an error that names the argument."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from flat_parameters import parameters
from sklearn.datasets import make_friedman1

from boostbp import BoostBPAutoencoder, BoostBPClassifier, BoostBPRegressor, fit_layer

X, Y = make_friedman1(120, n_features=5, random_state=0)
FAST = {"hidden_layer_sizes": (3,), "n_estimators": 3, "epochs": 1, "deep": True, "random_state": 0}


@pytest.mark.parametrize(("trained", "watched"), [(2, 1), (1, 2), (3, 2)])
def test_evaluation_sets_have_the_outputs_of_the_target(trained, watched):
    y, held = (np.tile(Y[:, None], n) if n > 1 else Y for n in (trained, watched))
    with pytest.raises(ValueError, match=rf"eval_set\[1\]: its y has {watched} outputs, .* has {trained}\."):
        BoostBPRegressor(**parameters(**FAST)).fit(X, y, eval_set=[(X, y), (X, held)])


@pytest.mark.parametrize("callback", [3, None, "x"])
def test_callbacks_can_be_called(callback):
    with pytest.raises(ValueError, match=r"callbacks\[0\]=.* cannot be called"):
        BoostBPRegressor(**parameters(**FAST)).fit(X, Y, callbacks=[callback])


@pytest.mark.parametrize("verbose", ["x", None, 1.5])
def test_verbose_is_a_number(verbose):
    with pytest.raises(ValueError, match=r"verbose=.* is not a whole number"):
        BoostBPRegressor(**parameters(verbose=verbose, **FAST)).fit(X, Y)


@pytest.mark.parametrize("numerals", [Y.astype(str), list(map(str, Y)), pd.Series(Y.astype(str), dtype="category")])
def test_no_text_is_trained_on_as_numbers(numerals):
    model, text = BoostBPRegressor(**parameters(**FAST)), ".* holds text, such as '"
    with pytest.raises(ValueError, match=f"^y{text}"):
        model.fit(X, numerals)
    with pytest.raises(ValueError, match=rf"^eval_set\[0\]: y{text}"):
        model.fit(X, Y, eval_set=[(X, numerals)])
    with pytest.raises(ValueError, match=f"^sample_weight{text}"):
        model.fit(X, Y, numerals)
    with pytest.raises(ValueError, match=rf"^eval_set\[0\]: sample_weight{text}"):
        model.fit(X, Y, eval_set=[(X, Y, numerals)])
    with pytest.raises(ValueError, match=f"^sample_weight{text}"):
        BoostBPAutoencoder((2,), epochs=1).fit(X, sample_weight=numerals)
    with pytest.raises(ValueError, match=f"^targets{text}"):
        fit_layer(X, numerals, {"n_estimators": 2})
    with pytest.raises(ValueError, match=f"^H{text}"):
        fit_layer(np.asarray(numerals)[:, None], Y, {"n_estimators": 2})


def test_a_classifier_warns_of_an_amount():
    prices = np.repeat(1000 + 7 * np.arange(60), 2)
    with pytest.warns(UserWarning, match=r"^y has 60 classes, which are numbers from 1000 to 1413: .*BoostBPRegressor"):
        BoostBPClassifier(**parameters(**FAST)).fit(X, prices)
    BoostBPClassifier(**parameters(**FAST)).fit(X, [f"class {price}" for price in prices])


@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf])
def test_weights_of_classes_are_weights(weight):
    labels = np.arange(120) % 3
    with pytest.raises(ValueError, match=rf"^class_weight=.* gives class 1 the weight {weight}: give 0 or more"):
        BoostBPClassifier(**parameters(class_weight={0: 1.0, 1: weight, 2: 1.0}, **FAST)).fit(X, labels)
