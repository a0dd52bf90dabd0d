"""History: the figures of each epoch of back-propagation, the reason for its end, and the parts of the model."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from enum import Enum
from html import escape
from typing import Any

from boostbp.network.choice import NETWORK, ModelChoice, weight_in_words
from boostbp.runtime.arrays import Floats
from boostbp.runtime.messages import counted, require

# The sentence of summaries for `History.refitted`.
REFITTED = "At the end, the leaves of the output layers were fitted again on all rows, the held-out ones included."


class Stop(Enum):
    """The reason for the end of training, as a sentence with the cure."""

    EPOCHS = "All epochs were run."
    PATIENCE = "The evaluation metric did not improve for n_iter_no_change epochs; the best epoch was restored."
    NOT_FINITE = (
        "A hidden variable or the training loss diverged; the best epoch before it was restored. "
        "Try a smaller step_size, a larger reg_lambda, clip=True or refit_order='upward'."
    )
    TIME = "max_time was used up; the best epoch was restored."
    QUALITY = "More epochs were not worth their time; the best epoch was restored. A higher quality may train longer."
    CALLBACK = "A callback asked to stop; the best epoch was restored."
    NO_NETWORK = "No network is part of the model."
    INTERRUPTED = "Interrupted from the keyboard; the best state so far was kept."

    @classmethod
    def _missing_(cls, value: object) -> Stop | None:
        return cls.__members__.get(str(value))

    # Stored by name, since the sentences change between versions. pickle calls the first method, skops the second.
    def __reduce_ex__(self, protocol: object = None) -> tuple[type[Stop], tuple[str]]:
        return type(self), (self.name,)

    __reduce__ = __reduce_ex__


@dataclass(frozen=True, slots=True)
class Epoch:
    """The figures of one epoch.

    Attributes
    ----------
    epoch : int
        Number of the epoch. Epoch 0 is the network before any back-propagation.
    loss : float
        Weighted mean training loss.
    metrics : dict of str to float
        Metric on each evaluation set, by name.
    seconds : float
        Wall time of the epoch, evaluation included.
    gradient_norms : tuple of float
        Root mean square of dL/dh of each hidden layer.
    dead : tuple of float
        For each hidden layer, the share of rows whose gradient is exactly zero, among the rows with a loss gradient.
    drift : tuple of float
        Root mean square change of each hidden layer in this epoch, in its standard deviations.
    stds : tuple of float
        Mean standard deviation of the units of each hidden layer.
    r2 : tuple of float
        R^2 of the refit of each layer to its target; NaN for an output layer that is boosted.
    explained, explained_held : tuple of float
        Share of the target that a linear regression on each hidden layer explains, on training rows and on the first
        evaluation set (NaN without one), or on samples of them. See `boostbp.network.trainer.linear_probe_r2`.
    """

    epoch: int
    loss: float
    metrics: dict[str, float]
    seconds: float
    gradient_norms: tuple[float, ...]
    dead: tuple[float, ...]
    drift: tuple[float, ...]
    stds: tuple[float, ...]
    r2: tuple[float, ...]
    explained: tuple[float, ...] = ()
    explained_held: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Look:
    """Scores of a boosted layer after some of its rounds.

    Attributes
    ----------
    rounds : int
        Number of rounds; 0 before the first one.
    metrics : dict of str to float
        Metric on each evaluation set, by name.
    """

    rounds: int
    metrics: dict[str, float]


@dataclass(frozen=True, slots=True)
class Refit:
    """A refit of the fitted model.

    Attributes
    ----------
    rows : int
        Number of its rows with weight.
    decay_rate : float
    before, after : float
        Weighted mean loss of these rows before and after it.
    """

    rows: int
    decay_rate: float
    before: float
    after: float

    def __str__(self) -> str:
        """Return a sentence on the refit."""
        fitted = f"Then the leaves of the output layer were fitted again to {counted(self.rows, 'row')}"
        loss = f"their loss went from {self.before:.6g} to {self.after:.6g}"
        return f"{fitted} with decay_rate={self.decay_rate:g}: {loss}. All other figures precede this."


@dataclass
class History:
    """The training of the model, and its parts, which all reports on the model read.

    The network of the model is the back-propagated one with the largest weight. The leading piece is the network or
    single layer with the largest weight.

    Attributes
    ----------
    epochs : list of Epoch
        The epochs of the network. Without a network, epoch 0 describes the whole model.
    best_epoch : int
        Number of the epoch that the network was taken from.
    stop : Stop
    metric : str
        Name of the metric that chose the best epoch; "" if none did.
    choice : ModelChoice or None
        The candidates and their weights; None if there was only one candidate.
    refitted : bool
        Whether leaves were fitted again on all rows at the end, the held-out ones included.
    looks : list of Look
        The scores of the leading piece during its growth, if it is a layer, before its leaves were fitted again.
    refits : list of Refit
        The calls of ``refit`` since the fit. Epochs, looks and scores precede them.
    plan : str
        What was to be trained, how far, and from which candidates; "" in older files.
    held_out : (rows, outputs) or None
        Raw output on the first evaluation set before leaves were fitted again, until the estimator has its model.
    """

    epochs: list[Epoch] = field(default_factory=list)
    best_epoch: int = 0
    stop: Stop = Stop.EPOCHS
    metric: str = ""
    choice: ModelChoice | None = None
    refitted: bool = False
    looks: list[Look] = field(default_factory=list)
    refits: list[Refit] = field(default_factory=list)
    plan: str = ""
    held_out: Floats | None = field(default=None, init=False, compare=False, repr=False)

    @property
    def network(self) -> str | None:
        """Name of the network whose `epochs` these are; None if no network is part of the model."""
        if not self.epochs or not self.epochs[0].stds:
            return None
        return NETWORK if self.choice is None else self.choice.network or NETWORK

    @property
    def by_rounds(self) -> bool:
        """Whether the leading piece is a layer. Its iterations are rounds; those of a network are epochs."""
        return self.network is None or (self.choice is not None and self.choice.lead != self.network)

    @property
    def best_iteration(self) -> int:
        """Iterations of the leading piece: the rounds of a layer, or the epoch that a network was taken from."""
        if self.by_rounds:
            return self.looks[-1].rounds if self.looks else 0
        return self.best_epoch

    @property
    def iterations(self) -> list[int]:
        """Iterations of the leading piece that were scored, from 0; `curves` has their scores."""
        return [look.rounds for look in self.looks] if self.by_rounds else [epoch.epoch for epoch in self.epochs]

    @property
    def curves(self) -> dict[str, list[float]]:
        """Metric of the leading piece on each evaluation set, by name, after each of `iterations`."""
        scored: list[Look] | list[Epoch] = self.looks if self.by_rounds else self.epochs
        return {name: [look.metrics[name] for look in scored] for name in (scored[0].metrics if scored else {})}

    def weight(self, network: str | None = None) -> float:
        """Return the weight in the model of the parts with hidden layers: those of one network, or all.

        If there was only one candidate, it is 1 for a model with hidden layers, and 0 for one without.
        """
        return float(self.network is not None) if self.choice is None else self.choice.weight(network)

    @property
    def network_in_words(self) -> str:
        """The weight of the network in the model, as words that follow "with"; empty for all or no network."""
        return "" if self.network is None else weight_in_words(self.weight(self.network))

    @property
    def lead_in_words(self) -> str:
        """The name and weight of the leading piece, for titles; "" if there was only one candidate."""
        if self.choice is None or self.choice.lead is None:
            return ""
        lead = self.choice.lead
        weight = math.fsum(part.weight for part in self.choice.candidates if lead in (part.network, part.name))
        words = weight_in_words(weight).removesuffix(" in the model")
        return f"{lead} ({words})" if words else lead

    def __repr__(self) -> str:
        stop = f"stop={self.stop.name}, metric={self.metric!r}, scores={self.scores if self.epochs else {}}"
        return f"History(epochs={max(len(self.epochs) - 1, 0)}, best_epoch={self.best_epoch}, {stop})"

    def _repr_html_(self) -> str:
        """Return the view in notebooks: the summary, and a table of the iterations with the best one in bold."""
        unit, values = ("rounds", []) if self.by_rounds else ("epoch", [("training loss", self.loss)])
        values += [(f"{self.metric} on {name}", curve) for name, curve in self.curves.items()]
        heads = [unit, *(head for head, _ in values)]
        rows = [f"<tr>{''.join(f'<th>{escape(head)}</th>' for head in heads)}</tr>"]
        for place, number in enumerate(self.iterations):
            cells = [str(number), *(f"{column[place]:.6g}" for _, column in values)]
            style = " style='font-weight: bold'" if number == self.best_iteration else ""
            rows.append(f"<tr{style}>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
        summary = escape(self.summary() if self.epochs else repr(self))
        table = f"<div style='max-height: 20em; overflow: auto'><table>{''.join(rows)}</table></div>"
        return f"<pre>{summary}</pre>{table if len(rows) > 1 else ''}"

    def to_frame(self) -> Any:
        """Return a pandas data frame with a row for each epoch, indexed by its number; needs the extra ``frames``.

        Its columns are the fields of `Epoch`, with names like ``valid_0_rmse``, or ``drift_0`` for the first hidden
        layer.
        """
        pandas = require("pandas", extra="frames", what="history_.to_frame()")
        return pandas.DataFrame([self.row(epoch) for epoch in self.epochs]).set_index("epoch")

    def row(self, epoch: Epoch) -> dict[str, Any]:
        """Return the figures of an epoch by name: the columns of `to_frame`, and its number as ``epoch``."""
        row: dict[str, Any] = {}
        for part in fields(epoch):
            value = getattr(epoch, part.name)
            if isinstance(value, dict):
                row |= {f"{name}_{self.metric}": score for name, score in value.items()}
            elif isinstance(value, tuple):
                row |= {f"{part.name}_{layer}": of_layer for layer, of_layer in enumerate(value)}
            else:
                row[part.name] = value
        return row

    def __len__(self) -> int:
        return len(self.epochs)

    def __getitem__(self, number: int) -> Epoch:
        return self.epochs[number]

    @property
    def loss(self) -> list[float]:
        """Training loss of each epoch."""
        return [epoch.loss for epoch in self.epochs]

    def metrics(self, name: str) -> list[float]:
        """Return the metric of one evaluation set by epoch; raise KeyError if there is none of this name."""
        if self.epochs and name not in self.epochs[0].metrics:
            sets = ", ".join(map(repr, self.epochs[0].metrics)) or "none: fit was given no evaluation set"
            raise KeyError(f"name={name!r} is not an evaluation set of this fit. Its sets are {sets}.")
        return [epoch.metrics[name] for epoch in self.epochs]

    @property
    def scores(self) -> dict[str, float]:
        """Metric of the model on each evaluation set: of the best epoch, or of the average (`ModelChoice.metrics`)."""
        return self.epochs[self.best_epoch].metrics if self.choice is None else self.choice.metrics

    def summary(self) -> str:
        """Return sentences on the model, its scores, the gain of hidden layers, its parts, and the training."""
        lines = [self._training_in_words()]
        if self.choice is not None:
            scores = f" It has {self.format_metrics(self.scores)}." if self.scores else ""
            lines = [f"The model {self.choice.made_of}.{scores}", str(self.choice), *lines]
        if self.refitted:
            lines.append(REFITTED)
        if self.choice is not None:
            lines.append(self.choice.seconds_in_words)
        lines += [self.plan, *map(str, self.refits)]
        return "\n".join(filter(None, lines))

    def _training_in_words(self) -> str:
        kept, network = self.epochs[self.best_epoch], self.network
        scores = ", ".join([*filter(None, [self.format_metrics(kept.metrics)]), f"training loss {kept.loss:.6g}"])
        if network is None:
            interrupted = f" {self.stop.value}" if self.stop is Stop.INTERRUPTED else ""
            if self.choice is None:
                rounds = f" of {counted(self.best_iteration, 'round')}" if self.looks else ""
                return f"The model is a single layer{rounds}: {scores}.{interrupted}"
            tried = any(part.network for part in self.choice.candidates)
            networks = "Networks were trained, but none is part of the model." if tried else "No network was trained."
            return f"{networks} The training loss of the model is {kept.loss:.6g}.{interrupted}"
        seconds = sum(epoch.seconds for epoch in self.epochs)
        words = self.network_in_words
        of = f" of the {network}, which has {words}," if words else ""
        start = f"{self.epochs[0].loss:.6g} before back-propagation" if kept.epoch else "before any back-propagation"
        return (
            f"Back-propagation: {counted(len(self.epochs) - 1, 'epoch')} in {seconds:.1f} s. {self.stop.value}\n"
            f"Epoch {kept.epoch}{of} was kept: {scores} ({start})."
        )

    def format_metrics(self, metrics: dict[str, float]) -> str:
        """Return metrics by name of the evaluation set as words."""
        return ", ".join(f"{self.metric} {value:.6g} on {name}" for name, value in metrics.items())
