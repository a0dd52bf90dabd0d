"""The verdict of a comparison: which model, by how much, at what cost, in plain sentences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from boostbp.comparison.measures import Measure
from boostbp.comparison.statistics import PairedDifference, jointly, paired
from boostbp.runtime.arrays import Floats

_SAME = 0.9, 1.1  # a ratio of seconds that counts as the same. Arbitrary


@dataclass(frozen=True, slots=True)
class Scored:
    """The scores of a model over folds, (folds,), and the mean seconds of its fit."""

    scores: Floats
    seconds: float


@dataclass(frozen=True, slots=True)
class Judgement:
    """The models of a comparison against a reference."""

    measure: Measure
    reference: str
    models: Mapping[str, Scored]  # the reference among them
    ratio: float  # of test rows to training rows of a fold
    differences: Mapping[str, PairedDifference]  # of each other model, corrected for their number

    @classmethod
    def of(cls, measure: Measure, reference: str, models: Mapping[str, Scored], ratio: float) -> Judgement:
        """Judge models; without two folds of the reference and of another model there are no differences."""
        bare = cls(measure, reference, models, ratio, {})
        if reference not in models or len(models[reference].scores) < 2:
            return bare
        plain = {name: bare.between(reference, name) for name in models if name != reference}
        return replace(bare, differences=jointly(plain))

    def between(self, reference: str, name: str) -> PairedDifference:
        """Return the difference of a model from any other one, by itself."""
        return paired(self.gains(reference, name), self.ratio)

    def gains(self, reference: str, name: str) -> Floats:
        """Return what a model gains over another one on each fold, (folds,).

        Of errors it is minus the logarithm of their ratio, so that folds with larger errors count no more than others.
        """
        before, after = self.models[reference].scores, self.models[name].scores
        if self.is_ratio:
            return np.log(before) - np.log(after)
        return (after - before) * (1 if self.measure.greater_is_better else -1)

    @property
    def is_ratio(self) -> bool:
        """Whether models are compared by the ratios of their scores: errors, if all are positive."""
        scores = [scored.scores for scored in self.models.values()]
        return not self.measure.greater_is_better and all([bool((values > 0).all()) for values in scores])

    def shown(self, gain: Any) -> Any:
        """Return gains as people read them: per cent less of an error, at least -999, or the difference of a score."""
        return np.maximum(-100 * np.expm1(-np.asarray(gain)), -999.0) if self.is_ratio else np.asarray(gain)

    @property
    def unit(self) -> str:
        """The unit of gains: "RMSE, %"."""
        return f"{self.measure.heading}{', %' if self.is_ratio else ''}"

    @property
    def best(self) -> str | None:
        """The best of the models that are better than the reference beyond chance; None without one."""
        better = [name for name, difference in self.differences.items() if difference.is_better]
        return max(better, key=lambda name: self.differences[name].mean, default=None)

    @property
    def cheaper(self) -> str | None:
        """The cheapest model, better than the reference, that costs less than the best and is not worse than it."""
        if (best := self.best) is None:
            return None
        limit = _SAME[0] * self.models[best].seconds
        better = [name for name, d in self.differences.items() if d.is_better and self.models[name].seconds < limit]
        level = [name for name in better if not self.between(best, name).is_worse]
        return min(level, key=lambda name: self.models[name].seconds, default=None)

    @property
    def sentences(self) -> list[str]:
        """The verdict, and what comes with it."""
        if not self.differences:
            return [f"No verdict: it needs two folds of {self.reference} and of another model."]
        if (best := self.best) is None:
            nearest = max(self.differences, key=lambda name: self.differences[name].mean)
            chance = f"the chance that it is better is {percent(self.differences[nearest].chance)}"
            near = f"Nearest to it: {nearest} has {self.gain_in_words(nearest)}; {chance}."
            return [f"Keep {self.reference}: no model is better beyond chance.", near]
        told = [f"{best} has {self.gain_in_words(best)}, {self._cost(best, self.reference)}."]
        if (cheaper := self.cheaper) is not None:
            told.append(f"{cheaper} is not worse than it beyond chance, {self._cost(cheaper, best)}.")
        return told

    def gain_in_words(self, name: str) -> str:
        """Return the difference of a model from the reference: "9 % less RMSE than LightGBM (6 to 12)"."""
        difference, heading = self.differences[name], self.measure.heading
        ends = difference.mean, difference.low, difference.high
        if self.is_ratio:
            mean, low, high = self.shown(ends)
            sign, word, show = (1, "less", digits) if mean >= 0 else (-1, "more", digits)
            start = f"{digits(sign * mean)} % {word} {heading} than {self.reference}"
        else:
            way = 1 if self.measure.greater_is_better else -1
            mean, low, high = (way * value for value in ends)
            sign, word, show = (1, "above", _four) if mean >= 0 else (-1, "below", _four)
            value = np.mean(self.models[name].scores)
            start = f"{heading} {value:.4f}, {_four(sign * mean)} {word} {self.reference}"
        first, last = sorted((sign * low, sign * high))
        return f"{start} ({show(first)} to {show(last)})"

    def _cost(self, name: str, other: str) -> str:
        times = self.models[name].seconds / self.models[other].seconds
        if _SAME[0] <= times <= _SAME[1]:
            return "in the same seconds"
        return f"for {digits(times)} times the seconds" if times > 1 else f"in {percent(times)} of the seconds"


def _four(value: float) -> str:
    return f"{value:.4f}"


def digits(value: float) -> str:
    """Return a number with one digit after the point if it is below 10: 0.3, 3.1, 12, 340."""
    return f"{value:.0f}" if abs(value) >= 9.95 else f"{round(value, 1) + 0.0:.1f}".removesuffix(".0")


def percent(share: float) -> str:
    """Return a chance or share, rounded, but never to one that is certain."""
    return "more than 99 %" if 0.995 <= share < 1 else "less than 1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"
