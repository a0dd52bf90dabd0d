"""SIGKILL at moments all over a fit, then the same call again: ``python -m tests.kills --moments 20``.

The estimator is the default one, with its checkpoint: the network, its variants and the single layers that it is
weighed against. Each fit that goes on must end in the model of the fit that nobody killed, bit for bit.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
CHILD = """
import hashlib, json, sys
from sklearn.datasets import load_breast_cancer, load_diabetes
import boostbp
from boostbp.network.stored import network_of

spec = json.loads(sys.argv[1])
if spec["task"] == "regression":
    kind, (X, y) = boostbp.BoostBPRegressor, load_diabetes(return_X_y=True)
else:
    kind, (X, y) = boostbp.BoostBPClassifier, load_breast_cancer(return_X_y=True)
seen = []
model = kind(backend=spec["backend"], random_state=0, **spec["parameters"])
print("begun", flush=True)
model.fit(X, y, checkpoint=spec["checkpoint"], callbacks=[lambda progress: seen.append(progress.epoch.epoch)])
facts, arrays = network_of(model.network_)
digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
for name in sorted(arrays):
    digest.update(name.encode() + arrays[name].tobytes())
digest.update(model.predict(X).tobytes())
print(json.dumps({"model": digest.hexdigest(), "first": seen[0] if seen else None}))
"""


def begun(spec: dict[str, Any]) -> subprocess.Popen[str]:
    """A child that is about to fit."""
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, json.dumps(spec)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        cwd=ROOT,
    )  # fmt: skip
    assert child.stdout is not None
    if child.stdout.readline() != "begun\n":
        raise RuntimeError(child.communicate()[1])
    return child


def ended(child: subprocess.Popen[str]) -> dict[str, Any]:
    """What a child tells that came to its end."""
    out, error = child.communicate()
    if child.returncode:
        raise RuntimeError(error)
    told: dict[str, Any] = json.loads(out)
    return told


def run(spec: dict[str, Any], moments: int) -> Counter[str]:
    """Kill a fit at so many moments; how many went on to the same model, and from where."""
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Path(folder) / "state"
        spec = spec | {"checkpoint": str(checkpoint)}
        start = time.monotonic()
        expected = ended(begun(spec))
        seconds = time.monotonic() - start
        for number in range(moments):
            checkpoint.unlink(missing_ok=True)
            child = begun(spec)
            time.sleep(seconds * (number + 0.5) / moments)
            os.kill(child.pid, signal.SIGKILL)
            child.communicate()
            killed = child.returncode == -signal.SIGKILL
            found = ended(begun(spec))
            same = "the same model" if found["model"] == expected["model"] else "ANOTHER MODEL"
            how = "resumed" if found["first"] else "begun anew" if killed else "was done before"
            counts[f"{same}, {how}"] += 1
    return counts


def main(argv: Sequence[str] | None = None) -> int:
    """Run both libraries and print the counts of each."""
    parser = argparse.ArgumentParser(prog="python -m tests.kills", description=__doc__)
    parser.add_argument("--moments", type=int, default=20, help="of each library and task")
    parser.add_argument("--tasks", nargs="+", default=["regression"], choices=["regression", "classification"])
    parser.add_argument("--n-jobs", type=int, default=1)
    options = parser.parse_args(argv)
    wrong = 0
    for task in options.tasks:
        for backend in ("lightgbm", "xgboost"):
            spec = {"task": task, "backend": backend, "parameters": {"n_jobs": options.n_jobs}}
            counts = run(spec, options.moments)
            print(task, backend, json.dumps(counts), flush=True)
            wrong += sum(n for what, n in counts.items() if "ANOTHER" in what)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
