"""Backends are found by the name of their file, and libraries are imported on use."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from boostbp import backends
from boostbp.backends.base import Backend, TreeParams
from boostbp.trees.sparse import Table
from boostbp.trees.tree import Tree


def test_every_file_in_the_folder_is_a_backend_under_its_name() -> None:
    folder = Path(backends.__file__).parent
    names = {path.stem for path in folder.glob("*.py")}
    assert set(backends.available()) <= names
    holding = {name for name in names if "\nbackend = " in (folder / f"{name}.py").read_text()}
    assert {"lightgbm", "xgboost", "sklearn"} <= holding
    for name in holding:
        assert callable(backends.load_backend(name).bind)
    for name in names - holding:
        with pytest.raises(ValueError, match="is unknown"):
            backends.load_backend(name)


@contextmanager
def added(folder: Path) -> Iterator[None]:
    """Take the modules in another folder for files of the package."""
    with mock.patch.object(backends, "__path__", [*backends.__path__, str(folder)]), mock.patch.dict(sys.modules):
        yield
    for name in set(vars(backends)) & {path.stem for path in folder.glob("*.py")}:
        delattr(backends, name)


def test_a_new_file_in_the_folder_is_a_new_backend(tmp_path: Path) -> None:
    code = "class B:\n    def bind(self, table, growth): return 'bound'\nbackend = B()\n"
    (tmp_path / "plain.py").write_text(code)
    (tmp_path / "needing.py").write_text(code + "requires = ('json', 'csv')\n")
    (tmp_path / "in_want.py").write_text(code + "requires = ('json', 'nowhere_to_be_found')\n")
    (tmp_path / "no_backend.py").write_text("helper = 1\n")
    with added(tmp_path):
        assert {"plain", "needing"} <= set(backends.available())
        assert not {"in_want", "no_backend", "nowhere_to_be_found"} & set(backends.available())
        assert backends.load_backend("plain").bind(None, None) == "bound"
        assert backends.load_backend("in_want").bind(None, None) == "bound"
        with pytest.raises(ValueError, match="backend='no_backend' is unknown"):
            backends.load_backend("no_backend")


def test_threads_wait_for_one_that_imports_a_backend(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("import time\ntime.sleep(0.3)\nbackend = 'slow'\n")
    with added(tmp_path), ThreadPoolExecutor(2) as pool:
        first = pool.submit(backends.load_backend, "slow")
        while "boostbp.backends.slow" not in sys.modules and not first.done():
            time.sleep(0.001)
        assert pool.submit(backends.load_backend, "slow").result() == first.result() == "slow"


def test_an_object_with_bind_is_taken_as_it_is() -> None:
    class Stumps:
        def bind(self, table: Table, growth: TreeParams) -> Stumps:
            return self

        def grow(self, grad: np.ndarray, hess: np.ndarray) -> list[Tree]:
            return [Tree.stump()] * grad.shape[1]

        def fork(self, outputs: slice, seed: int) -> Stumps:
            return self

    backend: Backend = Stumps()
    assert backends.load_backend(backend) is backend


@pytest.mark.parametrize("name", ["catboost", "base", "nodes", "conformance", "_xgboost_ubj", "LightGBM", ""])
def test_an_unknown_name_is_refused_with_the_names_there_are(name: str) -> None:
    with pytest.raises(ValueError, match=f"backend='{name}' is unknown: .*'lightgbm'.*'sklearn'.*bind"):
        backends.load_backend(name)


@pytest.mark.parametrize("thing", [None, 3, object])
def test_what_cannot_bind_is_refused(thing: object) -> None:
    with pytest.raises(TypeError, match=r"has no method bind.*'lightgbm'"):
        backends.load_backend(thing)  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "extra"), [("lightgbm", "all"), ("xgboost", "xgboost")])
def test_a_missing_library_is_named_with_the_command_that_installs_it(name: str, extra: str) -> None:
    absent = {module: None for module in (name, *sys.modules) if module == name or module.startswith(f"{name}.")}
    with mock.patch.dict(sys.modules, absent):
        assert name not in backends.available()
        cure = rf"backend='{name}' needs the {name} package: pip install 'boostbp\[{extra}\]'"
        with pytest.raises(ImportError, match=cure):
            backends.load_backend(name).bind(Table(np.zeros((2, 1))), TreeParams())


@pytest.mark.slow
def test_loading_a_backend_imports_no_other_one_no_conformance_checks_and_no_library() -> None:
    script = (
        "import sys, boostbp; from boostbp import backends; backends.load_backend('lightgbm'); "
        "print(*[name for name in sys.modules if name.startswith('boostbp.backends.')]); "
        "[backends.load_backend(name) for name in backends.available()]; "
        "print(*{'lightgbm', 'xgboost', 'sklearn.tree'} & set(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded, libraries = found.stdout.split("\n")[:2]
    modules = {name.removeprefix("boostbp.backends.") for name in loaded.split()}
    assert {"base", "capabilities"} <= modules
    assert not {"conformance.duties", "xgboost", "sklearn"} & modules
    assert libraries == ""
