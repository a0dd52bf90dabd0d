"""Workers that are started once for all tests."""

from __future__ import annotations

import multiprocessing
import signal
from concurrent.futures import ProcessPoolExecutor

import pytest
from process_workers import start


@pytest.fixture(scope="session")
def pool():
    # What runs the tests in the background may leave Ctrl-C ignored, in all processes that it starts.
    ctrl_c = (signal.SIGINT, signal.default_int_handler)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(4, context, initializer=signal.signal, initargs=ctrl_c) as pool:
        yield start(pool, 2)  # more begin with the tests that need them
