"""What Windows and macOS lack or do otherwise, as far as it can be tested on Linux."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import PureWindowsPath

import numpy as np
import pandas as pd
import pytest
from limits import HANGS

import boostbp
import hatch_build
from boostbp import BoostBPRegressor
from boostbp.comparison.measuring import Peak
from boostbp.inputs.files import parts
from boostbp.runtime import atomic_write as room
from boostbp.runtime.atomic_write import atomic_write

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 3))
Y = X[:, 0] * X[:, 1]
SMALL = {"quality": 1, "n_estimators": 5, "random_state": 0}
# What the functions and modules of other systems are missing from, once the libraries beneath are loaded.
LACKING = """
import importlib, os, pkgutil, signal, sys
import dask.distributed, joblib, lightgbm, matplotlib.pyplot, pandas, pyarrow.csv, pyarrow.parquet, sklearn.ensemble
for module, names in {
    os: "fork forkpty getuid killpg mkfifo posix_fallocate register_at_fork sched_getaffinity setsid uname",
    signal: "SIGALRM SIGCHLD SIGHUP SIGKILL SIGSTOP SIGUSR1 pthread_sigmask setitimer",
}.items():
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
for name in ("fcntl", "grp", "pwd", "resource", "termios", "torch"):
    sys.modules[name] = None
import boostbp
for module in pkgutil.walk_packages(boostbp.__path__, "boostbp."):
    if not any(word in module.name for word in ("__main__", "autogluon", "lib_boostbp", "torch")):
        importlib.import_module(module.name)
from boostbp.inputs import disk_arrays
assert not disk_arrays.IS_SUPPORTED
"""
FROM_BLOCKS = """
import numpy as np
X, y = np.load(sys.argv[1]), np.load(sys.argv[2])
model = boostbp.BoostBPRegressor(quality=1, n_estimators=5, random_state=0)
model.fit(iter([(X[:200], y[:200]), (X[200:], y[200:])]))
np.save(sys.argv[3], model.predict(X))
"""
# The commands one after the other in one process, and what its default encoding is.
COMMANDS = """
import locale, sys
from boostbp.cli import app
print(locale.getpreferredencoding(False), file=sys.stderr)
for command in sys.argv[1].split(";"):
    app(command.split(), standalone_mode=False)
"""


def child(code, *arguments, **environment):
    """Run code in a process of its own, and return it once it has ended well."""
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)} | environment,
        capture_output=True,
        timeout=HANGS,
    )
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done


@pytest.mark.slow
@pytest.mark.full_length
def test_the_package_needs_nothing_that_only_posix_has(tmp_path):
    files = [tmp_path / f"{name}.npy" for name in ("X", "y", "predicted")]
    np.save(files[0], X)
    np.save(files[1], Y)
    child(LACKING + FROM_BLOCKS, *files)
    assert np.array_equal(np.load(files[2]), BoostBPRegressor(**SMALL).fit(X, Y).predict(X))


@pytest.mark.slow
def test_files_are_utf8_and_output_is_escaped_where_the_default_encoding_is_another(here):
    names = ["größe", "重さ", "c"]
    pd.DataFrame(X, columns=names).assign(preis=Y).to_csv("table.csv", index=False, encoding="utf-8")
    with open("settings.toml", "w", encoding="utf-8") as file:
        file.write('# Größe, 重さ\nquality = 1\nmonotone_constraints = {"größe" = 1}\n')
    done = child(
        COMMANDS,
        "fit table.csv -t preis -m model --config settings.toml -s n_estimators=4;"
        "predict table.csv -m model -o out.csv;inspect model;export model model.c --to c",
        LC_ALL="C",
        PYTHONCOERCECLOCALE="0",
        PYTHONUTF8="0",
        PYTHONIOENCODING="cp1252:strict",
    )
    if b"UTF-8" in done.stderr.upper().splitlines()[0]:
        pytest.skip("the default encoding of this system is always UTF-8")
    shown = done.stdout.decode("cp1252")
    assert "größe" in shown
    assert r"\u91cd\u3055" in shown
    assert "#####" in shown
    assert boostbp.load("model").feature_names_in_.tolist() == names
    with open("model.c", encoding="ascii") as file:
        assert r"\u91cd\u3055" in file.read()


@pytest.mark.full_length
def test_a_model_is_the_same_in_a_spawned_process():
    model = BoostBPRegressor(**SMALL, n_jobs=2)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        fitted = pool.apply_async(model.fit, (X, Y)).get(timeout=HANGS)
        predicted = pool.apply_async(fitted.predict, (X,)).get(timeout=HANGS)
    assert np.array_equal(predicted, fitted.predict(X))
    assert np.array_equal(predicted, model.fit(X, Y).predict(X))


@pytest.mark.parametrize("patience", [0.0, HANGS])
def test_a_file_is_replaced_once_nobody_else_has_it_open(tmp_path, monkeypatch, patience):
    path, replace, refused = tmp_path / "file", os.replace, []
    path.write_text("old", encoding="utf-8")

    def refuse_twice(part, target):
        if len(refused) < 2:
            refused.append(part)
            raise PermissionError("[WinError 5] Access is denied")
        replace(part, target)

    monkeypatch.setattr(room, "OPEN_ELSEWHERE", patience)
    monkeypatch.setattr(os, "replace", refuse_twice)
    with nullcontext() if patience else pytest.raises(PermissionError), atomic_write(path) as part:
        part.write_text("new", encoding="utf-8")
    assert path.read_text(encoding="utf-8") == ("new" if patience else "old")
    assert os.listdir(tmp_path) == ["file"]


def test_paths_with_backslashes():
    below = [PureWindowsPath(name) for name in (r"b\part.csv", r"A\b.csv", r"year=2020\month=01\part.CSV", "B.csv")]
    assert [path.as_posix() for path in sorted(below, key=parts._parts)] == [
        "A/b.csv",
        "B.csv",
        "b/part.csv",
        "year=2020/month=01/part.CSV",
    ]
    assert parts.partition_of(below[2]) == {"year": "2020", "month": "01"}
    assert parts.format_of(PureWindowsPath(r"C:\data.d\table.CSV.GZ")) == "csv"


def test_a_compiler_with_backslashes_in_its_path():
    command = r'"C:\Program Files\LLVM\bin\clang.exe" -O2'
    assert hatch_build.words(command, windows=True) == [r"C:\Program Files\LLVM\bin\clang.exe", "-O2"]
    assert hatch_build.words("'my cc' -O2", windows=False) == ["my cc", "-O2"]


def test_the_peak_of_memory_is_unknown_where_it_cannot_be_reset(monkeypatch):
    def no_library_without_a_name(name):
        raise TypeError(f"LoadLibrary() argument 1 must be str, not {type(name).__name__}")

    monkeypatch.setattr("ctypes.CDLL", no_library_without_a_name)
    assert Peak().bytes() is None
