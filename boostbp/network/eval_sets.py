"""Evaluation: the rows that judge a model, and the metric that they judge it by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from boostbp.inputs.rows import Rows
from boostbp.metrics import Metric
from boostbp.network.network import Network
from boostbp.runtime.arrays import Floats


@dataclass(frozen=True, slots=True)
class EvalSet:
    """Rows that training watches but does not learn from.

    Attributes
    ----------
    name : str
    rows : Rows
    from_training : bool
        Whether they are training rows that the fit held out; the chosen model may be refitted on them.
    """

    name: str
    rows: Rows
    from_training: bool = False


def raw_output(raw: Floats) -> Floats:
    """Return the raw output itself."""
    return raw


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Evaluation sets and the metric that models are compared by.

    Attributes
    ----------
    sets : tuple of EvalSet
        The first one chooses the epoch and weighs candidates.
    metric : Metric or None
    outcome : callable
        Raw output, its offset included, to what `metric` compares with targets.
    """

    sets: tuple[EvalSet, ...] = ()
    metric: Metric | None = None
    outcome: Callable[[Floats], Floats] = raw_output

    def score(self, raw: Floats, rows: Rows) -> float:
        """Return the metric of a raw output without its offset, (rows, outputs)."""
        assert self.metric is not None
        return self.metric(self.outcome(raw + rows.offset), rows.y, rows.weight)

    def scores(self, network: Network, n_threads: int) -> dict[str, float]:
        """Return the metric of a network on each evaluation set, by name; empty without a metric."""
        if self.metric is None:
            return {}
        return {part.name: self.score(network.predict(part.rows.X, n_jobs=n_threads), part.rows) for part in self.sets}


NO_EVALUATION = Evaluation()
