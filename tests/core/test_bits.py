"""Builds for vector registers of any width give the same bits, in every loop that fits and predictions call."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import hatch_build
from boostbp import BoostBPClassifier, core, fit_layer, losses
from boostbp.core.binding import Loop
from boostbp.network.layers.boosting import Boosting

CALLS = 4  # of a loop that are repeated for each fit
PLAIN = "-DBOOSTBP_ONE_VERSION"
WIDTHS, CHOSEN = ("avx2", "avx512f"), "chosen when loaded"
BUILDS = {"none": [PLAIN], **{name: [PLAIN, f"-m{name}"] for name in WIDTHS}, CHOSEN: []}
# Calls each loop with recorded arguments and prints a digest of all of its arrays.
REPEAT = """
import hashlib, pickle, sys
import numpy as np
from boostbp import core

def arrays(args):
    for arg in args:
        if isinstance(arg, tuple):
            yield from arrays(arg)
        elif isinstance(arg, np.ndarray):
            yield arg

with open(sys.argv[1], "rb") as file:
    recorded = pickle.load(file)
for name, calls in sorted(recorded.items()):
    digest = hashlib.sha256()
    for args in calls:
        getattr(core, name)(*args)
        for array in arrays(args):
            if array.dtype.kind == "f":
                array[np.isnan(array)] = np.nan  # of two NaN, compilers may pass on the sign of either
            digest.update(array)
    print(name, digest.hexdigest())
"""


def copied(arg):
    return tuple(map(copied, arg)) if isinstance(arg, tuple) else arg.copy() if isinstance(arg, np.ndarray) else arg


def use_all():
    """Yield after each of some fits, with one output and several, of degree 1 and 2, with and without weights."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 5))
    y = X[:, 0] * X[:, 1] + np.abs(X[:, 2])
    X[:, 4] = rng.integers(0, 6, len(X))
    X[rng.random(X.shape) < 0.1] = np.nan
    Y, weight = np.column_stack([y, y**2, -y]), rng.random(len(y))
    for target, sample_weight, options in (
        (y, None, {"basis": "quadratic"}),
        (y, weight, {"basis": "linear", "standardize": False}),
        (Y, weight, {"basis": "quadratic", "multi_strategy": "multi_output_tree", "standardize": False}),
        (Y, None, {"basis": "linear", "multi_strategy": "multi_output_tree", "base": "additive"}),
        (y, weight, {"basis": "quadratic", "monotone_constraints": (1, -1, 0, 0, 0)}),
        (y, None, {"max_leaves": 300, "max_depth": -1, "min_samples_leaf": 1}),
    ):
        layer = fit_layer(X, target, {"n_estimators": 3} | options, sample_weight=sample_weight, categorical=(4,))
        for rows in (X, X[:3]):
            output, trace = layer.forward(rows)
            trace.vjp(np.ones_like(output)), trace.jacobian(), layer.predict(rows)
        yield
    for backend, columns in (("xgboost", 5), ("sklearn", 4)):
        fit_layer(X[:, :columns], y, {"n_estimators": 3}, backend=backend, categorical=(4,)[: columns - 4])
        yield
    small = {"epochs": 2, "n_estimators": 2, "random_state": 0}
    labels = np.digitize(y, [0.5, 1.5])
    for rows in (X, sp.csr_matrix(np.nan_to_num(X) * (np.abs(X) > 1))):
        for deep in (False, True):
            model = BoostBPClassifier((3,), deep=deep, **small).fit(rows, labels)
            model.predict(rows), model.predict(rows[:1]), model.attributions(X[:20])
            yield
    queries = np.column_stack([labels, np.arange(len(y)) // 20]).astype(float)
    for loss in (losses.LambdaRank(), losses.PairwiseRanking()):
        loss.derivatives(rng.normal(size=(len(y), 1)), queries)
        yield


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A file with arguments of all loops that some fits and predictions call."""
    found = defaultdict(list)
    left = defaultdict(lambda: CALLS)
    call = Loop.__call__

    def record(loop, *args):
        if left[loop.__name__]:
            left[loop.__name__] -= 1
            found[loop.__name__].append(copied(args))
        return call(loop, *args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Loop, "__call__", record)
        patch.setattr(Boosting, "boost_in_core", lambda _: False)  # with trees that are known, not with addresses
        patch.setattr(Loop, "bind_first", lambda loop, *first: lambda *last: record(loop, *first, *last))
        for _ in use_all():
            left.clear()
    path = tmp_path_factory.mktemp("calls") / "calls"
    path.write_bytes(pickle.dumps(dict(found)))
    return path, set(found)


def digests(folder, calls, flags):
    """Return a digest of what each loop of a build computes; the core is a copy, which no other room is beside."""
    package = folder / "boostbp"
    shutil.copytree(Path(core.__file__).parent, package / "core", ignore=shutil.ignore_patterns("lib_*", "__pycache__"))
    (package / "__init__.py").touch()
    hatch_build.build(flags=flags, to=package / "core")
    environment = os.environ | {"PYTHONPATH": str(folder)}
    done = subprocess.run([sys.executable, "-c", REPEAT, calls], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return dict(line.split() for line in done.stdout.splitlines())


def test_the_fits_call_every_loop(recorded):
    _, names = recorded
    assert names == {value.__name__ for value in vars(core).values() if isinstance(value, Loop)}


@pytest.fixture(scope="module")
def expected(recorded, tmp_path_factory):
    if hatch_build.compiler() is None:
        pytest.skip("there is no C compiler")
    return digests(tmp_path_factory.mktemp("none"), recorded[0], BUILDS["none"])


@pytest.mark.slow
@pytest.mark.parametrize("vectors", [*WIDTHS, CHOSEN])
def test_vectors_of_any_width_give_the_same_bits(vectors, recorded, expected, tmp_path):
    if vectors.startswith("avx"):
        cpu = Path("/proc/cpuinfo")
        if not cpu.exists() or vectors not in cpu.read_text(encoding="utf-8").split():
            pytest.skip(f"this processor has no {vectors}, or the system does not tell")
    assert digests(tmp_path, recorded[0], BUILDS[vectors]) == expected
    assert expected
