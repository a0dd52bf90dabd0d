"""Comparisons in this process: one of its own for each model takes seconds to start."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from boostbp import compare
from boostbp.comparison import comparison
from boostbp.comparison.measuring import measure


@contextmanager
def one_process(data):
    """Yield what trains a model here, as `model_processes` yields what trains it elsewhere."""
    yield SimpleNamespace(run=lambda job: measure(job, data))


def compared(X, y, **options):
    """Compare models in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparison, "model_processes", one_process)
        return compare(X, y, **options)
