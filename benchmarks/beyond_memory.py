"""Fits on rows that are read block by block against the same rows in memory: anonymous memory, seconds, difference.

Each fit has a process of its own, one thread, and the folder of Parquet files or the arrays that are made beforehand.
Memory that mapped files take is the operating system's to give to others, so what counts is anonymous memory, above
what the process has after imports and compiled loops; it is looked at some fifty times a second. Seconds are those of
the processor, of fits side by side on a busy machine, too. Linux only.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp import BoostBPRegressor
from boostbp.runtime.arrays import scratch_folder
from boostbp.runtime.messages import require

Floats = NDArray[np.float64]
FEATURES = 30
FILE_ROWS = 250_000
MODELS: dict[str, dict[str, Any]] = {
    "network": {
        "deep": True,
        "hidden_layer_sizes": (4,),
        "epochs": 2,
        "early_stopping": False,
        "hidden": {"n_estimators": 5},
        "n_estimators": 10,
    },
    "quality=1": {"quality": 1},
}


def main(argv: list[str] | None = None) -> list[dict[str, Any]]:
    """Parse the arguments, make the rows, and print what each fit took, and each pair of them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.beyond_memory", description=__doc__)
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--backend", action="append", choices=("lightgbm", "xgboost"), help="again for several")
    parser.add_argument("--model", action="append", choices=tuple(MODELS), help="again for several")
    options = parser.parse_args(argv)
    found = []
    with tempfile.TemporaryDirectory(dir=scratch_folder()) as name:
        folder = Path(name)
        _write(folder, options.rows)
        for backend in options.backend or ("lightgbm", "xgboost"):
            for model in options.model or MODELS:
                both = {how: _measured(folder, backend, model, how) for how in ("blocks", "memory")}
                blocks, memory = both["blocks"], both["memory"]
                found.append(
                    {
                        "backend": backend,
                        "model": model,
                        "MB": round(blocks["MB"]),
                        "MB in memory": round(memory["MB"]),
                        "seconds": round(blocks["seconds"], 1),
                        "seconds in memory": round(memory["seconds"], 1),
                        "ratio": round(blocks["seconds"] / memory["seconds"], 2),
                        "difference": float(np.abs(blocks["predicted"] - memory["predicted"]).max()),
                    }
                )
                print("  ".join(f"{key}: {value}" for key, value in found[-1].items()), flush=True)
    return found


def _write(folder: Path, n_rows: int) -> None:
    """Write the rows as Parquet files and as arrays, some at a time."""
    pa, parquet = _arrow("pyarrow"), _arrow("pyarrow.parquet")
    (folder / "parquet").mkdir()
    X = np.lib.format.open_memmap(folder / "X.npy", "w+", np.float64, (n_rows, FEATURES))
    y = np.lib.format.open_memmap(folder / "y.npy", "w+", np.float64, (n_rows,))
    rng = np.random.default_rng(0)
    for first in range(0, n_rows, FILE_ROWS):
        part = rng.normal(size=(min(FILE_ROWS, n_rows - first), FEATURES))
        target = np.sin(2 * part[:, 0]) + part[:, 1] * part[:, 2] + part[:, 3] + 0.3 * rng.normal(size=len(part))
        X[first : first + len(part)], y[first : first + len(part)] = part, target
        table = pa.table({**{f"x{j}": column for j, column in enumerate(part.T)}, "y": target})
        parquet.write_table(table, folder / "parquet" / f"{first:010}.parquet")


def _arrow(module: str) -> Any:
    return require(module, extra="frames", what="this benchmark")


def _measured(folder: Path, backend: str, model: str, how: str) -> dict[str, Any]:
    """Peak of anonymous memory in MB, seconds, and predictions of a fit in a process of its own."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_fit, args=(there, folder, backend, model, how))
    process.start()
    here.recv()
    before = peak = _anonymous(process.pid)
    here.send("begin")
    while not here.poll(0.02):
        peak = max(peak, _anonymous(process.pid))
    seconds, predicted = here.recv()
    process.join()
    megabytes = (peak - before) / 1e6
    print(f"{backend} {model}, {how}: {megabytes:.0f} MB, {seconds:.1f} seconds", flush=True)
    return {"MB": megabytes, "seconds": seconds, "predicted": predicted}


def _fit(pipe: Connection, folder: Path, backend: str, model: str, how: str) -> None:
    estimator = BoostBPRegressor(backend=backend, random_state=0, **MODELS[model])
    few = np.random.default_rng(1).normal(size=(2000, FEATURES))
    BoostBPRegressor(backend=backend, random_state=0, **MODELS[model]).fit(few, few[:, 0])  # what is imported on use
    pipe.send("ready")
    pipe.recv()
    begun = time.process_time()
    if how == "blocks":
        estimator.fit(folder / "parquet", y="y")
    else:
        estimator.fit(np.load(folder / "X.npy"), np.load(folder / "y.npy"))
    seconds = time.process_time() - begun
    rows = np.load(folder / "X.npy", mmap_mode="r")[:100_000]
    pipe.send((seconds, _predicted(estimator, rows)))


def _predicted(estimator: Any, rows: Floats) -> Floats:
    if hasattr(estimator, "feature_names_in_"):
        pa = _arrow("pyarrow")
        rows = pa.table(dict(zip(estimator.feature_names_in_, np.ascontiguousarray(rows.T), strict=True)))
    predicted: Floats = estimator.predict(rows)
    return predicted


def _anonymous(process: int | None) -> int:
    """Bytes of anonymous memory of a process."""
    lines = Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:"))


if __name__ == "__main__":
    main()
