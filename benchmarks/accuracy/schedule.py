"""Running cells in worker processes, a data set and fold at a time in each."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.accuracy.plan import DEEP, Cell
from benchmarks.accuracy.results import Keyed, Results
from benchmarks.accuracy.work import run

__all__ = ["call_of", "run_all", "run_groups"]

_DEFAULTS = DEEP[:2]
AnyCell = TypeVar("AnyCell", bound=Keyed)
Call = tuple[Any, ...]  # a function, and what it is called with


def run_all(
    groups: Sequence[Sequence[Cell]],
    results: Results,
    data_dir: Path | None,
    *,
    workers: int,
    until: float,
    say: Callable[[Cell, dict[str, Any]], None],
) -> None:
    """Run what is not finished yet.

    Parameters
    ----------
    groups : sequence of sequence of Cell
        Cells of one data set and fold, deep models first.
    results : Results
        Gets each outcome as it comes.
    data_dir : Path or None
    workers : int
        Processes at a time, of one thread each.
    until : float
        Time (`time.monotonic`) after which no cell is begun.
    say : callable
        Told of each cell that was run.
    """
    call = partial(call_of, results, data_dir)
    run_groups(groups, results, call, workers=workers, until=until, say=say)


def call_of(results: Results, data_dir: Path | None, cell: Cell) -> Call:
    """How a cell is run: with the seconds and the trees of the deep models that ran before."""
    done = [found for name in _DEFAULTS if (found := results.of(replace(cell, model=name)))]
    seconds = max((found["seconds"] for found in done), default=0.0)
    trees = max((found["trees"] or 0 for found in done), default=0)
    return run, cell, data_dir, seconds, trees


def run_groups(
    groups: Sequence[Sequence[AnyCell]],
    results: Results,
    call: Callable[[AnyCell], Call],
    *,
    workers: int,
    until: float,
    say: Callable[[AnyCell, dict[str, Any]], None],
) -> None:
    """Run the cells of any benchmark that are not finished yet, a group at a time in each worker process.

    Parameters
    ----------
    groups : sequence of sequence of cells
    results : Results
    call : callable
        Takes a cell just before it is run and returns the function that runs it, and that function's arguments.
    workers, until, say
        As of `run_all`.
    """
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"  # workers inherit it before they load a library
    stop = threading.Event()
    with ThreadPoolExecutor(workers) as threads:
        running: list[Future[None]] = [
            threads.submit(_group, group, results, call, lambda: stop.is_set() or time.monotonic() >= until, say)
            for group in groups
        ]
        try:
            for each in running:
                each.result()
        finally:  # an interruption ends with the cells that are running
            stop.set()


def _group(
    group: Sequence[AnyCell],
    results: Results,
    call: Callable[[AnyCell], Call],
    over: Callable[[], bool],
    say: Callable[..., None],
) -> None:
    """Run the cells of a group in one process, and in another one if that dies."""
    pool: ProcessPoolExecutor | None = None
    for cell in group:
        if results.of(cell) is not None:
            continue
        if over():
            break
        pool = pool or _worker()
        try:
            outcome = pool.submit(*call(cell)).result()
        except BrokenProcessPool:
            pool = None
            outcome = {"state": "failed", "reason": "its process died"}
        results.add(cell, outcome)
        say(cell, outcome)
    if pool is not None:
        pool.shutdown()


def _worker() -> ProcessPoolExecutor:
    """A process that leaves Ctrl-C to this one: a fit that heard it would count as failed."""
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(1, context, initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_IGN))
