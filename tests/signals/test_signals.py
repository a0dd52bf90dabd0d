"""What a handler of Ctrl-C raises while a model is made or used arrives; the estimator is as it was, or has a model."""

from __future__ import annotations

import signal

import pytest
from helpers import BACKENDS, needs_torch

from tests.signals.__main__ import run

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL, so no os.kill")


@pytest.mark.parametrize(
    ("backend", "handler", "other"),
    [
        ("lightgbm", "user", {"n_jobs": 2}),
        *(
            pytest.param(*kind, marks=pytest.mark.slow)
            for kind in (
                ("xgboost", "user", {"threaded": True, "n_jobs": 2}),
                ("lightgbm", "user", {"trials": 15}),
                ("xgboost", "user", {"trials": 15}),
                ("xgboost", "user", {"n_jobs": 2, "deep": "auto"}),
                ("lightgbm", "python", {"n_jobs": 2, "deep": "auto"}),
                ("xgboost", "python", {"work": "fit_again"}),
                ("lightgbm", "user", {"n_jobs": 2, "work": "use", "model": "classifier"}),
            )
        ),
        pytest.param("lightgbm", "python", {"model": "mixture"}, marks=[needs_torch, pytest.mark.slow]),
    ],
    ids=str,
)
def test_what_a_handler_raises_arrives(backend, handler, other):
    if backend not in BACKENDS:
        pytest.skip(f"needs {backend}")
    kind = {"backend": backend, "handler": handler, "trials": 6, **other}
    assert run(kind) == {"heard": kind["trials"]}
