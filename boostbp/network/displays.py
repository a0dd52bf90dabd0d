"""Displays of the progress of a training: a bar, and lines of a log."""

from __future__ import annotations

import logging
import multiprocessing
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, TextIO

from boostbp.network.history import Epoch
from boostbp.network.monitor import Progress, Stage
from boostbp.runtime import checks
from boostbp.runtime.group import workers

DELAY = 0.5  # seconds before verbose="auto" shows a bar. Arbitrary, less than a second
log = logging.getLogger("boostbp")


class _Lenient:
    """A stream that ignores errors of writing."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        # The reader of a pipe may have ended, and the stream may be closed or unable to encode the text.
        with suppress(OSError, ValueError):
            self._stream.write(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class ProgressBar:
    """A progress bar of tqdm; ``verbose=1`` shows it.

    For a network it shows the epoch, training loss, metrics and remaining time; for an ensemble the work, the present
    stage and the held-out loss. Without a standard error stream, as in services, there is no bar.

    Parameters
    ----------
    delay : float
        Seconds after which the bar opens, so that quick fits show none.
    leave : bool
        Whether the bar stays on screen at the end.
    """

    def __init__(self, delay: float = 0.0, leave: bool = True) -> None:
        self._delay, self._leave = delay, leave
        self._begun = time.time()  # tqdm's clock
        self._bar: Any = None
        self._of_stages = False
        # What the bar shows, as attributes of tqdm's bar; its figures, and hints that are not yet written.
        self._state: dict[str, Any] = {"total": 100, "bar_format": "{desc}: [{elapsed}]", "n": 0}
        self._description, self._figures = "boostbp, fitting", ""
        self._hints: list[str] = []
        self._lock, self._ended = threading.Lock(), threading.Event()
        self._ticker: threading.Thread | None = None

    def __reduce__(self) -> tuple[type[ProgressBar], tuple[float, bool]]:
        """Return copies without the bar of this process."""
        return type(self), (self._delay, self._leave)

    def start(self) -> None:
        """Keep the clock of the bar going until `close`, also in stages of many seconds without news."""
        self._ticker = threading.Thread(target=self._tick, name="boostbp-progress", daemon=True)
        self._ticker.start()

    def _tick(self) -> None:
        self._ended.wait(self._delay)
        while not self._ended.is_set():
            self._draw()
            self._ended.wait(1.0)

    def __call__(self, progress: Progress) -> None:
        """Move the bar after an epoch; the bar of an ensemble only shows the figures."""
        number, shown = progress.epoch.epoch, figures(progress.epoch)
        if self._of_stages:
            self._figures = f"epoch {number}  {shown}"
        else:
            start = self._state.get("initial", number)
            self._state = {"total": progress.epochs, "bar_format": None, "unit": "epoch", "initial": start, "n": number}
            self._description, self._figures = "boostbp", shown
        self._draw()

    def stage(self, stage: Stage) -> None:
        """Move the bar of an ensemble to a stage."""
        self._of_stages = True
        form = "{desc}: {percentage:3.0f}%|{bar}| [{elapsed}{postfix}]"
        self._state = {"total": 100, "bar_format": form, "n": int(100 * min(stage.share, 1.0))}
        self._description = f"boostbp, {stage.name}"
        self._figures = f"held-out loss {stage.score:.6g}, models: {stage.n_models}"
        if stage.hint:
            self._hints.append(f"boostbp: {stage.hint}")
        self._draw()

    def _draw(self) -> None:
        """Show the present state; open the bar if it is time to."""
        with self._lock:
            if self._bar is not None and self._bar.bar_format != self._state["bar_format"]:
                self._bar.leave = False
                self._bar.close()
                self._bar = None
            if self._bar is None and time.time() >= self._begun + self._delay and sys.stderr is not None:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # in a notebook without ipywidgets, where the bar is text
                    from tqdm.auto import tqdm

                how = {name: value for name, value in self._state.items() if name != "n"}
                self._bar = tqdm(desc=self._description, **how, leave=self._leave, file=_Lenient(sys.stderr))
                if "initial" not in how:  # the time of an epoch counts from the first one
                    self._bar.start_t = self._begun
            if self._bar is None:
                return
            for hint in self._hints:
                self._bar.write(hint, file=self._bar.fp)
            self._hints.clear()
            self._bar.n = self._state["n"]
            self._bar.set_description_str(self._description, refresh=False)
            self._bar.set_postfix_str(self._figures, refresh=False)
            self._bar.refresh()

    def close(self) -> None:
        """Close the bar, which stays on screen if it is to be left."""
        self._ended.set()
        if self._ticker is not None:
            self._ticker.join()
        with self._lock:
            if self._bar is not None:
                self._bar.close()
                self._bar = None


class StageLog:
    """Logs each new stage of an ensemble to the logger ``boostbp``, level INFO; ``verbose=2`` uses it."""

    def __init__(self) -> None:
        self._begun, self._last = time.perf_counter(), ""

    def stage(self, stage: Stage) -> None:
        """Log a stage if it is a new one, and its hint."""
        if stage.name != self._last:
            self._last = stage.name
            log.info(
                "%s, %.1f s: held-out loss %.6g, models %d",
                stage.name, time.perf_counter() - self._begun, stage.score, stage.n_models,
            )  # fmt: skip
        if stage.hint:
            log.info("%s", stage.hint)


_shown: ContextVar[ProgressBar | StageLog | None] = ContextVar("boostbp_display", default=None)


def current_display() -> ProgressBar | StageLog | None:
    """Return the display of the present fit."""
    return _shown.get()


@contextmanager
def showing(verbose: object) -> Iterator[None]:
    """Show the progress of a fit, from its start until its end; a fit within another one has no display.

    Raises ValueError if `verbose` is neither "auto" nor a whole number.
    """
    display = _display(verbose)
    if _shown.get() is not None:
        yield
        return
    token = _shown.set(display)
    if isinstance(display, ProgressBar):
        display.start()
    try:
        yield
    finally:
        _shown.reset(token)
        if isinstance(display, ProgressBar):
            display.close()


def _display(verbose: object) -> ProgressBar | StageLog | None:
    if isinstance(verbose, str) and verbose == "auto":
        return ProgressBar(DELAY, leave=False) if _is_watched() else None
    if not (isinstance(verbose, bool) or checks.is_whole(verbose)):
        raise ValueError(
            f"verbose={verbose!r} is not a whole number: 0 is silent, 1 a bar, 2 a log; or 'auto', a bar of slow fits."
        )
    if workers().rank or int(verbose) < 1:
        return None
    if int(verbose) == 1:
        return ProgressBar()
    show_log()
    return StageLog()


def _is_watched() -> bool:
    """Return whether a terminal or a notebook shows the standard error, and this is its process and main thread."""
    with suppress(AttributeError, OSError, ValueError):
        is_seen = type(sys.stderr).__module__.startswith("ipykernel.") or sys.stderr.isatty()
        in_main = threading.current_thread() is threading.main_thread() and multiprocessing.parent_process() is None
        return is_seen and in_main and not workers().rank
    return False


def show_log() -> None:
    """Let the logger ``boostbp`` write to the standard error, if no logging is set up."""
    if not log.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
        log.addHandler(handler)
        log.setLevel(logging.INFO)


def figures(epoch: Epoch) -> str:
    """Return the loss and metrics of an epoch as words."""
    return "  ".join([f"loss {epoch.loss:.6g}", *(f"{name} {value:.6g}" for name, value in epoch.metrics.items())])
