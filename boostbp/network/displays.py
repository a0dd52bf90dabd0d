"""Displays of the progress of a training: a bar, and lines of a log."""

from __future__ import annotations

import logging
import sys
import time
from contextlib import suppress
from typing import Any, TextIO

from boostbp.network.history import Epoch
from boostbp.network.monitor import Progress, Stage

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
    """

    def __init__(self) -> None:
        self._bar: Any = None
        self._of_stages = False

    def __call__(self, progress: Progress) -> None:
        """Move the bar after an epoch; the bar of an ensemble only shows the figures."""
        number, shown = progress.epoch.epoch, figures(progress.epoch)
        if self._of_stages:
            self._show(f"epoch {number}  {shown}", None)
        elif self._open(total=progress.epochs, initial=number, desc="boostbp", unit="epoch"):
            self._show(shown, number)

    def stage(self, stage: Stage) -> None:
        """Move the bar of an ensemble to a stage."""
        self._of_stages = True
        form = "{desc}: {percentage:3.0f}%|{bar}| [{elapsed}{postfix}]"
        if self._open(total=100, desc="boostbp", bar_format=form):
            if stage.hint:
                self._bar.write(f"boostbp: {stage.hint}", file=_Lenient(sys.stderr))
            self._bar.set_description_str(f"boostbp, {stage.name}", refresh=False)
            self._show(f"held-out loss {stage.score:.6g}, models: {stage.n_models}", int(100 * min(stage.share, 1.0)))

    def _open(self, **how: Any) -> bool:
        """Open the bar if there is none yet, and return whether there is one."""
        if self._bar is None and sys.stderr is not None:
            from tqdm.auto import tqdm

            self._bar = tqdm(**how, file=_Lenient(sys.stderr))
        return self._bar is not None

    def _show(self, figures: str, number: int | None) -> None:
        if self._bar is not None:
            self._bar.set_postfix_str(figures, refresh=False)
            self._bar.update(0 if number is None else number - self._bar.n)
            self._bar.refresh()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state of copies, without the bar of this process."""
        return {"_bar": None, "_of_stages": False}

    def close(self) -> None:
        """Close the bar, which stays on screen."""
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
            self._last, seconds = stage.name, time.perf_counter() - self._begun
            log.info("%s, %.1f s: held-out loss %.6g, models %d", stage.name, seconds, stage.score, stage.n_models)
        if stage.hint:
            log.info("%s", stage.hint)


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
