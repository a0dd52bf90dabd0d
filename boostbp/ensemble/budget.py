"""Budget: the seconds of a fit, in which nothing is compiled."""

from __future__ import annotations

from dataclasses import dataclass, field

from boostbp.runtime.compiling import working_time
from boostbp.runtime.group import workers


@dataclass
class Budget:
    """Seconds from now on, or no limit.

    Attributes
    ----------
    spent : bool
        Whether something was cut short or left out for want of time.
    ended : bool
        Whether nothing is wanted any more, whatever the time.
    """

    seconds: float | None
    spent: bool = False
    ended: bool = False
    _begun: float = field(default_factory=working_time)

    def over(self, later: float = 0.0) -> bool:
        """Whether time is up, or nothing is wanted any more; what asks loses something if it is.

        The clock is that of rank 0, and all workers of a group ask together.

        Parameters
        ----------
        later : float
            What is still to be done at the end, as a multiple of all that was done so far: time is left for it.
        """
        return self._decided(workers().agree(self._is_up(later)) if self.seconds is not None else False)

    def over_here(self, later: float = 0.0) -> bool:
        """The same by the clock of this process, where the other workers do not ask."""
        return self._decided(self._is_up(later))

    def _is_up(self, later: float) -> bool:
        return self.seconds is not None and (working_time() - self._begun) * (1.0 + later) >= self.seconds

    def _decided(self, over: bool) -> bool:
        if over:  # threads ask, so that nothing is written otherwise
            self.spent = True
        return over or self.ended

    def part(self, share: float) -> Budget:
        """A budget of a share of the seconds that are left."""
        if self.seconds is None:
            return Budget(None, ended=self.ended)
        return Budget(share * max(self._begun + self.seconds - working_time(), 0.0), ended=self.ended)

    def end(self) -> None:
        """Let all that asks stop."""
        self.ended = True
