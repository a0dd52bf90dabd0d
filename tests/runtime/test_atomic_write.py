"""Files beside their place: links are followed, pipes and devices refused, other writers left alone."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from flat_parameters import parameters
from limits import HANGS

from boostbp import BoostBPRegressor, callbacks, save
from boostbp.comparison import page
from boostbp.runtime import atomic_write as room
from boostbp.runtime.atomic_write import atomic_write, check_writable, remove_partial

X = np.random.default_rng(0).normal(size=(60, 2))
SMALL = {"hidden_layer_sizes": (2,), "n_estimators": 2, "epochs": 1, "deep": True, "random_state": 0}

needs_posix = pytest.mark.skipif(os.name != "posix", reason="of POSIX systems")


# the module without the rest of the package, whose import takes longer than all that is done here
ALONE = f"import runpy, sys; globals().update(runpy.run_path({str(Path(room.__file__))!r}))\n"


def write(path, text):
    with atomic_write(path) as part:
        part.write_text(text)


@pytest.mark.parametrize("text", ["", "new"])
def test_a_file_is_replaced_whole_or_not_at_all(tmp_path, text):
    path = tmp_path / "file"
    for content in ("old", text):
        write(path, content)
        assert path.read_text() == content
    with pytest.raises(ZeroDivisionError), atomic_write(path) as part:
        part.write_text(str(1 // 0))
    assert path.read_text() == text
    assert os.listdir(tmp_path) == ["file"]


@needs_posix
@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("relative", [True, False])
@pytest.mark.parametrize("n_links", [1, 3])
def test_links_are_written_through(tmp_path, there, relative, n_links):
    folder = tmp_path / "store"
    folder.mkdir()
    target = folder / "file"
    if there:
        target.write_text("old")
    before = target
    for number in range(n_links):
        link = tmp_path / f"link{number}"
        link.symlink_to(os.path.relpath(before, tmp_path) if relative else before)
        before = link
    write(link, "new")
    assert target.read_text() == "new"
    assert not target.is_symlink()
    assert all((tmp_path / f"link{number}").is_symlink() for number in range(n_links))
    assert os.listdir(folder) == ["file"]
    remove_partial(link)


@needs_posix
def test_links_that_lead_nowhere_are_refused(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(OSError, match="leads back to itself"):
        check_writable(tmp_path / "a")
    (tmp_path / "c").symlink_to(tmp_path / "none" / "file")
    with pytest.raises(FileNotFoundError, match=r"there is no folder '.*none': create it first"):
        check_writable(tmp_path / "c")
    (tmp_path / "d").symlink_to(tmp_path)
    with pytest.raises(IsADirectoryError, match="give the name of a file in it"):
        check_writable(tmp_path / "d")


@needs_posix
def test_permissions_are_kept_and_new_files_have_the_usual_ones(tmp_path):
    path = tmp_path / "file"
    before = os.umask(0o027)
    try:
        write(path, "new")
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        path.chmod(0o604)
        write(path, "newer")
        assert stat.S_IMODE(path.stat().st_mode) == 0o604
    finally:
        os.umask(before)


def as_somebody_else(work):
    """Exit code of some work in a forked child without the rights of root."""
    child = os.fork()
    if not child:
        try:
            if os.getuid() == 0:
                os.setuid(65534)
            work()
            os._exit(0)
        except PermissionError:
            os._exit(77)
        except BaseException:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@needs_posix
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # is multi-threaded
def test_what_may_not_be_written_is_told_before():
    with tempfile.TemporaryDirectory() as name:  # those of pytest are for their owner alone
        folder = Path(name)
        folder.chmod(0o777)
        path = folder / "file"
        assert as_somebody_else(lambda: write(path, "new")) == 0
        path.chmod(0o444)
        assert as_somebody_else(lambda: check_writable(path)) == 77
        folder.chmod(0o555)
        assert as_somebody_else(lambda: check_writable(folder / "other")) == 77
        folder.chmod(0o777)


@pytest.fixture(params=["pipe", "socket", "device"])
def special(request, tmp_path):
    """What a rename would replace; a device of our own, never one of the system's."""
    if os.name != "posix":
        pytest.skip("of POSIX systems")
    path = tmp_path / request.param
    if request.param == "pipe":
        os.mkfifo(path)
    elif request.param == "device":
        try:
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        except PermissionError:
            pytest.skip("only root makes devices")
    with closing(socket.socket(socket.AF_UNIX)) as one:
        if request.param == "socket":
            here = os.getcwd()
            os.chdir(tmp_path)  # names of sockets are short
            one.bind(path.name)
            os.chdir(here)
        kind = stat.S_IFMT(path.stat().st_mode)
        yield path
        assert stat.S_IFMT(path.stat().st_mode) == kind
        assert os.listdir(tmp_path) == [path.name]


