"""Calibration: distances of a model from targets that it did not learn from, for conformal prediction [1]_.

A fitted model is compared with the targets of n rows that it did not learn from. If these and a new row may stand in
any order with the same probability, the distance of the new row is the k-th smallest of all n + 1 with the same
probability for each k.

Rows with weights, such as exposures or inverse probabilities, stand for new rows that are drawn in proportion to the
weights [2]_. Such a row has the weight ``sum w^2 / sum w`` on average, which counts as 1 here: the weights then sum to
the effective number of rows, ``n = (sum w)^2 / sum w^2`` (Kish), which is the number of rows if all weights are equal.

References
----------
.. [1] Lei, G'Sell, Rinaldo, Tibshirani, Wasserman: Distribution-free predictive inference for regression. JASA 113
   (2018).
.. [2] Tibshirani, Barber, Candès, Ramdas: Conformal prediction under covariate shift. NeurIPS 2019.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from boostbp.runtime.arrays import Floats

ROUNDING = 1e-12  # of coverage times rows


@dataclass(frozen=True, slots=True)
class Calibration:
    """How far a model was from targets that it had not seen."""

    # (rows, outputs) float64: of numbers the target minus the prediction, divided by the deviation that a loss tells of
    # it. Of classes, one column: 1 minus the probability of the true one.
    scores: Floats
    weight: Floats  # (rows,) float64: above 0, in any unit

    def bound(self, scores: Floats, coverage: float) -> float:
        """Return the score that so large a share of rows to come stays below.

        Of n rows it is the k-th smallest, ``k = ceil(coverage (n + 1))``: the row to come may take any of n + 1 places.
        Of rows with weights, n is their effective number, and k a sum of weights.

        Parameters
        ----------
        scores : (rows,) float64

        Raises
        ------
        ValueError
            If there are too few rows, so that the largest score does not do.
        """
        weight = self.weight / self.weight.max()
        weight *= weight.sum() / (weight @ weight)
        total = float(weight.sum())
        if coverage * (total + 1) > total * (1 + ROUNDING):
            counted = "" if np.ptp(weight) <= ROUNDING else f" by their weights, of {len(weight)}"
            raise ValueError(
                f"coverage={coverage:g} needs {np.ceil(coverage / (1 - coverage) - 1e-9):.0f} rows of calibration, and "
                f"there are {total:.6g}{counted}: ask for {total / (total + 1):.3g} at most, or keep more rows out, by "
                "a larger calibration=... of the estimator, or by calibrate(X, y)."
            )
        order = np.argsort(scores, kind="stable")
        reached = np.cumsum(weight[order])
        place = np.searchsorted(reached, coverage * (total + 1) * (1 - ROUNDING))
        return float(scores[order[min(int(place), len(order) - 1)]])
