"""Several models on the same task: score, time and memory.

Each model is trained in its own process, so that libraries do not affect each other and the peak memory is that of the
model. A rehearsal on few rows, which imports modules and starts threads, comes first.
"""

from __future__ import annotations

import ctypes
import gc
import os
import pickle
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import accuracy_score, log_loss, r2_score, root_mean_squared_error
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split

from boostbp.cli.report.contenders import Contender, Fitted, Model, Split, Table, train_contender
from boostbp.cli.report.result import Evidence, Result, curve_of, over_folds
from boostbp.losses.base import Task
from boostbp.network.history import History
from boostbp.runtime.arrays import Floats
from boostbp.runtime.threads import count

_VALID_SIZE = 0.2  # share of the training rows on which every model chooses its length. Arbitrary
_REFUSED_CHARACTERS = frozenset(',:[]{}"<')  # that LightGBM or XGBoost refuse in column names
# Arbitrary numbers: of a rehearsal, short beside any fit; of predictions, whose median is taken; of a picture's points.
_REHEARSAL_ROWS, _REHEARSAL_LENGTH = 400, 3  # length: rounds or epochs
_PREDICTIONS, _PLOTTED_ROWS = 3, 1500


@dataclass(frozen=True, slots=True)
class Data:
    """The rows of a comparison."""

    split: Split  # training and validation rows
    # (rows, features), (rows,): test rows
    X_test: Table
    y_test: NDArray[Any]
    labels: tuple[str, ...] = ()  # names of the classes; none for regression

    def predicted(self, model: Model, X: Table) -> Floats:
        """Return probabilities, (rows, classes), or numbers, (rows,)."""
        return (model.predict_proba if self.labels else model.predict)(X)


@dataclass(frozen=True, slots=True)
class Job:
    """A model to train, with its options."""

    contender: Contender
    n_jobs: int
    seed: int
    evidence: bool = False  # whether to return the data of pictures

    def train(self, data: Data, *, split: Split | None = None, length: int | None = None) -> Fitted:
        """Train the model on the rows of the data, or on another split."""
        task, split = "classification" if data.labels else "regression", split or data.split
        return train_contender(self.contender, split, task=task, n_jobs=self.n_jobs, seed=self.seed, length=length)


def splits(
    X: Table, y: ArrayLike, task: Task, *, test_size: float = 0.25, folds: int | None = None, seed: int = 0
) -> Iterator[Data]:
    """Return one split, or one for each fold: test rows, and validation rows in the rest; classes keep their shares."""
    y = np.asarray(y)
    labels: tuple[str, ...] = ()
    if folds is not None and not 2 <= folds <= len(y):
        raise ValueError(f"folds={folds} does not split {len(y)} rows: give 2 to {len(y)}, or leave it out.")
    if task == "classification":
        classes, y, counts = np.unique(y, return_inverse=True, return_counts=True)
        labels, needed = tuple(map(str, classes)), max(4, folds or 0)
        if len(classes) < 2 or counts.min() < needed:
            found = f"y has {len(classes)} classes, the smallest with {counts.min()} rows"
            cure = f"a comparison needs at least 2 classes with {needed} rows each, so merge small classes"
            raise ValueError(f"{found}: {cure}.")

    def cut(rows: NDArray[np.intp], share: float) -> list[NDArray[np.intp]]:
        return train_test_split(rows, test_size=share, random_state=seed, stratify=y[rows] if labels else None)

    X, rows = _with_accepted_names(X), np.arange(len(y))
    if folds is None:
        cuts = [cut(rows, test_size)]
    else:
        cuts = (StratifiedKFold if labels else KFold)(folds, shuffle=True, random_state=seed).split(rows, y)
    parts = [(*cut(rest, _VALID_SIZE), test) for rest, test in cuts]
    return (
        Data(Split(_rows(X, fit), y[fit], _rows(X, valid), y[valid]), _rows(X, test), y[test], labels)
        for fit, valid, test in parts
    )


def _with_accepted_names(X: Table) -> Table:
    """Return the table, with numbered columns if a library would refuse one of its names."""
    if isinstance(X, np.ndarray) or not any(set(str(name)) & _REFUSED_CHARACTERS for name in X.columns):
        return X
    return X.set_axis([f"x{column}" for column in range(X.shape[1])], axis=1)


def _rows(X: Table, rows: NDArray[np.intp]) -> Table:
    return X[rows] if isinstance(X, np.ndarray) else X.iloc[rows]


def compare_models(
    parts: Iterable[Data],
    contenders: Sequence[Contender],
    *,
    n_jobs: int = 1,
    seed: int = 0,
    evidence: bool = False,
    watch: Callable[[str, int], None] | None = None,
) -> list[Result]:
    """Train models on the same splits, each in its own process, and return their results.

    With `evidence`, results have the data of pictures. `watch` is called with the label of each model and the number of
    the split before its training.
    """
    runs: dict[str, list[Result]] = {contender.label: [] for contender in contenders}
    with TemporaryDirectory(prefix="boostbp-") as name:
        folder = Path(name)
        for fold, data in enumerate(parts):
            (folder / "data.pkl").write_bytes(pickle.dumps(data, protocol=5))
            for contender in contenders:
                if watch is not None:
                    watch(contender.label, fold)
                job = Job(contender, count(n_jobs), seed, evidence and fold == 0)
                runs[contender.label].append(_run(folder, job))
    return [over_folds(results) for results in runs.values()]