def test_special_files_are_refused(special):
    for refuse in (check_writable, lambda path: write(path, "new"), page.check_report):
        with pytest.raises(OSError, match="is a pipe, socket or device, which a file would replace"):
            refuse(special)


def test_a_model_is_not_saved_in_the_place_of_one(special):
    model = BoostBPRegressor(**parameters(**SMALL)).fit(X, X[:, 0])
    with pytest.raises(OSError, match="a file would replace"):
        save(model, special)


@pytest.mark.parametrize("way", ["parameter", "callback", "more"])
def test_a_checkpoint_that_cannot_be_written_is_told_before_the_work(special, way):
    begun = []
    model = BoostBPRegressor(**parameters(**SMALL))
    if way == "more":
        model.fit(X, X[:, 0], keep_state=True)
    told = {"callbacks": [lambda progress: begun.append(1)]}
    if way == "callback":
        told["callbacks"].append(callbacks.checkpoint(special))
    else:
        told["checkpoint"] = special
    with pytest.raises(OSError, match="a file would replace"):
        model.fit_more(1, **told) if way == "more" else model.fit(X, X[:, 0], **told)
    assert not begun


def test_a_checkpoint_in_no_folder_is_told_before_the_work(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        BoostBPRegressor(**parameters(**SMALL)).fit(X, X[:, 0], checkpoint=tmp_path / "none" / "file")


def test_a_file_is_cleared_of_what_the_killed_left_but_not_of_what_is_written(tmp_path):
    path = tmp_path / "file"
    code = f"{ALONE}with atomic_write(sys.argv[1]) as part: part.write_text('half'); print(part, flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        part = other.stdout.readline().strip()
        remove_partial(path)
        assert os.path.exists(part)  # its writer may be about to go on
        other.kill()
    remove_partial(path)
    assert not os.path.exists(part)
    elsewhere = tmp_path / ".file.00000000-1-abcdef.part"
    elsewhere.write_text("half")
    remove_partial(path)
    assert elsewhere.exists()  # of another host, whose processes are not known here
    long_ago = time.time() - 2 * room.ABANDONED
    os.utime(elsewhere, (long_ago, long_ago))
    with atomic_write(path) as mine:
        remove_partial(path)
        assert os.listdir(tmp_path) == [mine.name]
    remove_partial(path)
    assert os.listdir(tmp_path) == ["file"]


WRITER = f"""{ALONE}
for number in range(200):
    remove_partial(sys.argv[1])
    with atomic_write(sys.argv[1]) as part:
        part.write_text(sys.argv[2] * 1000)
"""


def test_many_writers_of_one_path_leave_each_other_alone(tmp_path):
    path = tmp_path / "file"
    others = [
        subprocess.Popen([sys.executable, "-c", WRITER, path, letter], stderr=subprocess.PIPE, text=True)
        for letter in "abcd"
    ]

    def write_often(letter):
        for _ in range(200):
            write(path, letter * 1000)

    threads = [threading.Thread(target=write_often, args=(letter,)) for letter in "ef"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    told = [other.communicate(timeout=HANGS)[1] for other in others]
    assert [other.returncode for other in others] == 4 * [0], told
    assert path.read_text() in {letter * 1000 for letter in "abcdef"}
    assert os.listdir(tmp_path) == ["file"]
