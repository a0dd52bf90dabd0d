"""A process for each model of a comparison, which trains it on one fold after another.

So libraries do not affect each other, peak memory is that of the model, and a crash ends one model only.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import joblib
from joblib.externals.loky import BrokenProcessPool, ProcessPoolExecutor

from boostbp.comparison.measuring import FoldOutcome, Job, TableData, measure

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class ModelProcesses:
    """Processes by the label of their model; they start on their first job."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder, self._stack = folder, stack
        self._started: dict[str, tuple[ProcessPoolExecutor, Path]] = {}

    def run(self, job: Job) -> FoldOutcome:
        """Run a job in the process of its model."""
        executor, log = self._process(job)
        try:
            outcome: FoldOutcome = executor.submit(_work, self._folder, job).result()
        except BrokenProcessPool as error:
            lines = log.read_text(errors="backslashreplace").strip().splitlines() if log.exists() else []
            ended = str(error).rpartition("exit codes of the workers are ")[2].strip("{}.\n ")
            return FoldOutcome("failed", f"its process ended: {': '.join([ended, *lines[-1:]])}")
        return outcome

    def _process(self, job: Job) -> tuple[ProcessPoolExecutor, Path]:
        label = job.contender.label
        if label not in self._started:
            log = self._folder / f"{len(self._started)}.log"
            env = dict.fromkeys(_THREADS, str(job.n_jobs))
            executor = ProcessPoolExecutor(1, env=env, initializer=_redirect, initargs=(log,))
            self._stack.callback(executor.shutdown, kill_workers=True)
            self._started[label] = executor, log
        return self._started[label]


@contextmanager
def model_processes(data: TableData) -> Iterator[ModelProcesses]:
    """Yield processes that share the rows; they end with the context."""
    with TemporaryDirectory(prefix="boostbp-", ignore_cleanup_errors=True) as name, ExitStack() as stack:
        joblib.dump(data, Path(name) / "data.joblib")
        yield ModelProcesses(Path(name), stack)


def _work(folder: Path, job: Job) -> FoldOutcome:
    return measure(job, _read(folder))


@cache
def _read(folder: Path) -> TableData:
    """Return the rows; arrays are mapped, so that all processes share them."""
    data: TableData = joblib.load(folder / "data.joblib", mmap_mode="r")
    return data


def _redirect(log: Path) -> None:
    """Send what libraries print, also from C, to a file."""
    number = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(number, stream)