def _run(folder: Path, job: Job) -> Result:
    """Run one model in a child process."""
    result_file = folder / "result.pkl"
    result_file.unlink(missing_ok=True)
    (folder / "job.pkl").write_bytes(pickle.dumps(job))
    env = os.environ | dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(job.n_jobs))
    env["PYTHONPATH"] = os.pathsep.join(path or os.getcwd() for path in sys.path)
    # -P: the current folder must not precede the packages of this process
    command = [sys.executable, "-P", "-m", "boostbp.cli.report.comparison", str(folder)]
    child = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True)
    if result_file.exists():
        result: Result = pickle.loads(result_file.read_bytes())
        return result
    last_line = child.stderr.decode(errors="backslashreplace").strip().rpartition("\n")[2]
    return Result(job.contender.label, "failed", f"its process ended with code {child.returncode}: {last_line}")


def _work(folder: Path) -> None:
    """Read the data and the job from a folder, and write the result there."""
    data, job = (pickle.loads((folder / name).read_bytes()) for name in ("data.pkl", "job.pkl"))
    try:
        result = measure(job, data)
    except Exception as error:
        skipped = isinstance(error, ImportError)
        reason = str(error) if skipped else f"{type(error).__name__}: {error}"
        result = Result(job.contender.label, "skipped" if skipped else "failed", reason)
    (folder / "result.pkl").write_bytes(pickle.dumps(result))


def measure(job: Job, data: Data) -> Result:
    """Train, predict and score."""
    rehearse(job, data)
    peak, start = Peak(), time.perf_counter()
    model, length = job.train(data)
    fit_seconds, peak_bytes = time.perf_counter() - start, peak.bytes()
    seconds = []
    for _ in range(_PREDICTIONS):
        start = time.perf_counter()
        predicted = data.predicted(model, data.X_test)
        seconds.append(time.perf_counter() - start)
    scores, predict_seconds = _scores(data, predicted), statistics.median(seconds)
    size = len(pickle.dumps(model, protocol=5))
    evidence = _evidence(job, data, model, length, predicted) if job.evidence else None
    costs = fit_seconds, predict_seconds, peak_bytes, length, size
    history: History | None = getattr(model, "history_", None)
    choice = None if history is None else history.choice
    told = (choice.depth_in_words, choice.depth_pays) if choice is not None else ("", False)
    unit: Literal["rounds", "epochs"] = "rounds" if history is None or history.by_rounds else "epochs"
    return Result(job.contender.label, "ran", "", scores, *costs, (), evidence, unit, *told)


def rehearse(job: Job, data: Data) -> Fitted:
    """Train and predict on few rows that contain each class."""
    y = data.split.y
    members = [np.flatnonzero(y == number)[:5] for number in range(len(data.labels))]
    rows = np.unique(np.concatenate([np.arange(min(len(y), _REHEARSAL_ROWS)), *members]))
    X = _rows(data.split.X, rows)
    # validation labels in reverse order: with the right ones, boosting would only stop at its last round
    fitted = job.train(data, split=Split(X, y[rows], X, y[rows][::-1]), length=_REHEARSAL_LENGTH)
    data.predicted(fitted.model, X)
    return fitted


def _scores(data: Data, predicted: Floats) -> dict[str, float]:
    if not np.all(np.isfinite(predicted)):
        raise FloatingPointError("the predictions are not finite")
    y = data.y_test
    if data.labels:
        loss = log_loss(y, predicted, labels=np.arange(len(data.labels)))
        return {"accuracy": float(accuracy_score(y, predicted.argmax(axis=1))), "log_loss": float(loss)}
    return {"r2": float(r2_score(y, predicted)), "rmse": float(root_mean_squared_error(y, predicted))}


def _evidence(job: Job, data: Data, model: Model, length: int | None, predicted: Floats) -> Evidence:
    hidden, history = {}, getattr(model, "history_", None)
    if history is not None and history.network:  # otherwise no hidden layer was trained
        estimators = [model]
        if model.deep is True:  # an average has hidden layers of several networks, or none at epoch 0
            # The start is trained again here, so that it does not count for the seconds and memory of the fit.
            estimators.insert(0, job.train(data, length=0).model)
        rows = _rows(data.X_test, np.arange(min(len(data.y_test), _PLOTTED_ROWS)))
        hidden = {estimator.history_.best_epoch: estimator.hidden_representation(rows, -1) for estimator in estimators}
    return Evidence(data.y_test, predicted, curve_of(model, length), history, hidden, data.labels)


class Peak:
    """Peak resident memory since the object was created, minus the resident memory at that time; Linux only.

    The mark of other systems (`ru_maxrss`) cannot be reset, and a child process inherits that of its parent.

    >>> peak = Peak()
    >>> ballast = bytearray(50_000_000)
    >>> peak.bytes()  # doctest: +SKIP
    50003968
    """

    def __init__(self) -> None:
        gc.collect()
        self._start = None
        try:
            ctypes.CDLL(None).malloc_trim(0)  # otherwise free memory of the process would hide allocations
            Path("/proc/self/clear_refs").write_bytes(b"5")
            self._start = _resident()
        except (OSError, AttributeError, TypeError, StopIteration):  # another system or C library, or a sandbox
            pass

    def bytes(self) -> int | None:
        """Return the peak so far in bytes; None if it is unknown."""
        return None if self._start is None else _resident() - self._start


def _resident() -> int:
    """Return the high-water mark of the resident memory in bytes; a reset sets it to what is resident."""
    lines = Path("/proc/self/status").read_bytes().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(b"VmHWM:"))


if __name__ == "__main__":
    _work(Path(sys.argv[1]))
