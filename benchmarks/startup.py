"""What a new process waits for: imports, and the first fit and prediction beside the second."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np

__all__ = ["startup"]

_FIT = """
import time
import lightgbm
from sklearn.datasets import load_diabetes
from boostbp import BoostBPRegressor
X, y = load_diabetes(return_X_y=True)
for _ in range(2):
    begun = time.process_time()
    model = BoostBPRegressor(quality=1, n_jobs=1).fit(X, y)
    print(time.process_time() - begun)
    begun = time.process_time()
    model.predict(X[:1])
    print(time.process_time() - begun)
"""
_IMPORT = "import time; begun = time.process_time(); import {}; print(time.process_time() - begun)"


def _run(code: str) -> list[float]:
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return [float(line) for line in done.stdout.split()]


def startup(*, repeats: int) -> dict[str, Any]:
    """Return CPU seconds of the first and second fit and prediction of a process, and of imports."""
    fits = np.median([_run(_FIT) for _ in range(repeats)], axis=0)
    ours, base = (
        float(np.median([_run(_IMPORT.format(names)) for _ in range(repeats + 2)]))
        for names in ("boostbp", "lightgbm, sklearn")
    )
    return {
        "first fit seconds": fits[0],
        "first fit over the second": fits[0] / fits[2],
        "first prediction of a row, milliseconds": 1000.0 * fits[1],
        "import seconds": ours,
        "import ratio to lightgbm and sklearn": ours / base,
    }
