"""Fits whose trees grow on a graphics card beside the same fits on the processor, in turn, by wall-clock seconds."""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from boostbp import BoostBPRegressor

ROWS = (10_000, 100_000, 1_000_000)
FEATURES = 50
MODELS: dict[str, dict[str, Any]] = {"quality=1": {"quality": 1}, "quality=2": {"quality": 2}}


def main(argv: list[str] | None = None) -> list[dict[str, Any]]:
    """Parse the arguments, and print seconds and error of both fits of each library, model and number of rows."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.card", description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS)
    parser.add_argument("--backends", nargs="+", default=("lightgbm", "xgboost"))
    parser.add_argument("--models", nargs="+", default=tuple(MODELS), choices=tuple(MODELS))
    parser.add_argument("--device", default="cuda")
    options, found = parser.parse_args(argv), []
    for n_rows in options.rows:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n_rows + 10_000, FEATURES))
        y = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + X[:, 3] + rng.normal(size=len(X))
        for backend in options.backends:
            for name in options.models:
                row: dict[str, Any] = {"rows": n_rows, "backend": backend, "model": name}
                for device in ("cpu", options.device):
                    model = BoostBPRegressor(
                        **MODELS[name], backend=backend, backend_params={"device": device}, random_state=0
                    )
                    start = time.perf_counter()
                    model.fit(X[:n_rows], y[:n_rows])
                    row[f"{device} s"] = round(time.perf_counter() - start, 2)
                    row[f"{device} R2"] = round(model.score(X[n_rows:], y[n_rows:]), 4)
                found.append(row)
                print(row, flush=True)
    return found


if __name__ == "__main__":
    main()
