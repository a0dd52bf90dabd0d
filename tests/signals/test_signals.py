"""Whatever a handler raises while a model is made or used arrives, and the estimator is as it was or has a model."""

from __future__ import annotations

import signal

import pytest
from helpers import BACKENDS, needs_torch

from tests.signals.__main__ import run

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL, so no os.kill")


@pytest.mark.parametrize(
    ("backend", "handler", "other"),
    [
        ("lightgbm", "term", {"n_jobs": 2}),
        *(
            pytest.param(*kind, marks=pytest.mark.slow)
            for kind in (
                ("xgboost", "alarm", {"threaded": True, "n_jobs": 2}),
                ("lightgbm", "alarm", {"trials": 15}),
                ("xgboost", "alarm", {"trials": 15}),
                ("xgboost", "own_int", {"n_jobs": 2, "deep": "auto"}),
                ("lightgbm", "ctrl_c", {"n_jobs": 2, "deep": "auto"}),
                ("xgboost", "ctrl_c", {"work": "fit_again"}),
                ("lightgbm", "alarm", {"n_jobs": 2, "work": "use", "model": "classifier"}),
            )
        ),
        pytest.param("lightgbm", "ctrl_c", {"model": "mixture"}, marks=[needs_torch, pytest.mark.slow]),
    ],
    ids=str,
)
def test_what_a_handler_raises_arrives(backend, handler, other):
    if backend not in BACKENDS:
        pytest.skip(f"needs {backend}")
    kind = {"backend": backend, "handler": handler, "trials": 6, **other}
    assert run(kind) == {"heard": kind["trials"]}
