"""One model of rows in Parquet files, fitted by actors of Ray: a file or more for each actor.

python examples/ray_workers.py [--quick] [--workers 2]

Ray wants an environment of its own: pip install 'boostbp[xgboost,frames]' ray.
"""

from __future__ import annotations

import argparse
import importlib.util
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from boostbp import BoostBPRegressor
from boostbp.distributed import Address, WorkersLostError, fit_worker, tracked

LABEL = "price"


def write_parts(folder: str, n_rows: int) -> list[str]:
    """Write four files, as another program may have left them in a folder that all machines see."""
    rng, paths = np.random.default_rng(0), []
    for number in range(4):
        rows = pd.DataFrame(rng.uniform(-2, 2, size=(n_rows // 4, 3)), columns=["a", "b", "c"])
        rows["city"] = rng.choice(["Bonn", "Hof", "Kiel", "Ulm"], len(rows))
        rows[LABEL] = np.sin(2 * rows["a"]) + rows["b"] * rows["c"] + (rows["city"] == "Ulm")
        paths.append(str(Path(folder) / f"part{number}.parquet"))
        rows.to_parquet(paths[-1])
    return paths


class Worker:
    """An actor that holds the rows of some files."""

    def __init__(self, paths: list[str]) -> None:
        self.rows = pd.concat([pd.read_parquet(path) for path in paths])

    def fit(self, model: BoostBPRegressor, address: Address, rank: int, **fit: Any) -> BoostBPRegressor:
        """Return the model of the rows of all actors; each of them calls this at the same time."""
        X, y = self.rows.drop(columns=LABEL), self.rows[LABEL]
        return fit_worker(model, X, y, address=address, rank=rank, **fit)


@contextmanager
def started(paths: list[str], n_workers: int) -> Iterator[list[Any]]:
    """Start the actors, all or none, and let them read neighbouring files in the order of the ranks."""
    import ray
    from ray.util.placement_group import placement_group, remove_placement_group
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    group = placement_group([{"CPU": 1}] * n_workers, strategy="SPREAD")
    try:
        ray.get(group.ready(), timeout=60)  # an actor that waited for a free CPU would count as lost
        place = PlacementGroupSchedulingStrategy(group)
        actor = ray.remote(Worker).options(num_cpus=1, scheduling_strategy=place)  # one that died is not restarted
        ends = [len(paths) * rank // n_workers for rank in range(n_workers + 1)]
        workers = [actor.remote(paths[begin:end]) for begin, end in pairwise(ends)]
        ray.get([worker.__ray_ready__.remote() for worker in workers])
        yield workers
    finally:
        remove_placement_group(group)  # ends the actors, too


def fit(workers: list[Any], model: BoostBPRegressor, *, timeout: float = 60.0, **fit: Any) -> BoostBPRegressor:
    """Return the model of all rows, or raise the error of the worker that failed, with its rank in a note."""
    import ray

    errors = []
    with tracked(len(workers), host=ray.util.get_node_ip_address(), timeout=timeout) as address:
        fits = [worker.fit.remote(model, address, rank, **fit) for rank, worker in enumerate(workers)]
        for rank, job in enumerate(fits):
            try:
                ray.get(job)
            except ray.exceptions.RayError as error:
                error.add_note(f"On the Ray worker {rank} of {len(workers)}.")
                errors.append(error)
        if errors:  # that of the cause, rather than of a worker that only lost it
            raise min(errors, key=lambda error: isinstance(error, WorkersLostError))
    return ray.get(fits[0])


def main(argv: list[str] | None = None) -> None:
    """Fit on actors and on one machine, and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few rows and rounds")
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args(argv)
    if importlib.util.find_spec("ray") is None:
        print("Ray is not installed: pip install 'boostbp[xgboost,frames]' ray, in an environment of its own.")
        return
    import ray

    rounds = {"epochs": 2, "n_estimators": 10} if args.quick else {"epochs": 5, "n_estimators": 30}
    model = BoostBPRegressor((8,), deep=True, backend="xgboost", n_jobs=1, random_state=0, **rounds)
    ray.init(num_cpus=args.workers, include_dashboard=False, log_to_driver=False)  # ray.init("auto") on a cluster
    try:
        with tempfile.TemporaryDirectory() as folder:
            paths = write_parts(folder, 4_000 if args.quick else 60_000)
            with started(paths, args.workers) as workers:
                begun = time.perf_counter()
                together = fit(workers, model)
                seconds = [time.perf_counter() - begun]
            rows = pd.concat([pd.read_parquet(path) for path in paths])
    finally:
        ray.shutdown()
    begun = time.perf_counter()
    alone = model.fit(rows.drop(columns=LABEL), rows[LABEL])
    seconds.append(time.perf_counter() - begun)
    predicted = [fitted.predict(rows.drop(columns=LABEL)) for fitted in (together, alone)]
    print(f"{len(rows):,} rows: {args.workers} workers {seconds[0]:.1f} s, one machine {seconds[1]:.1f} s")
    print(f"largest difference of predictions {np.abs(predicted[0] - predicted[1]).max():.1e}")


if __name__ == "__main__":
    main()
