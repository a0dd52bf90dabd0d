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
    if error <= 1e-12 * abs(mean) or not error:  # the same difference in all folds; none between copies of a model
        chance = 0.5 + 0.5 * float(np.sign(mean))
        found = PairedDifference(mean, 0.0, count - 1, float(mean == 0), chance)
    else:
        chance = float(student.cdf(mean / error, count - 1))
        found = PairedDifference(mean, error, count - 1, 2 * min(chance, 1 - chance), chance)
    return found.interval(level)


def with_holm(differences: Mapping[str, PairedDifference], level: float = LEVEL) -> dict[str, PairedDifference]:
    """Return differences from one reference, whose intervals are corrected for their number by Holm's procedure.

    The smallest of m p-values is judged at alpha / m, the next one at alpha / (m - 1), and so on until one is no longer
    significant, whose level the remaining ones have. So an interval excludes 0 exactly if Holm's test rejects.
    """
    corrected, left, alpha = {}, len(differences), 1 - level
    is_open = True
    for name, difference in sorted(differences.items(), key=lambda item: item[1].p_value):
        if is_open:
            alpha = (1 - level) / left
        corrected[name] = difference.interval(1 - alpha)
        is_open, left = difference.p_value < alpha, left - 1
    return {name: corrected[name] for name in differences}
