"""The example on Ray: actors train the model of one machine, and a dead one ends the fit with its name."""

from __future__ import annotations

import os
import signal
import sys
import time

import numpy as np
import pandas as pd
import pytest
from process_workers import digest, same_trees

from boostbp import BoostBPRegressor

ray = pytest.importorskip("ray", reason="needs Ray: pip install 'boostbp[xgboost,frames]' ray")
from examples import ray_workers  # noqa: E402

pytestmark = pytest.mark.slow
NOT_DRAWN = {"hidden": {"extra_trees": False}, "output": {"extra_trees": False}}  # by which LightGBM's trees are equal
HOW = {"deep": True, "epochs": 2, "n_estimators": 8, "n_jobs": 1, "random_state": 0} | NOT_DRAWN
TIMEOUT = 300.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    for module in (__name__, "examples.ray_workers"):
        ray.cloudpickle.register_pickle_by_value(sys.modules[module])
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("empty"))  # workers import from here first, and not from the sources
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        yield
        ray.shutdown()


def table(paths):
    rows = pd.concat([pd.read_parquet(path) for path in paths])
    return rows.drop(columns=ray_workers.LABEL), rows[ray_workers.LABEL]


def die(progress):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
@pytest.mark.parametrize("n_rows", [1_000, 24_000])  # above 20,000, workers grow trees together
def test_actors_give_the_model_of_one_machine(cluster, tmp_path, backend, n_rows):
    paths = ray_workers.write_parts(str(tmp_path), n_rows)
    model = BoostBPRegressor((4,), backend=backend, **HOW)
    with ray_workers.started(paths, 2) as workers:
        assert len(set(ray.get([worker.__ray_call__.remote(lambda worker: os.getpid()) for worker in workers]))) == 2
        together = ray_workers.fit(workers, model, timeout=TIMEOUT)
    X, y = table(paths)
    alone = model.fit(X, y)
    assert type(together) is BoostBPRegressor
    assert same_trees(together, alone)
    np.testing.assert_allclose(together.predict(X), alone.predict(X), rtol=0, atol=1e-9)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_a_dead_actor_ends_the_fit_with_its_name_and_others_fit_anew(cluster, tmp_path):
    paths = ray_workers.write_parts(str(tmp_path), 1_000)
    model = BoostBPRegressor((4,), backend="xgboost", **HOW)
    with ray_workers.started(paths, 2) as workers:
        begun = time.monotonic()
        with pytest.raises(ray.exceptions.ActorDiedError, match="died unexpectedly") as raised:
            ray_workers.fit(workers, model, timeout=TIMEOUT, callbacks=[die])
        assert time.monotonic() - begun < TIMEOUT
        assert raised.value.__notes__ == ["On the Ray worker 0 of 2."]
    with ray_workers.started(paths, 2) as workers:
        fits = ray_workers.fit(workers, model, timeout=TIMEOUT), ray_workers.fit(workers, model, timeout=TIMEOUT)
    assert digest(fits[0]) == digest(fits[1])


def test_the_error_of_an_actor_comes_before_those_of_others_that_lost_it(cluster, tmp_path):
    paths = ray_workers.write_parts(str(tmp_path), 1_000)
    broken = pd.read_parquet(paths[3]).assign(**{ray_workers.LABEL: np.nan})
    broken.to_parquet(paths[3])
    with ray_workers.started(paths, 2) as workers, pytest.raises(ValueError, match="NaN") as raised:
        ray_workers.fit(workers, BoostBPRegressor((4,), **HOW), timeout=TIMEOUT)
    assert raised.value.__notes__ == ["On the Ray worker 1 of 2."]
