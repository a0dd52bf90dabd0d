"""Compiled loops are kept where that is possible, used where they can be read, and never in the way."""

import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest
from limits import HANGS
from numba import njit

from boostbp.trees.kernels import cache
from boostbp.trees.warmup import PARTS

PACKAGE = Path(cache.__file__).parents[2]


def twice(x):
    return 2.0 * x


def fresh():
    """The loop as a new process has it: compiled for nothing."""
    loop = njit(twice)
    loop._cache = cache.KernelCache(twice)
    return loop


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "_writable", lambda: tmp_path)
    monkeypatch.setattr(cache, "_warned", [])
    return tmp_path


def hits(loop):
    return sum(loop.stats.cache_hits.values())


def kept(folder):
    loop = fresh()
    assert loop(2.0) == 4.0
    assert hits(loop) == 0
    [path] = folder.iterdir()
    return path


def test_what_was_compiled_is_loaded(folder):
    kept(folder)
    loop = fresh()
    assert loop(2.0) == 4.0
    assert hits(loop) == 1
    assert loop.stats.cache_path == str(folder)


def test_each_signature_is_a_file_of_its_own(folder):
    # numba numbers them in an index: two processes that wrote at once gave one signature the code of the other
    first, second = fresh(), fresh()
    assert (first(2.0), second(3)) == (4.0, 6.0)
    loop = fresh()
    assert (loop(2.0), loop(3)) == (4.0, 6.0)
    assert hits(loop) == 2


@pytest.mark.parametrize("size", [0, 1, 31, 32, 64, 65, 500, -1])
def test_a_truncated_file_is_compiled_anew_and_mended(folder, size):
    path = kept(folder)
    whole = path.read_bytes()
    path.write_bytes(whole[:size])
    loop = fresh()
    assert loop(2.0) == 4.0
    assert hits(loop) == 0
    loop = fresh()
    assert loop(2.0) == 4.0
    assert hits(loop) == 1


def test_a_changed_byte_anywhere_is_seen(folder):
    path = kept(folder)
    whole = path.read_bytes()
    for place in np.linspace(0, len(whole) - 1, 9).astype(int):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        loop = fresh()
        assert loop(2.0) == 4.0
        assert hits(loop) == 0, place


def test_a_payload_that_cannot_be_loaded_is_compiled_anew(folder):
    path = kept(folder)
    head = path.read_bytes()[:32]
    for payload in (b"", b"no pickle", cache.dumps((1, 2))):
        path.write_bytes(head + cache.sha256(payload).digest() + payload)
        assert fresh()(2.0) == 4.0


def test_code_of_another_release_is_compiled_anew_in_its_place(folder, monkeypatch):
    path = kept(folder)
    monkeypatch.setattr(cache, "_STAMP", b"another release")
    assert kept(folder) == path  # nothing is left behind at an upgrade
    assert hits(fresh()) == 0


def test_the_stamp_changes_with_every_kernel(tmp_path, monkeypatch):
    # a loop holds copies of what it calls: numba looks at the file of the loop alone
    kernels = Path(cache.__file__).parent
    copy = shutil.copytree(kernels, tmp_path / "kernels", ignore=shutil.ignore_patterns("__pycache__"))
    before = cache._source()
    monkeypatch.setattr(cache.resources, "files", lambda package: copy)
    assert cache._source() == before
    for path in copy.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        path.write_text(text + "#", encoding="utf-8")
        assert cache._source() != before, path.name
        path.write_text(text, encoding="utf-8")


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owner here")
def test_a_file_that_others_could_write_is_not_unpickled(folder):
    path = kept(folder)
    path.chmod(0o666)
    loop = fresh()
    assert loop(2.0) == 4.0
    assert hits(loop) == 0


@pytest.mark.skipif(getattr(os, "geteuid", lambda: 1)() != 0, reason="only the administrator gives files away")
def test_a_file_of_another_user_is_not_unpickled(folder):
    path = kept(folder)
    os.chown(path, 54321, -1)
    loop = fresh()
    assert loop(2.0) == 4.0
    assert hits(loop) == 0


def test_a_full_disk_costs_one_warning(folder, monkeypatch):
    def full(path, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache, "_write", full)
    with pytest.warns(RuntimeWarning, match="No space left on device.*NUMBA_CACHE_DIR"):
        assert fresh()(2.0) == 4.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fresh()(2.0) == 4.0
    assert not list(folder.iterdir())


