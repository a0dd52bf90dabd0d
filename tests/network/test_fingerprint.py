"""A state of other parameters, data or objects is told apart from this training's."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_diabetes

from boostbp import BoostBPRegressor
from boostbp.losses import SquaredError
from tests.network.test_checkpoints import WAYS
from tests.support.flat_parameters import parameters

X, Y = load_diabetes(return_X_y=True)
X, Y = X[:220], Y[:220]
TINY = {"hidden_layer_sizes": (2, 3), "n_estimators": 2, "epochs": 5, "random_state": 0, "early_stopping": False}
MORE_WAYS = [name for name in WAYS if "-" not in name or name in ("upward-loss-normalised", "downward-moved-plain")]


def regressor(**changes):
    words = TINY | changes
    alone = {"deep": True} if words["early_stopping"] is False else {}
    return BoostBPRegressor(**parameters(**alone | words))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_depth": 3}, r"max_depth was \[.*\], is \[3, 3, 3\]"),
        ({"n_estimators": 3}, r"n_estimators was \[2, 2, 2\], is \[3, 3, 3\]"),
        ({"momentum": 0.25}, r"step was Normalised.*mu=0.25"),
        ({"loss": "huber"}, r"loss was SquaredError\(\), is Huber"),
        ({"backend": "sklearn"}, "backend was .* is "),
        ({"random_state": 1}, "another fit: random_state differs. Start"),
        ({"hidden_layer_sizes": (2, 4)}, r"units was \(2, 3\), is \(2, 4\)"),
        ({"early_stopping": True}, "X differs; y differs; sample_weight differs; eval_set differs"),
        ({"epochs": 1}, "epochs=1 is less than the 2 epochs of checkpoint="),
    ],
)
def test_state_of_other_parameters_is_refused(tmp_path, changes, message):
    path = tmp_path / "state"
    regressor(epochs=2).fit(X, Y, checkpoint=path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=message):
        regressor(**changes).fit(X, Y, checkpoint=path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("name", ["X", "y", "sample_weight", "eval_set"])
def test_state_of_other_data_is_refused(tmp_path, name):
    path = tmp_path / "state"
    data = {"X": X, "y": Y, "sample_weight": np.ones(len(Y)), "eval_set": [(X[:50], Y[:50])]}
    regressor(epochs=1).fit(**data, checkpoint=path)
    other = {"X": X + 1e-15, "y": Y + 1e-9, "sample_weight": np.arange(1, 221.0), "eval_set": [(X[:50], Y[1:51])]}
    with pytest.raises(ValueError, match=f"checkpoint='.*state' belongs to another fit: .*{name} differs"):
        regressor().fit(**(data | {name: other[name]}), checkpoint=path)


class ScaledError(SquaredError):
    """A loss of one's own with a parameter that its class does not tell."""

    def __init__(self, at):
        super().__init__()
        object.__setattr__(self, "at", at)

    def gradient(self, h, y):
        return super().gradient(h, y) * self.at


def scaled(by):
    return lambda y, p: by * float(np.mean(np.abs(y - p)))


@pytest.mark.parametrize(
    ("one", "other", "named"),
    [
        ({"loss": ScaledError(0.1)}, {"loss": ScaledError(0.9)}, "loss"),
        ({"eval_metric": scaled(1.0)}, {"eval_metric": scaled(2.0)}, "eval_metric"),
    ],
)
def test_objects_of_ones_own_are_told_apart_by_what_they_hold(tmp_path, one, other, named):
    held = {"eval_set": [(X[:50], Y[:50])]}
    regressor(epochs=1, **one).fit(X, Y, **held, checkpoint=tmp_path / "state")
    with pytest.raises(ValueError, match=f"belongs to another fit: {named}"):
        regressor(**other).fit(X, Y, **held, checkpoint=tmp_path / "state")
    assert regressor(epochs=2, **one).fit(X, Y, **held, checkpoint=tmp_path / "state").n_iter_ == 2
