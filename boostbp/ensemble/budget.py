"""Budget: the seconds of a fit."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from boostbp.runtime.group import workers


@dataclass
class Budget:
    """Seconds from now on, or no limit.

    Attributes
    ----------
    spent : bool
        Whether work was cut short or left out because time was up.
    ended : bool
        Whether all work ends now, whatever the time: the fit failed or was interrupted.
    """

    seconds: float | None
    spent: bool = False
    ended: bool = False
    _begun: float = field(default_factory=time.perf_counter)

    def over(self, later: float = 0.0) -> bool:
        """Return whether to stop. If time is up, `spent` is set, as the caller leaves work out.

        The clock of rank 0 decides, so all workers of a group must call this together.

        Parameters
        ----------
        later : float
            Work that remains for the end, as a multiple of all work so far. Time is reserved for it.
        """
        return self._decide(workers().agree(self._is_up(later)) if self.seconds is not None else False)

    def over_here(self, later: float = 0.0) -> bool:
        """Return the same by the clock of this process, where the other workers do not ask."""
        return self._decide(self._is_up(later))

    def _is_up(self, later: float) -> bool:
        return self.seconds is not None and (time.perf_counter() - self._begun) * (1.0 + later) >= self.seconds

    def _decide(self, is_up: bool) -> bool:
        if is_up:  # never reset to False, as several threads call this
            self.spent = True
        return is_up or self.ended

    def end(self) -> None:
        """End all work now: the fit failed or was interrupted."""
        self.ended = True

    def part(self, share: float) -> Budget:
        """Return a budget of a share of the seconds that are left."""
        if self.seconds is None:
            return Budget(None, ended=self.ended)
        return Budget(share * max(self._begun + self.seconds - time.perf_counter(), 0.0), ended=self.ended)
