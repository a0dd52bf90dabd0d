"""Layer health: sentences where something is wrong, and none where all is well."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace

import pytest
from flat_parameters import parameters

from boostbp import BoostBPClassifier, BoostBPRegressor
from boostbp.losses import Logistic
from boostbp.model.health import HealthWarning, health_of, warn_if_ill
from tests.model.models import CASES, FLOWERS, LIBRARIES, SMALL, SPECIES, fitted, table


@pytest.mark.parametrize(("kind", "backend"), CASES)
def test_report_is_of_the_epoch_that_the_model_is_of(kind, backend):
    model, _ = fitted(kind, backend)
    health, best = model.health(), model.history_[model.history_.best_epoch]
    assert health.epoch == best.epoch
    assert len(health.layers) == len(model.history_[0].stds)
    for number, layer in enumerate(health.layers):
        assert (layer.layer, layer.dead, layer.std) == (number, best.dead[number], best.stds[number])
        assert 0.0 < layer.explained <= 1.0
        assert layer.gap == pytest.approx(best.explained[number] - best.explained_held[number], nan_ok=True)
        assert f"  layer {number}" in str(health)
    json.dumps(health.to_dict(), allow_nan=False)


@pytest.mark.parametrize("backend", LIBRARIES)
def test_no_gradient_is_a_warning_and_a_sentence(backend):
    """An output layer without trees or base is constant: nothing comes back."""
    frame, y = table()
    model = BoostBPRegressor(
        (3,), **parameters(backend=backend, deep=True, base="zero", n_estimators=[4, 0], epochs=2, random_state=0)
    )
    with pytest.warns(HealthWarning, match="dead at hidden layer 0: 100% of the rows.*try base='ridge'"):
        model.fit(frame, y)
    assert any("Back-propagation is dead at hidden layer 0" in sentence for sentence in model.health().warnings)
    with warnings.catch_warnings():  # nothing was to be moved, so nothing is dead
        warnings.simplefilter("error")
        model.set_params(epochs=0).fit(frame, y)


def test_a_gradient_that_the_loss_does_not_have_is_not_missed():
    """Rows without a loss gradient of their own do not count as dead."""
    X = FLOWERS[:100]
    model = BoostBPClassifier((2,), epochs=2, loss=NoHarm(), deep=True, early_stopping=False, random_state=0)
    model.fit(X, SPECIES[:100])
    assert [epoch.dead for epoch in model.history_.epochs] == [(0.0,)] * 3


class NoHarm(Logistic):
    """Logistic loss that looks away from the first class."""

    def gradient(self, raw, y):
        return super().gradient(raw, y) * y


def test_sentences():
    history = fitted("regressor", "lightgbm")[0].history_
    assert not [s for s in health_of(history).warnings if "No epoch" not in s]

    def told(**changes):
        epochs = [*history.epochs[:-1], replace(history[-1], **changes)]
        return health_of(replace(history, epochs=epochs, best_epoch=len(epochs) - 1))

    memorised = "Hidden layer 0 has memorised training rows: a linear regression on it explains 90% of the target there"
    cases = {
        "Back-propagation is dead at hidden layer 1: 95%": {"dead": (0.0, 0.95)},
        "Hidden layer 0 has collapsed: its units have a standard deviation of 1e-05, and had 1": {"stds": (1e-5, 1.0)},
        "Hidden layer 1 does not follow its targets": {"r2": (0.9, -5.0, 0.9)},
        f"{memorised}, and 20% on": {"explained": (0.9, 0.9), "explained_held": (0.2, 0.8)},
    }
    for sentence, changes in cases.items():
        health = told(**changes)
        assert len(health.warnings) == 1, health.warnings
        assert health.warnings[0].startswith(sentence)
        assert "ry " in health.warnings[0]  # the cure
        assert health.warnings[0] in str(health)


def test_a_collapse_is_a_warning():
    history = fitted("regressor", "lightgbm")[0].history_
    gone = [replace(epoch, stds=(1e-9, 1.0)) for epoch in history.epochs[1:]]
    with pytest.warns(HealthWarning, match="Hidden layer 0 has collapsed"):
        warn_if_ill(replace(history, epochs=[history[0], *gone], best_epoch=1))
    constant = [replace(epoch, stds=(0.0, 0.0), dead=(1.0, 1.0)) for epoch in history.epochs]
    with warnings.catch_warnings():  # constant features: there was nothing to learn
        warnings.simplefilter("error")
        warn_if_ill(replace(history, epochs=constant))


@pytest.mark.parametrize("backend", LIBRARIES)
def test_ordinary_fits_do_not_warn(backend):
    frame, y = table()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for changes in ({"base": "zero"}, {"output_target": "moved", "refit_order": "downward", "step": "plain"}):
            BoostBPRegressor(**parameters(backend=backend, **(SMALL | changes))).fit(frame, y)
