"""Is a difference between two models real? A t test of paired differences over folds whose training rows overlap.

Scores of folds are not independent, as their models share training rows: the plain standard error is too small. Nadeau
and Bengio (2003, "Inference for the generalization error", Machine Learning 52) replace 1/J, for J differences, by
1/J + test rows / training rows. As the posterior under a flat prior, the same t distribution gives the chance that one
model is better (Corani and Benavoli, 2015, Machine Learning 100).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import t as student

from boostbp.runtime.arrays import Floats

LEVEL = 0.95  # of all intervals of a comparison together


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """The mean of paired differences, positive if a model is better than the reference."""

    mean: float
    standard_error: float  # with the overlap of training rows
    degrees: int  # of freedom
    p_value: float  # of no difference, two-sided, for this comparison alone
    chance: float  # that the model is better
    low: float = -np.inf  # bounds of the interval
    high: float = np.inf

    @property
    def is_better(self) -> bool:
        """Whether the model is better beyond chance."""
        return self.low > 0

    @property
    def is_worse(self) -> bool:
        """Whether the model is worse beyond chance."""
        return self.high < 0

    def interval(self, level: float) -> PairedDifference:
        """Return the same with the bounds of an interval."""
        reach = float(student.ppf(0.5 + level / 2, self.degrees)) * self.standard_error if self.standard_error else 0.0
        return replace(self, low=self.mean - reach, high=self.mean + reach)


def paired(differences: Floats, ratio: float, level: float = LEVEL) -> PairedDifference:
    """Return the mean of differences over folds, (folds,) of at least 2; `ratio` is that of test to training rows."""
    count = len(differences)
    mean, variance = float(np.mean(differences)), float(np.var(differences, ddof=1))
    error = float(np.sqrt((1 / count + ratio) * variance))
    if error <= 1e-12 * abs(mean):  # few folds may gain the same by chance; copies of a model do by nature
        error = np.inf if mean else 0.0
    chance = float(student.cdf(mean / error, count - 1)) if error else 0.5
    return PairedDifference(mean, error, count - 1, 2 * min(chance, 1 - chance), chance).interval(level)


def jointly(differences: Mapping[str, PairedDifference], level: float = LEVEL) -> dict[str, PairedDifference]:
    """Return differences with intervals that hold together with a probability of at least `level` (Bonferroni)."""
    single = 1 - (1 - level) / max(len(differences), 1)
    return {name: difference.interval(single) for name, difference in differences.items()}
