"""What the first call costs: import, compilation, and both once more from the cache."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from typing import Any

import numpy as np

__all__ = ["startup"]

_FIT = """
import time
import numpy as np
import lightgbm
from boostbp import fit_layer
X = np.random.default_rng(0).standard_normal((200, 3))
start = time.perf_counter()
layer = fit_layer(X, X[:, :2], n_estimators=3)
layer.forward(X)[1].vjp(np.ones((200, 2)))
print(time.perf_counter() - start)
"""


def _run(code: str, cache: str) -> float:
    timed = (
        f"import time; s = time.perf_counter(); {code}; print(time.perf_counter() - s)" if "\n" not in code else code
    )
    environment = os.environ | {"NUMBA_CACHE_DIR": cache}
    done = subprocess.run([sys.executable, "-c", timed], env=environment, check=True, capture_output=True, text=True)
    return float(done.stdout.split()[-1])


def startup(*, repeats: int) -> dict[str, Any]:
    """Seconds of fit, forward and backward pass of a small layer in a fresh process; ratio of import times."""
    with tempfile.TemporaryDirectory() as cache:
        first = _run(_FIT, cache)
        cached = [_run(_FIT, cache) for _ in range(repeats)]
        imports = {
            name: [_run(f"import {name}", cache) for _ in range(repeats + 2)]
            for name in ("boostbp", "sklearn.base, numba")
        }
    ours, base = (float(np.median(times)) for times in imports.values())
    return {
        "first call seconds": first,
        "cached call seconds": float(np.median(cached)),
        "import seconds": ours,
        "import ratio to sklearn.base and numba": ours / base,
    }