def test_half_a_file_never_stands_there(folder, monkeypatch):
    def interrupted(source, target):
        raise KeyboardInterrupt

    monkeypatch.setattr(cache.os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fresh()(2.0)
    assert not list(folder.iterdir())


def test_without_a_folder_loops_are_compiled_all_the_same(monkeypatch):
    monkeypatch.setattr(cache, "_writable", lambda: None)
    monkeypatch.setattr(cache, "_warned", [])
    with pytest.warns(RuntimeWarning, match="neither.*NUMBA_CACHE_DIR"):
        assert fresh()(2.0) == 4.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fresh()(3) == 6.0
        assert fresh().stats.cache_path is None


def test_versions_are_forgotten_on_request(folder):
    kept(folder)
    loop = fresh()
    loop(2.0)
    loop.recompile()
    assert hits(loop) == 1
    assert len(list(folder.iterdir())) == 1


# ---------------------------------------------------------------------------- processes of their own

WARNED = """
import os, sys, warnings
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
{code}
print(sum(issubclass(one.category, RuntimeWarning) and "NUMBA_CACHE_DIR" in str(one.message) for one in seen))
"""


def start(code, package, **environment):
    """A process whose boostbp is a copy, without a cache folder of its own."""
    env = {name: value for name, value in os.environ.items() if name not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    env |= {"PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1", "NUMBA_OPT": "0"} | environment
    indented = "\n".join(f"    {line}" for line in code.strip().splitlines())
    command = [sys.executable, "-c", WARNED.format(code=indented)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env=env, cwd=package.parent, **pipes)


def words(process):
    """What a process prints before it ends well; the last is how often it was warned that nothing is kept."""
    printed, said = process.communicate(timeout=HANGS)
    assert process.returncode == 0, said
    return printed.split()


def run(code, package, **environment):
    return words(start(code, package, **environment))


@pytest.fixture
def package():
    """A copy of the package without anything compiled, which other users can read."""
    top = Path(tempfile.mkdtemp())
    top.chmod(0o755)
    shutil.copytree(PACKAGE, top / "boostbp", ignore=shutil.ignore_patterns("__pycache__"))
    yield top / "boostbp"
    for folder in top.rglob("__pycache__"):
        folder.chmod(0o755)
    shutil.rmtree(top)


@pytest.mark.slow
def test_all_works_where_no_folder_can_be_written(package):
    for name in ("trees/kernels/__pycache__", "file"):
        (package / name).write_text("not a folder")
    code = """
import boostbp, numpy as np
X = np.random.default_rng(0).standard_normal((60, 2))
model = boostbp.BoostBPRegressor((2,), deep=True, epochs=1, n_estimators=2, random_state=0).fit(X, X[:, 0])
boostbp.save(model, "model.boostbp")
assert np.array_equal(boostbp.load("model.boostbp").predict(X), model.predict(X))
"""
    # numba takes the home folder of the user's entry where HOME is not set
    assert run(code, package, HOME=str(package / "file"), NUMBA_CACHE_DIR=str(package / "file")) == ["1"]


SCALINGS = """
from boostbp.trees import kernels
import numpy as np
home = os.environ["HOME"]
kernels.scalings.dispatcher.targetctx.refresh()  # numba's own modules may lie where only the administrator reads
if hasattr(os, "geteuid") and os.geteuid() == 0 and home.endswith("file"):
    os.seteuid(65534)  # no mode of a folder holds the administrator back
kernels.scalings(np.ones((1, 4)), 0.0, np.empty((1, 4)))
stats = kernels.scalings.dispatcher.stats
print(sum(stats.cache_hits.values()), stats.cache_path is not None)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="folders have no modes here")
def test_code_compiled_beside_the_package_is_used_where_it_can_only_be_read(package):
    (package / "file").write_text("not a folder")
    assert run(SCALINGS, package, HOME=str(package)) == ["0", "True", "0"]
    beside = package / "trees" / "kernels" / "__pycache__"
    assert [path.name.split("-")[0] for path in beside.iterdir()] == ["sums.scalings"]
    beside.chmod(0o555)
    assert run(SCALINGS, package, HOME=str(package / "file")) == ["1", "False", "0"]


@pytest.mark.slow
def test_a_file_system_that_takes_no_byte_costs_one_warning(package):
    pytest.importorskip("resource")
    code = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n" + SCALINGS
    assert run(code, package, HOME=str(package)) == ["0", "True", "1"]


@pytest.mark.slow
def test_two_processes_warm_up_at_once(package):
    code = """
from boostbp.trees import warmup
print(warmup.warmup().compiled)
"""
    both = [start(code, package, HOME=str(package)) for _ in range(2)]
    n_loops = len(PARTS["predict"])
    compiled = [words(process) for process in both]
    assert [warned for _, warned in compiled] == ["0", "0"]
    assert int(compiled[0][0]) + int(compiled[1][0]) >= n_loops
    beside = package / "trees" / "kernels" / "__pycache__"
    assert len(list(beside.iterdir())) == n_loops
    assert run(code, package, HOME=str(package)) == ["0", "0"]
