"""What cannot be is refused before anything is trained, by an error that names the argument."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_friedman1

from boostbp import BoostBPAutoencoder, BoostBPRegressor

X, Y = make_friedman1(120, n_features=5, random_state=0)
FAST = {"hidden_layer_sizes": (3,), "n_estimators": 3, "epochs": 1, "deep": True, "random_state": 0}


@pytest.mark.parametrize(("trained", "watched"), [(2, 1), (1, 2), (3, 2)])
def test_evaluation_sets_have_the_outputs_of_the_target(trained, watched):
    y, held = (np.tile(Y[:, None], n) if n > 1 else Y for n in (trained, watched))
    with pytest.raises(ValueError, match=rf"eval_set\[1\]: its y has {watched} outputs, .* has {trained}\."):
        BoostBPRegressor(**FAST).fit(X, y, eval_set=[(X, y), (X, held)])


@pytest.mark.parametrize("callback", [3, None, "x"])
def test_callbacks_can_be_called(callback):
    with pytest.raises(ValueError, match=r"callbacks\[0\]=.* cannot be called"):
        BoostBPRegressor(callbacks=[callback], **FAST).fit(X, Y)


@pytest.mark.parametrize("verbose", ["x", None, 1.5])
def test_verbose_is_a_number(verbose):
    with pytest.raises(ValueError, match=r"verbose=.* is not a number"):
        BoostBPRegressor(verbose=verbose, **FAST).fit(X, Y)


def test_layers_and_steps_are_whole_numbers():
    model = BoostBPRegressor(**FAST).fit(X, Y)
    for layer in ("x", 0.0, True, 1):
        with pytest.raises(ValueError, match=r"layer=.* does not exist"):
            model.hidden_representation(X, layer=layer)
    np.testing.assert_array_equal(model.hidden_representation(X, layer=np.int64(-1)), model.transform(X))
    steps = model.attributions(X[:5], steps=np.int64(4))
    np.testing.assert_array_equal(steps.values, model.attributions(X[:5], steps=4).values)


@pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame])
def test_one_evaluation_set_of_an_auto_encoder_needs_no_list(kind):
    alone, listed = (
        BoostBPAutoencoder((2,), n_estimators=3, epochs=1, random_state=0).fit(kind(X[:80]), eval_set=given)
        for given in (kind(X[80:]), [kind(X[80:])])
    )
    assert alone.history_.metrics("valid_0") == listed.history_.metrics("valid_0")
