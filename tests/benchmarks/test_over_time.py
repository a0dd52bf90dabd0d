"""The benchmarks that asv runs on many commits go through on this one; no time is asserted."""

from __future__ import annotations

import pytest

from benchmarks.asv import speed


@pytest.mark.slow
def test_every_benchmark_of_a_fitted_model_runs(here, tune):
    tune(speed, ROWS=200, MANY=speed.MANY[:50])
    fitted = speed.Fitted()
    models = fitted.setup_cache()
    timed = [name for name in dir(fitted) if name.startswith("time_")]
    assert len(timed) == 4
    for name in timed:
        for model in fitted.params:
            getattr(fitted, name)(models, model)


@pytest.mark.slow
def test_a_new_installation_imports_and_fits():
    assert 0 < speed.track_first_fit("installation") < 60
