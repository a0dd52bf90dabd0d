"""Evaluation sets, and the metric that scores a model on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from boostbp.inputs.rows import Rows
from boostbp.metrics import Metric
from boostbp.network.network import Network
from boostbp.runtime.arrays import Floats


@dataclass(frozen=True, slots=True)
class EvalSet:
    """Rows that score a model during training, and that it does not learn from."""

    name: str
    rows: Rows
    # whether the fit held them out of the training rows; the chosen model may then be refitted on them
    from_training: bool = False


def raw_output(raw: Floats) -> Floats:
    """Return the raw output itself."""
    return raw


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Evaluation sets and the metric that models are compared by."""

    sets: tuple[EvalSet, ...] = ()  # the first one chooses the epoch and the weights of candidates
    metric: Metric | None = None
    # converts a raw output, offset included, to the values that `metric` compares with targets
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
