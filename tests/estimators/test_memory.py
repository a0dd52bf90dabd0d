"""Fits leave nothing behind."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from helpers import WITH_CATEGORIES

# Resident memory is read after each fit, on Linux from the kernel: what a process once had says nothing of now.
SCRIPT = """
import gc, json, os, sys
import numpy as np
from boostbp import BoostBPRegressor

def resident():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

rng = np.random.default_rng(0)
X = rng.standard_normal((2000, 40))
y = X[:, 0] * X[:, 1]
seen = []
gc.freeze()  # what was imported is not looked through after each fit
for number in range(70):
    small = {"max_depth": 2, "epochs": 1, "early_stopping": False}
    layer = {"n_estimators": 2, "base": "zero"}
    small |= {"hidden": layer, "output": layer}
    BoostBPRegressor((2,), backend=sys.argv[1], random_state=number, **small).fit(X, y)
    seen.append(resident())
print(json.dumps({"seen": seen, "data": X.nbytes}))
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the memory of the process from /proc")
@pytest.mark.parametrize("backend", WITH_CATEGORIES)
def test_memory_does_not_grow(backend):
    done = subprocess.run([sys.executable, "-c", SCRIPT, backend], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    seen = found["seen"][10:]  # 60 fits, after those that compile and fill the allocator, which grows in steps of 2 MB
    growth = min(seen[-10:]) - min(seen[:10])
    # 640 kB of data are bound again by each fit: if a fit kept as much as a tenth of it, 50 fits would show.
    assert growth < 5 * found["data"], f"{growth / 50:.0f} bytes a fit"
