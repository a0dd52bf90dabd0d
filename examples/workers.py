"""One model of the rows of two processes, without a cluster: a tracker, and a call of `fit_worker` in each process."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import numpy as np

from boostbp import BoostBPRegressor
from boostbp.distributed import Address, fit_worker, tracked

WORKERS = 2


def table() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(3000, 5))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=len(X))


def model() -> BoostBPRegressor:
    return BoostBPRegressor(
        (8,), deep=True, backend="xgboost", epochs=5, n_estimators=30, early_stopping=False, random_state=0
    )


def work(address: Address, rank: int) -> BoostBPRegressor:
    """What each process does; here it takes its rows of a table that all can make, elsewhere of a file or a query."""
    X, y = table()
    rows = slice(rank * len(X) // WORKERS, (rank + 1) * len(X) // WORKERS)
    return fit_worker(model(), X[rows], y[rows], address=address, rank=rank)


def main() -> None:
    X, y = table()
    with tracked(WORKERS) as address, ProcessPoolExecutor(WORKERS, multiprocessing.get_context("spawn")) as pool:
        together, other = [job.result() for job in [pool.submit(work, address, rank) for rank in range(WORKERS)]]
    alone = model().fit(X, y)
    print(f"R2 of {WORKERS} workers {together.score(X, y):.4f}, of one machine {alone.score(X, y):.4f}")
    print(f"largest difference of the workers' predictions {np.abs(together.predict(X) - other.predict(X)).max():g}")
    print(f"largest difference from one machine {np.abs(together.predict(X) - alone.predict(X)).max():.1e}")


if __name__ == "__main__":
    main()
