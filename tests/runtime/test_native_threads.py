"""BLAS runs on one thread where asked; a forked child computes what its parent would, whatever other threads did."""

import multiprocessing
import os
import signal
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from flat_parameters import parameters
from limits import HANGS
from threadpoolctl import threadpool_info, threadpool_limits

from boostbp import BoostBPRegressor
from boostbp.backends import _lightgbm_calls
from boostbp.runtime import threads
from boostbp.runtime.threads import single_threaded_blas, usable_threads

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]
LOCKS = type(threading.Lock()), type(threading.RLock()), threading.Condition


def in_child(work, seconds=HANGS):
    """What a forked child that does some work ends with: its exit status, minus a signal, or "hangs"."""
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(0 if work() in (None, True) else 1)
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
        os._exit(2)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return "hangs"


def elsewhere(context, seconds=0.3):
    """Another thread that is within a context now, and leaves it by itself."""
    inside = threading.Event()

    def stay():
        with context:
            inside.set()
            time.sleep(seconds)

    thread = threading.Thread(target=stay)
    thread.start()
    assert inside.wait(HANGS)
    return thread


def module_locks():
    """All locks of modules of the package, by their names."""
    found = {}
    for name, module in list(sys.modules.items()):
        if name.startswith("boostbp."):
            found |= {f"{name}.{key}": value for key, value in vars(module).items() if isinstance(value, LOCKS)}
    return found


def test_no_lock_of_a_module_is_held_in_a_child():
    locks = module_locks()
    assert {"boostbp.runtime.threads._lock", "boostbp.backends._lightgbm_calls._gate"} <= set(locks)
    for name, lock in locks.items():

        def take(lock=lock):
            with lock:
                return True

        holder = elsewhere(lock)
        assert in_child(take, 20) == 0, name
        holder.join()


def test_nobody_is_inside_lightgbm_in_a_child():
    other = elsewhere(_lightgbm_calls.thread_gate(3), 1.0)

    def with_another_number():
        with _lightgbm_calls.thread_gate(2):
            return _lightgbm_calls._calls == {2: 1}

    assert in_child(with_another_number, 20) == 0
    assert _lightgbm_calls._calls == {3: 1}
    other.join()


def test_a_child_within_a_call_of_lightgbm_leaves_it():
    def leave():
        with _lightgbm_calls.thread_gate(2):
            pass
        turn.__exit__(None, None, None)
        return not _lightgbm_calls._calls

    turn = _lightgbm_calls.thread_gate(3)
    with turn:
        assert in_child(leave, 20) == 0


def blas_threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_blas_has_all_its_threads_again_in_a_child():
    with threadpool_limits(3, "blas"):
        before = blas_threads()
        other = elsewhere(single_threaded_blas(), 1.0)
        assert set(blas_threads()) == {1}

        def own_limit():
            with single_threaded_blas():
                inside = blas_threads()
            return set(inside) == {1} and blas_threads() == before

        assert in_child(lambda: blas_threads() == before, 20) == 0
        assert in_child(own_limit, 20) == 0
        other.join()
        assert blas_threads() == before


def test_the_thread_that_forks_stays_inside():
    with threadpool_limits(3, "blas"), single_threaded_blas():
        assert in_child(lambda: set(blas_threads()) == {1} and len(threads._blas_users) == 1, 20) == 0


def test_matrix_products_take_one_thread_until_the_last_that_asked_is_done():
    with threadpool_limits(2, "blas"):
        before = set(blas_threads())
        assert before == {2}
        with single_threaded_blas():
            with pytest.raises(ValueError), single_threaded_blas():
                raise ValueError
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == before


def test_any_thread_may_ask_and_any_other_be_the_last():
    with threadpool_limits(2, "blas"):  # by this thread, which threadpoolctl hears alone from here on
        inside, seen = threading.Barrier(2, timeout=HANGS), []

        def hold(stays):
            with single_threaded_blas():
                inside.wait()
                seen.append(set(blas_threads()))
                stays.wait(timeout=HANGS)

        first_left, second_left = threading.Event(), threading.Event()
        first, second = (threading.Thread(target=hold, args=[event]) for event in (first_left, second_left))
        first.start()
        second.start()
        first_left.set()
        first.join()
        seen.append(set(blas_threads()))
        second_left.set()
        second.join()
        assert seen == [{1}] * 3
        assert set(blas_threads()) == {2}
        with single_threaded_blas():  # and again here
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {2}


# ---------------------------------------------------------------------------- whole fits

rng = np.random.default_rng(0)
X = rng.standard_normal((21_000, 4))  # enough rows for the libraries to use threads of their own
y = X[:, 0] * X[:, 1]


def fit(backend="lightgbm", rows=21_000, callbacks=None, **params):
    """Predictions of a small model that was fitted by two threads."""
    small = {"deep": True, "epochs": 1, "n_estimators": 2, "early_stopping": False, "random_state": 0, "n_jobs": 2}
    return (
        BoostBPRegressor((2,), **parameters(backend=backend, **(small | params)))
        .fit(X[:rows], y[:rows], callbacks=callbacks)
        .predict(X[:50])
    )


@pytest.mark.parametrize(
    ("backend", "old"),
    [
        ("lightgbm", False),
        ("lightgbm", True),
        *(pytest.param(backend, False, marks=pytest.mark.slow) for backend in ("xgboost", "sklearn")),
    ],
)
def test_a_child_fits_after_its_parent_used_threads_of_a_library(monkeypatch, backend, old):
    if backend == "xgboost":
        pytest.importorskip("xgboost")
    if old:  # GNU OpenMP that cannot end its threads
        library = SimpleNamespace(prefix="libgomp", dynlib=object())
        monkeypatch.setattr(threads, "ThreadpoolController", lambda: SimpleNamespace(lib_controllers=[library]))
    with threadpool_limits(2, "openmp"):
        expected = fit(backend)
        for _ in range(2):
            assert in_child(lambda: np.array_equal(fit(backend), expected) and usable_threads(2) == 2 - old) == 0
            assert np.array_equal(fit(backend), expected)


@pytest.mark.slow
def test_a_child_fits_while_another_thread_of_its_parent_does():
    expected = fit(rows=300)
    stop = threading.Event()

    def others():
        while not stop.is_set():
            fit(rows=300, n_jobs=1)

    thread = threading.Thread(target=others)
    thread.start()
    try:
        for _ in range(5):
            assert in_child(lambda: np.array_equal(fit(rows=300), expected)) == 0
    finally:
        stop.set()
        thread.join()


def test_a_child_fits_in_the_middle_of_a_fit():
    expected, ends = fit(rows=300), []
    fit(rows=300, callbacks=[lambda progress: ends.append(in_child(lambda: np.array_equal(fit(rows=300), expected)))])
    assert ends == [0, 0]


def test_forked_workers_fit_with_threads():
    expected = fit(rows=300)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        found = pool.starmap_async(fit, [("lightgbm", 300)] * 4).get(timeout=HANGS)
    assert all(np.array_equal(one, expected) for one in found)
