"""Budget: limits of a fit. The quality limits the counted work, `max_time` limits the seconds.

Counted work is the same on every machine, so a fit is repeatable. The unit of work is a million table cells that a
search for splits reads.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from boostbp.network.layers import LayerSettings
from boostbp.network.settings import Settings
from boostbp.runtime import clock
from boostbp.runtime.group import workers

DEFAULT_QUALITY = 3

# Fitted to the seconds of the candidates on ten tables of 250 to 2,700 rows (journal, "A fit that is good whenever it
# stops"). An accuracy of a factor of two is enough, as they only decide the order of the work.
ROUND, TREE = 0.07, 0.03  # fixed work of a round and of each of its trees
LEAF_ROW = 10e-6  # work of a row in a leaf regression
REUSE_WORK = 0.6  # work of a round that reuses its structures, as a share of one that grows them


class Effort(NamedTuple):
    """Limits on the work of a fit."""

    # of a member, as a multiple of the work of its first two candidates, which are boosted while the held-out loss
    # falls
    work: float
    members: int = 1  # models that are averaged, each with held-out rows of its own


@dataclass(frozen=True, slots=True)
class QualityLevel:
    """Limits and rules of the fits of one quality."""

    layers: Effort  # of a fit of single layers alone
    # of a fit that trains networks, because leaves with slopes do much better than constant ones
    # (`boostbp.ensemble.schedule`); None: no fit of this quality trains networks
    networks: Effort | None
    first_layers: bool = False  # whether the model consists of first layers alone
    trials: int | None = None  # limit on the layers that get a trial beside the first two; None for no limit
    # whether networks are also trained for three or more classes, and whether a network that is trained alone runs all
    # epochs, however little further epochs promise
    thorough: bool = False
    refit: bool = True  # whether leaves are fitted again on all rows, if the held-out ones are training rows

    def effort(self, *, networks: bool) -> Effort:
        """Return the limits of a fit with or without networks."""
        return self.networks if networks and self.networks is not None else self.layers

    def costs(self, *, networks: bool) -> list[float]:
        """Return the work of all members without networks, and with them if networks are possible, ascending."""
        efforts = [self.effort(networks=trained) for trained in (False, networks)]
        return sorted({effort.work * effort.members for effort in efforts})


# Without networks, more work gains nothing and more members gain little: journal, "Work or members". Several classes:
# journal, "Where networks are trained".
LEVELS: dict[int, QualityLevel] = {
    1: QualityLevel(Effort(1.0), networks=None, first_layers=True),
    2: QualityLevel(Effort(1.3), networks=Effort(2.2), trials=1),
    3: QualityLevel(Effort(2.0), networks=Effort(5.0)),
    4: QualityLevel(Effort(3.0, members=2), networks=Effort(15.0), thorough=True),
    5: QualityLevel(Effort(3.0, members=6), networks=Effort(15.0, members=4), thorough=True),
}


def round_work(
    settings: LayerSettings, n_rows: int, n_features: int, n_outputs: int, grown: float = 1, one_structure: bool = False
) -> float:
    """Return the work of one round of a layer.

    `grown` is the share of the rounds that grow their structures. With `one_structure`, the trees of a round share one.
    """
    growth = settings.growth
    trees = 1 if growth.multi_output else n_outputs
    structures = 1 if one_structure else trees
    # Each level of a tree reads all rows of the sampled features.
    levels = max(math.log2(min(growth.leaves, n_rows)), 1.0)
    split_row = 1e-6 * max(growth.colsample_bytree * n_features, 1.0) * levels
    leaf_row = LEAF_ROW if settings.basis.columns_per_feature or one_structure else 0.0
    calls = grown + (1.0 - grown) * REUSE_WORK
    rows = structures * grown * split_row + trees * leaf_row
    return calls * (ROUND + structures * TREE) + rows * n_rows


def epoch_work(settings: Settings, n_rows: int, n_features: int, n_outputs: int) -> float:
    """Return the mean work of an epoch of back-propagation: structures are grown in some epochs only."""
    total, layer_features = 0.0, n_features
    for layer, units in zip(settings.layers, (*settings.units, n_outputs), strict=True):
        total += layer.n_estimators * round_work(layer, n_rows, layer_features, units, 1.0 / settings.structure_epochs)
        layer_features = units + settings.skip * n_features
    return total


@dataclass
class Budget:
    """A limit on the seconds of a fit since its begin, or none."""

    seconds: float | None
    spent: bool = False  # whether work was shortened or skipped because time was up
    _begun: float = field(default_factory=lambda: clock.of_fit().begun)

    @property
    def elapsed(self) -> float:
        """Seconds so far."""
        return time.perf_counter() - self._begun

    def over(self, *later: float, here: bool = False) -> bool:
        """Return whether to stop. If time is up, `spent` is set, as the caller will skip work.

        `later` are the expected seconds of the next step, and those to reserve for the steps at the end. With `here`
        the clock of this process decides. By default that of rank 0 does, so all workers of a group must call this
        together.
        """
        if self.seconds is not None:
            is_up = self.elapsed + sum(later) >= self.seconds
            if is_up if here else workers().agree(is_up):
                self.spent = True  # never reset to False, as several threads call this
                return True
        return False

    @contextmanager
    def part(self, share: float) -> Iterator[None]:
        """Limit the work within to a share of the remaining seconds."""
        whole = self.seconds
        if whole is not None:
            elapsed = self.elapsed
            self.seconds = elapsed + share * max(whole - elapsed, 0.0)
        try:
            yield
        finally:
            self.seconds = whole
