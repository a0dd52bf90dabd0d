"""Comparisons in this process, as one of its own for each model takes seconds to start; histories made up."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from boostbp import compare
from boostbp.comparison import comparison
from boostbp.comparison.measuring import measure
from boostbp.network.choice import NETWORK, CandidateResult, ModelChoice
from boostbp.network.history import Epoch, History, Stop


@contextmanager
def one_process(data):
    """Yield what trains a model here, as `model_processes` yields what trains it elsewhere."""
    yield SimpleNamespace(run=lambda job: measure(job, data))


def compared(X, y, **options):
    """Compare models in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparison, "model_processes", one_process)
        return compare(X, y, **options)


def history(epochs=4, layers=1, sets=("valid_0",)):
    """Numbers that differ by epoch, layer and set; nothing has moved or been fitted again at epoch 0."""
    rows = []
    for e in range(epochs):
        of = np.arange(layers) + 0.1 * e
        moved, refit = tuple(of * 0.3), tuple(0.9 - 0.01 * of) if e else ()
        dead, metrics = (0.95,) * layers, {name: (2 + k) / (e + 1) for k, name in enumerate(sets)}
        probes = tuple(0.5 + 0.1 * of), tuple(0.4 + 0.1 * of)
        rows.append(Epoch(e, 1.0 / (e + 1), metrics, 1.0, tuple(of), dead, moved, tuple(1.0 + of), refit, *probes))
    return History(rows, epochs - 2, Stop.EPOCHS, "log_loss")


def weighed_at(shown, weight):
    """The same history of a network that has this weight in an average with a single layer."""
    candidates = (
        CandidateResult("single layer", 1.0, 1.0 - weight, None),
        CandidateResult(NETWORK, 1.0, weight, NETWORK),
    )
    return replace(shown, choice=ModelChoice(candidates, 0.0, 0.1))
