"""After a warm-up nothing is compiled any more."""

import importlib
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from limits import HANGS

import boostbp
from boostbp.trees import kernels, warmup
from boostbp.trees.kernels.entry import Loop

KERNELS = Path(kernels.__file__).parent


def run(code, **environment):
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, timeout=HANGS)
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")


def test_every_loop_belongs_to_one_part():
    found = {}
    for path in KERNELS.glob("*.py"):
        module = importlib.import_module(f"boostbp.trees.kernels.{path.stem}")
        found |= {id(value): value for value in vars(module).values() if isinstance(value, Loop)}
    listed = [id(loop) for loops in warmup.PARTS.values() for loop in loops]
    assert sorted(listed) == sorted(found)


def test_a_warm_up_says_what_it_did(capsys):
    boostbp.warmup()
    report = boostbp.warmup(verbose=1)
    assert report.compiled == 0
    assert list(report.seconds) == list(warmup.PARTS)
    assert all(seconds >= 0 for seconds in report.seconds.values())
    assert report.folder == kernels.predict_flat.dispatcher.stats.cache_path
    assert str(report).startswith("0 loops compiled in ")
    assert "predict: predict_flat" in capsys.readouterr().err


EVERYTHING = """
import warnings
import numpy as np
import scipy.sparse as sp
from numba.core import event
import boostbp
from boostbp import search
from boostbp.ensemble import constants
from boostbp.trees import leaf_rows

warnings.simplefilter("ignore")
boostbp.warmup()

class Compiled(event.Listener):
    names = []
    def on_start(self, event):
        self.names.append(event.data["dispatcher"].py_func.__qualname__)
    def on_end(self, event):
        pass

event.register("numba:compile", Compiled())
constants.MAX_PIECES = 1  # few rounds
leaf_rows.BLOCK_ROWS = 64  # several blocks, where threads share the rows
rng = np.random.default_rng(0)
X = rng.standard_normal((150, 4))
X[rng.random(X.shape) < 0.05] = np.nan
y = np.nan_to_num(X[:, 0] * X[:, 1]) + np.nan_to_num(X[:, 2])
X[:, 3] = rng.integers(0, 4, len(X))
labels = (y > 0) + (y > 1).astype(int)
dense = np.nan_to_num(X)
S = sp.random(150, 12, 0.2, random_state=0, format="csr")
small = {"epochs": 2, "n_estimators": 3, "hidden__n_estimators": 3, "random_state": 0, "deep": True}
small["min_samples_leaf"] = 5

def use(model, X):
    model.predict(X), model.predict(X[:1])
    model.jacobian(X[:5]), model.attributions(X[:5]), model.leaf_report(X[:2]), model.summary()
    if len(model.network_.layers) > 1:
        model.transform(X)

def fit(X, y, units=(3,), kind=boostbp.BoostBPRegressor, **params):
    model = kind(units, **search.parameters(small | params)).fit(X, y)
    use(model, X)
    return model

def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array

for basis in ("linear", "quadratic", boostbp.Elementwise([np.sin], [np.cos])):
    fit(X, y, basis=basis, categorical_features=[3])
for params in (
    {"n_jobs": 2}, {"multi_strategy": "multi_output_tree"}, {"skip": True}, {"standardize": False},
    {"standardize": np.bool_(False), "clip": np.bool_(True), "learning_rate": np.float32(0.3)}, {"reg_lambda": 1},
    {"base": "additive"}, {"base": "zero"}, {"output_target": "moved"}, {"structure_epochs": 1, "epochs": 3},
    {"structure_epochs": 3, "epochs": 4, "standardize": False}, {"start": "noise"},
    {"max_leaves": 300, "max_depth": -1, "min_samples_leaf": 1}, {"units": (3, 2)}, {"loss": "huber"},
    {"structure_samples": 0.5}, {"extra_trees": False},
):
    fit(dense, y, **params)
fit(S, y)
fit(S, y, n_jobs=2, multi_strategy="multi_output_tree", base="additive")
fit(dense, labels > 0, kind=boostbp.BoostBPClassifier, n_jobs=2)
for backend in BACKENDS:
    fit(dense, labels, backend=backend, kind=boostbp.BoostBPClassifier)
    fit(dense, np.column_stack([y, y]), backend=backend, multi_strategy="multi_output_tree")
    fit(dense, y, backend=backend, deep="auto")
for kind in ("float32", "float64", "int16", "longdouble", ">f8"):
    model = fit(dense.astype(kind), y)
fit(read_only(dense), read_only(y))
fit(np.asfortranarray(dense), y)
fit(np.repeat(dense, 2, axis=0)[::2], y, leaves="native")
fit(dense, y, leaves="native", n_jobs=2)
fit(dense, np.abs(y), loss="poisson")
fit(dense, np.abs(y), base="additive", loss="poisson")
fit(dense, y, units=())
of_paper = boostbp.paper_settings(n_estimators=2, hidden={"n_estimators": 2}, epochs=2)
boostbp.BoostBPRegressor((2,), **of_paper).fit(dense, y)
boostbp.BoostBPAutoencoder((2,), epochs=2, n_estimators=2).fit(dense).transform(dense)
layer = boostbp.fit_layer(read_only(dense), dense[:, :2], {"n_estimators": 2})
output, trace = layer.forward(read_only(dense))
trace.vjp(read_only(output)), trace.jacobian()
boostbp.save(model, FILE)
loaded = boostbp.load(FILE)
use(loaded, dense)
use(loaded, read_only(dense))
BRIDGE
print(sorted(set(Compiled.names)))
"""

TORCH = """
import torch
from benchmarks.mixtures import GBDTNNRegressor, NNGBDTRegressor
from boostbp.torch import GBDTModule, GBDTStep
for dtype in (torch.float32, torch.float64):
    x, target = torch.tensor(dense, dtype=dtype), torch.tensor(y[:, None], dtype=dtype)
    model = torch.nn.Sequential(GBDTModule(4, 3), torch.nn.Linear(3, 1, dtype=dtype))
    trees = GBDTStep(model, n_rows=len(x))
    for _ in range(2):
        torch.nn.functional.mse_loss(model(x), target).backward()
        trees.step()
    model.eval()(x.requires_grad_()).sum().backward()
for kind in (GBDTNNRegressor, NNGBDTRegressor):
    model = kind((3,), epochs=2).fit(dense, y)
    model.predict(dense), model.jacobian(dense[:5])
"""


@pytest.mark.slow
def test_nothing_is_compiled_after_a_warm_up(tmp_path):
    backends = [name for name in ("lightgbm", "sklearn", "xgboost") if name == "sklearn" or find_spec(name)]
    code = EVERYTHING.replace("BACKENDS", repr(backends)).replace("FILE", repr(str(tmp_path / "model")))
    assert run(code.replace("BRIDGE", TORCH if find_spec("torch") else ""))[-2:] == ["[]", ""]
