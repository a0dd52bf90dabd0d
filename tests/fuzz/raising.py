"""Errors of a user's functions arrive as themselves, whatever their kind: ``python -m tests.fuzz.raising --cases 500``.

A fit calls a user's loss, metric, backend, basis, step rule, callback or splitter some hundred times. Each case raises
one error in one of these calls.
"""

from __future__ import annotations

import sqlite3
import sys
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import CancelledError
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import ShuffleSplit

from boostbp import BoostBPClassifier, BoostBPRegressor, Elementwise
from boostbp.backends import load_backend
from boostbp.losses import load_loss
from boostbp.network.steps import Normalised
from tests.support.child_cases import Note, Program, main


class Ended(BaseException):
    """An error that is no Exception."""


class NeedsError(Exception):
    """An error that cannot be made again from its message, copied or pickled."""

    def __init__(self, first: object, *, second: object) -> None:
        super().__init__()
        self.held = first, second, threading.Lock()


ERRORS: dict[str, Callable[[], BaseException]] = {
    kind.__name__: lambda kind=kind: kind("mine", 40)  # type: ignore[misc]
    for kind in (
        *(StopIteration, StopAsyncIteration, GeneratorExit, KeyboardInterrupt, SystemExit, MemoryError, IndexError),
        *(KeyError, AttributeError, TypeError, ValueError, ArithmeticError, FloatingPointError, OverflowError, OSError),
        *(RuntimeError, RecursionError, NotImplementedError, AssertionError, ImportError, TimeoutError, EOFError),
        *(UserWarning, np.linalg.LinAlgError, CancelledError, Ended),
    )
} | {
    "NeedsError": lambda: NeedsError(1, second=2),
    "UnicodeDecodeError": lambda: UnicodeDecodeError("utf-8", b"\xff", 0, 1, "mine"),
    "a full disk": lambda: OSError(28, "No space left on device"),
    "a read-only disk": lambda: OSError(30, "Read-only file system"),
    "a read-only database": lambda: sqlite3.OperationalError("attempt to write a readonly database"),
    "ExceptionGroup": lambda: ExceptionGroup("mine", [StopIteration()]),
    "a library's": lambda: __import__("lightgbm").basic.LightGBMError("mine"),
}


