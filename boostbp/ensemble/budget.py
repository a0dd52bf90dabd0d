"""Budget: the seconds of a fit, shared out among the candidates for its model."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

import numpy as np

__all__ = ["Budget", "Turn"]


@dataclass
class Budget:
    """Seconds from now on, or no limit.

    Attributes
    ----------
    seconds : float or None
    spent : bool
        Whether something was cut short or left out for want of time.
    ended : bool
        Whether nothing is wanted any more, whatever the time.
    """

    seconds: float | None
    spent: bool = False
    ended: bool = False
    _begun: float = field(default_factory=time.perf_counter)

    def share(self, end: float, left: int = 1) -> float | None:
        """Seconds for the next of so many that are all to be done by this share of the whole; None without a limit."""
        if self.seconds is None:
            return None
        return max(self._begun + end * self.seconds - time.perf_counter(), 0.0) / left

    def until(self, end: float, left: int = 1) -> float:
        """The same as a reading of `time.perf_counter`; inf without a limit."""
        share = self.share(end, left)
        return np.inf if share is None else time.perf_counter() + share

    def over(self, until: float | None = None) -> bool:
        """Whether that reading, or the end of it all, has come; what asks loses something if it has."""
        if until is None:
            until = np.inf if self.seconds is None else self._begun + self.seconds
        over = time.perf_counter() >= until
        if over:  # threads ask, so that nothing is written otherwise
            self.spent = True
        return over or self.ended

    def end(self) -> None:
        """Let all that asks stop."""
        self.ended = True


@dataclass(frozen=True, slots=True)
class Turn:
    """The time of one candidate.

    Attributes
    ----------
    budget : Budget
    share : float
        Share of `max_time` by which all candidates of its kind are to be done.
    left : int
        How many turns of this kind there are from this one on.
    required : bool
        Whether it is trained whatever the time.
    until : float
        When it ends, by `time.perf_counter`.
    """

    budget: Budget
    share: float = 1.0
    left: int = 1
    required: bool = False
    until: float = np.inf

    def begun(self) -> Turn:
        """The turn, with an end by the time that is left now."""
        return replace(self, until=self.budget.until(self.share, self.left))

    def seconds(self) -> float | None:
        """Seconds until its end; None without a limit."""
        return None if self.budget.seconds is None else max(self.until - time.perf_counter(), 0.0)

    def over(self) -> bool:
        """Whether its end, or that of everything, has come."""
        return self.budget.over(self.until)
