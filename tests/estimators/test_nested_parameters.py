"""Parameters of specs are nested as scikit-learn nests them, and those of the paper are named."""

from __future__ import annotations

import dataclasses
import inspect
import re

import numpy as np
import pytest
from flat_parameters import parameters
from sklearn import clone
from sklearn.datasets import make_friedman1

from boostbp import (
    BoostBPAutoencoder,
    BoostBPClassifier,
    BoostBPRegressor,
    BoostBPSurvival,
    LayerSpec,
    paper_settings,
)
from boostbp.estimators.nested_parameters import SPECS
from boostbp.estimators.request import Request
from boostbp.network.steps import Plain, noise
from boostbp.trees.ridge import Ridge

KINDS = [BoostBPRegressor, BoostBPClassifier, BoostBPAutoencoder, BoostBPSurvival]


@pytest.mark.parametrize("kind", KINDS)
def test_parameters_are_few_explicit_and_those_of_specs_nested(kind):
    names = list(inspect.signature(kind.__init__).parameters)[1:]
    assert len(names) <= 26
    assert list(inspect.signature(kind).parameters) == names
    assert set(kind().get_params(deep=False)) == set(names)
    fields = {f"{spec}__{f.name}" for spec, held in SPECS.items() for f in dataclasses.fields(held)}
    assert set(kind().get_params()) == set(names) | fields
    described = set(re.findall(r"^    (\w+(?:, \w+)*) : ", kind.__doc__, re.MULTILINE))
    assert set(names) <= {name for line in described for name in line.split(", ")}


@pytest.mark.parametrize("documented", [*KINDS, *(kind.fit for kind in KINDS)], ids=lambda kind: kind.__qualname__)
def test_help_writes_out_what_another_class_describes(documented):
    assert " : as in `Boost" not in documented.__doc__
    entries = dict(
        re.findall(r"^ *(\w+)(?:, \w+)* : (.*?)(?=^ *\w+(?:, \w+)* : |^$|\Z)", documented.__doc__, re.M | re.S)
    )
    assert len(entries["sample_weight" if documented not in KINDS else "validation"]) > 100
    assert "others" not in entries
    assert "quality" not in entries or "4 and 5: may average several models" in documented.__doc__


def test_specs_are_set_as_scikit_learn_nests_them():
    model = BoostBPRegressor(hidden={"max_depth": 2})
    model.set_params(hidden__n_estimators=7, output__basis="linear", backprop__skip=True, epochs=5)
    assert model.hidden == LayerSpec(max_depth=2, n_estimators=7)
    assert (model.output, model.backprop.skip, model.epochs) == (LayerSpec(basis="linear"), True, 5)
    assert model.get_params()["hidden__n_estimators"] == 7
    again = clone(model)
    assert again.get_params() == model.get_params()
    with pytest.raises(ValueError, match="hidden: max_depth=-3 is not allowed"):
        model.set_params(hidden__max_depth=-3, epochs=9)
    with pytest.raises(ValueError, match=r"BoostBPRegressor has no parameter 'hiden__max_depth'"):
        model.set_params(hiden__max_depth=3)
    with pytest.raises(ValueError, match="hidden has no parameter 'num_leaves': did you mean 'max_leaves'"):
        model.set_params(hidden__num_leaves=3)
    assert again.get_params() == model.get_params()  # one that is refused changes nothing
    with pytest.raises(ValueError, match="hidden holds a spec for each hidden layer"):
        BoostBPRegressor((2, 2), hidden=[{}, {}]).set_params(hidden__max_depth=3)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("num_leaves", r"did you mean output=\{'max_leaves': ...\}, and hidden=... for hidden layers\?"),
        ("min_child_samples", "did you mean 'min_samples_leaf'"),
        ("early_stopping_rounds", "layers choose their rounds on held-out rows without it"),
        ("reg_alpha", "no L1 penalty"),
        ("callbacks", "did you mean callbacks=... of fit"),
        ("eta", "did you mean 'learning_rate'"),
        ("epoch", "did you mean 'epochs'"),
        ("zzz", "choose from .*hidden_layer_sizes, backend, hidden, output"),
    ],
)
def test_names_of_other_libraries_are_answered_by_ours(name, message):
    with pytest.raises(TypeError, match=rf"^BoostBPRegressor has no parameter '{name}': .*{message}"):
        BoostBPRegressor(**{name: 1})


ROWS, ROUNDS, BETA, DEPTH, LEAF, LAMBDA = 400, 4, 0.3, 3, 25, 1.0


def data(seed=0):
    X, y = make_friedman1(ROWS, n_features=5, random_state=seed)
    return np.ascontiguousarray(X), ((y - y.mean()) / y.std()).reshape(-1, 1)


def test_paper_settings_are_algorithm_1():
    model = BoostBPRegressor(
        (6,), **paper_settings(backend="sklearn", epochs=2, random_state=0, **parameters(n_estimators=5))
    )
    X, Y = data()
    settings = Request.of(model).settings(ROWS, 1, 0)
    assert settings.step == Plain(0.5, 0.5)
    assert settings.start is noise
    assert (settings.refit_order, settings.output_target) == ("downward", "moved")
    assert all(layer.base is None and not layer.clip for layer in settings.layers)
    assert not any(layer.growth.extra_trees for layer in settings.layers)
    assert all(layer.ridge == Ridge(1.0, penalize_constant=True, standardize=False) for layer in settings.layers)
    assert len(model.fit(X, Y.ravel()).history_) == 3