class Calls:
    """Counts calls of the user's functions, and raises an error in one of them."""

    def __init__(self, error: BaseException | None = None, at: int = 0) -> None:
        self.error, self.at, self.count, self.where, self.lock = error, at, 0, "", threading.Lock()

    def __call__(self, where: str) -> None:
        with self.lock:
            self.count += 1
            is_now = self.count == self.at
        if is_now and self.error is not None:
            self.where = where
            raise self.error

    def of(self, where: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The same function, counted."""

        def counted(*args: Any, **options: Any) -> Any:
            self(where)
            return function(*args, **options)

        return counted


class Counted:
    """An object of the user whose methods are counted."""

    def __init__(self, inner: Any, calls: Calls, methods: str) -> None:
        self.inner, self.calls, self.methods = inner, calls, methods.split()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("inner", "calls", "methods", "core_calls"):
            raise AttributeError(name)
        value = getattr(self.inner, name)
        if name not in self.methods:
            return value

        def counted(*args: Any, **options: Any) -> Any:
            self.calls(f"{type(self.inner).__name__}.{name}")
            result = value(*args, **options)
            kept = name in ("bind", "fork", "take", "prepare")
            return Counted(result, self.calls, " ".join(self.methods)) if kept else result

        return counted


LOSS = "value gradient hessian derivatives link baseline check prepare inverse_link deviation"
PLACES = ["loss", "metric", "backend", "basis", "callback", "step", "splitter"]
X = np.random.default_rng(0).uniform(-1, 1, (80, 3))
Y = np.column_stack([X[:, 0] + np.abs(X[:, 1]), X[:, 2]])


@dataclass(frozen=True)
class Case:
    """A fit, and the error of a call."""

    error: str
    places: tuple[str, ...]  # what is the user's own
    share: float  # the call, from the first, 0, to the last, 1
    loss: str = "squared_error"
    deep: Any = "auto"
    quality: int = 1
    n_jobs: int = 1
    outputs: int = 1
    options: tuple[tuple[str, Any], ...] = ()

    @staticmethod
    def drawn(rng: np.random.Generator) -> Case:
        """A case at random."""

        def one(*values: Any) -> Any:
            return values[rng.integers(len(values))]

        several = tuple(place for place in PLACES if rng.random() < 0.25)
        options = {"early_stopping": one("auto", True, False), "leaves": one("refit", "refit", "native")}
        return Case(
            error=one(*ERRORS, *["StopIteration"] * 8),
            places=several or (one(*PLACES),),
            share=float(rng.random()),
            loss=one("squared_error", "log_loss", "poisson", "quantile", "huber"),
            deep=one("auto", "auto", True, False),
            quality=one(1, 1, 1, 2, 3),
            n_jobs=one(1, 2),
            outputs=one(1, 2),
            options=tuple(options.items()),
        )


def fitted(case: Case, calls: Calls) -> Any:
    """Fit the model of a case, and use it."""
    is_classifier = case.loss == "log_loss"
    own = {name: name in case.places for name in PLACES}
    loss: Any = load_loss(case.loss, n_outputs=case.outputs)
    backend: Any = load_backend("lightgbm")
    words: dict[str, Any] = {"loss": Counted(loss, calls, LOSS) if own["loss"] else loss}
    y = Y[:, 0] if case.outputs == 1 else Y
    if case.loss == "poisson":
        y = np.exp(y)
    if is_classifier:
        words, y = {}, np.digitize(Y[:, 0], [0.3, 0.8][: case.outputs])
    if own["backend"]:
        words["backend"] = Counted(backend, calls, "bind fork grow take boost core_calls")
    if own["basis"]:
        functions = calls.of("function", lambda x: x), calls.of("function", np.sin)
        words["basis"] = Elementwise(functions, (calls.of("slope", np.ones_like), calls.of("slope", np.cos)))
    if own["step"]:
        words["backprop"] = {"step": Counted(Normalised(0.5, 0.5), calls, "move")}
    if own["splitter"]:
        words["validation"] = Counted(ShuffleSplit(1, test_size=0.2, random_state=0), calls, "split")
    if own["metric"]:
        words["eval_metric"] = (
            "mine",
            calls.of("metric", lambda y_true, y_pred: float(np.square(y_pred).mean())),
            False,
        )
    fit: dict[str, Any] = {"callbacks": [calls.of("callback", lambda progress: None)] if own["callback"] else None}
    layer = {"n_estimators": 3, "max_depth": 2, "min_samples_leaf": 5}
    if "basis" in words:
        layer["basis"] = words.pop("basis")
    options = dict(case.options)
    leaves = options.pop("leaves", "refit")
    layer["leaves"] = "refit" if own["basis"] or own["backend"] or case.outputs > 1 else leaves
    estimator = (BoostBPClassifier if is_classifier else BoostBPRegressor)(
        (2,), deep=case.deep, quality=case.quality, n_jobs=case.n_jobs, epochs=2, random_state=0,
        hidden=layer, output=layer, **words, **options,
    )  # fmt: skip
    if case.deep == "auto" or own["splitter"]:
        estimator.set_params(early_stopping="auto")
    rows = [(X[:20], y[:20])] if own["metric"] and not own["splitter"] and case.deep is not True else None
    estimator.fit(X, y, eval_set=rows, **fit)
    estimator.predict(X[:3])
    estimator.jacobian(X[:3])
    estimator.score(X, y)
    return estimator


def outcome_of(case: Case) -> str:
    """Run a case; AssertionError unless the error arrives as itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        counted, error = Calls(), ERRORS[case.error]()
        fitted(case, counted)
        calls, received = Calls(error, 1 + int(case.share * (counted.count - 1))), None
        try:
            fitted(case, calls)
        except BaseException as raised:
            received = raised
    expected = error if calls.where else None  # with threads, a model may end sooner, before this call
    assert received is expected, f"{received!r} instead of {error!r} of {calls.where or 'nothing'}, call {calls.at}"
    return "arrived" if received else "no such call"


def begin(folder: Path, n_cases: int, seed: int) -> Callable[[int, Note], str]:
    """Return what tries the case of a number."""

    def attempt(number: int, note: Note) -> str:
        case = Case.drawn(np.random.default_rng([seed, number]))
        note(case)
        return outcome_of(case)

    return attempt


if __name__ == "__main__":
    sys.exit(main(Program("tests.fuzz.raising", __doc__, 500, begin, seconds=600)))
