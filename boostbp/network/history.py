"""History: what each epoch of back-propagation looked like, and why it stopped."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from enum import Enum
from html import escape
from typing import Any

from boostbp.extras import require

NETWORK = "network"  # name of the candidate that was asked for
REFITTED = "The leaves of its output layers were then fitted again on all rows."  # what `History.refitted` means


class Stop(Enum):
    """Why training stopped, as a sentence with the cure."""

    EPOCHS = "All epochs were run."
    PATIENCE = "The evaluation metric did not improve for n_iter_no_change epochs; the best epoch was restored."
    NOT_FINITE = (
        "A hidden variable or the training loss left every bound; the best epoch before it was restored. "
        "Try a smaller step_size, a larger reg_lambda, clip=True or refit_order='upward'."
    )
    TIME = "max_time was used up; the best epoch was restored."
    QUALITY = (
        "More epochs promised too little for their seconds at this quality, and the best epoch was restored. "
        "A higher quality may train on."
    )
    CALLBACK = "A callback asked to stop; the best epoch was restored."
    NO_NETWORK = "The network was not trained: the model is an average of what else was."
    INTERRUPTED = "Interrupted from the keyboard; the best epoch was restored."

    @classmethod
    def _missing_(cls, value: object) -> Stop | None:
        return cls.__members__.get(str(value))

    # By its name, since the sentences change from version to version. pickle asks for the one, skops for the other.
    def __reduce_ex__(self, protocol: object) -> tuple[type[Stop], tuple[str]]:
        return type(self), (self.name,)

    def __reduce__(self) -> tuple[type[Stop], tuple[str]]:
        return type(self), (self.name,)


@dataclass(frozen=True, slots=True)
class Epoch:
    """One epoch.

    Attributes
    ----------
    epoch : int
        0 is the stack before any back-propagation.
    loss : float
        Weighted mean training loss.
    metrics : dict of str to float
        The metric of each evaluation set, by name.
    seconds : float
        Wall time of the epoch, evaluation included.
    gradient_norms : tuple of float
        Root mean square of dL/dh of each hidden layer.
    dead : tuple of float
        Share of rows whose gradient is exactly zero, for each hidden layer, among those with a loss gradient.
    drift : tuple of float
        How far each hidden layer moved in this epoch, as root mean square over its standard deviation.
    stds : tuple of float
        Mean standard deviation of the units of each hidden layer.
    r2 : tuple of float
        R^2 of the refit of each layer to its target; the output layer's is NaN where it is boosted.
    explained, explained_held : tuple of float
        Share of the target that a linear regression on each hidden layer explains, on training rows and on the
        first evaluation set, or some of each; NaN without one. See `boostbp.network.linear_probe`.
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
class CandidateResult:
    """What became of a candidate for the model: its loss, and its weight.

    Attributes
    ----------
    name : str
        "constant" for what numbers that hardly follow the model leave of it.
    loss : float
        Weighted mean loss on the held-out rows, of classes with labels smoothed as if a quarter of a row more had
        another class.
    weight : float
        Its share in the model; 0: left out.
    network : str or None
        Name of the network whose hidden layers it has, "network" for the one that was asked for; None: it has none.
    """

    name: str
    loss: float
    weight: float
    network: str | None


@dataclass(frozen=True, slots=True)
class Choice:
    """What depth added on held-out rows, and what the model is made of.

    Attributes
    ----------
    candidates : tuple of CandidateResult
    gain : float
        Held-out loss of the best sum of single layers, minus that of the best sum with deep networks in it.
    error : float
        Standard error of the gain, from its standard deviation over rows.
    hurried : bool
        Whether `max_time` cut candidates short, or left them out.
    metrics : dict
        Metric of the model on each evaluation set, by name, before the leaves were fitted again on all rows. The
        first set chose the model, too: on other rows it may do worse.
    members : int
        Number of such sums that the model is the mean of, each with held-out rows of its own; this is the first one.
    seconds : dict
        Seconds of each stage of the fit, by name; they are no part of what makes two choices equal.
    failed : tuple of str
        Candidates that failed for numerical reasons, each with its error: they are left out, or end before that.
    """

    candidates: tuple[CandidateResult, ...]
    gain: float
    error: float
    hurried: bool = False
    metrics: dict[str, float] = field(default_factory=dict)
    members: int = 1
    seconds: dict[str, float] = field(default_factory=dict, compare=False)
    failed: tuple[str, ...] = ()

    @property
    def has_requested(self) -> bool:
        """Whether the network that was asked for is among them: without it, epoch 0 tells of the whole model."""
        return any(candidate.network == NETWORK for candidate in self.candidates)

    @property
    def has_networks(self) -> bool:
        """Whether networks were among the candidates; not with ``deep=False``."""
        return any(candidate.network for candidate in self.candidates)

    def __str__(self) -> str:
        """Sentences: what each candidate lost, what depth added, what the model is made of."""
        made_of = " + ".join(
            f"{candidate.weight:.2f} {candidate.name}" for candidate in self.candidates if candidate.weight
        )
        members = [
            f"The model is the mean of {self.members} such members, each with held-out rows of its own; those that are "
            "worse than the best by more than chance count less."
        ]
        stages = ", ".join(f"{name} {seconds:.1f}" for name, seconds in self.seconds.items())
        hurried = ["max_time cut candidates short, or left them out: more of it may give a better model."]
        return "\n".join(
            [
                "Loss on held-out rows:",
                *(f"  {candidate.loss:.6g}  {candidate.name}" for candidate in self.candidates),
                *([self._verdict_on_depth] if self.has_networks else []),
                f"{'The model' if self.members == 1 else 'This member'} is {made_of}.",
                *(members if self.members > 1 else []),
                *([f"Failed, and left out from there on: {'; '.join(self.failed)}."] if self.failed else []),
                *([f"It took {math.fsum(self.seconds.values()):.1f} s: {stages}."] if stages else []),
                *(hurried if self.hurried else []),
            ]
        )

    @property
    def _verdict_on_depth(self) -> str:
        deep = any(candidate.weight and candidate.network for candidate in self.candidates)
        verdict = "hidden layers are part of the model" if deep else "no hidden layer is part of it"
        return (
            f"Depth lowered it by {self.gain:.3g}, standard error {self.error:.3g}: {verdict}. "
            "These rows chose the model, too: on others it may gain less."
        )


def weight_in_words(weight: float) -> str:
    """The weight of a network in the model, after "with"; empty for all of it, which goes without saying."""
    if weight >= 1.0 - 1e-9:
        return ""
    if weight == 0.0:
        return "no weight in the model"
    return f"{f'{weight:.0%}' if weight >= 0.005 else 'less than 1%'} of the weight in the model"


@dataclass
class History:
    """All epochs, the best one, and why training stopped.

    Attributes
    ----------
    epochs : list of Epoch
    best_epoch : int
        Number of the epoch that the model was taken from.
    stop : Stop
    metric : str
        Name of the metric that chose the best epoch; "" if none did.
    choice : Choice or None
        How the network was weighed against single layers; None if it was not.
    refitted : bool
        Whether leaves were fitted again on all rows at the end, the held-out ones included.
    interrupt : KeyboardInterrupt or None
        What interrupted a training that is not over yet: the estimator raises it when all that is kept is in its place.
    """

    epochs: list[Epoch] = field(default_factory=list)
    best_epoch: int = 0
    stop: Stop = Stop.EPOCHS
    metric: str = ""
    choice: Choice | None = None
    refitted: bool = False
    interrupt: KeyboardInterrupt | None = field(default=None, compare=False, repr=False)

    def interrupted(self, interrupt: KeyboardInterrupt) -> None:
        """Note that training ended before its time."""
        self.stop, self.interrupt = Stop.INTERRUPTED, interrupt

    def __repr__(self) -> str:
        stop = f"stop={self.stop.name}, metric={self.metric!r}, scores={self.scores if self.epochs else {}}"
        return f"History({len(self.epochs)} epochs, best_epoch={self.best_epoch}, {stop})"

    def _repr_html_(self) -> str:
        """What notebooks show: the summary, and a table of the epochs with the best one in bold."""
        sets = list(self.epochs[0].metrics) if self.epochs else []
        heads = ["epoch", "training loss", *(f"{self.metric} on {name}" for name in sets), "seconds"]
        rows = [f"<tr>{''.join(f'<th>{escape(head)}</th>' for head in heads)}</tr>"]
        for epoch in self.epochs:
            cells = [f"{value:.6g}" for value in (epoch.loss, *(epoch.metrics[name] for name in sets))]
            style = " style='font-weight: bold'" if epoch.epoch == self.best_epoch else ""
            cells = [str(epoch.epoch), *cells, f"{epoch.seconds:.2f}"]
            rows.append(f"<tr{style}>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
        summary = escape(self.summary() if self.epochs else repr(self))
        table = f"<div style='max-height: 20em; overflow: auto'><table>{''.join(rows)}</table></div>"
        return f"<pre>{summary}</pre>{table}"

    def to_frame(self) -> Any:
        """Return a pandas data frame with a row for each epoch, by its number; extra ``frames``.

        Returns
        -------
        pandas.DataFrame, (epochs, columns)
            The fields of `Epoch`: a metric as ``valid_0_rmse``, what there is of each hidden layer as ``drift_0``, ...
        """
        pandas = require("pandas", extra="frames", what="history_.to_frame()")
        return pandas.DataFrame([self.row(epoch) for epoch in self.epochs]).set_index("epoch")

    def row(self, epoch: Epoch) -> dict[str, Any]:
        """Return an epoch as numbers by name: the columns of `to_frame`, and its number as ``epoch``."""
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
        """Metric of one evaluation set, by epoch."""
        return [epoch.metrics[name] for epoch in self.epochs]

    @property
    def scores(self) -> dict[str, float]:
        """Metric of the model on each evaluation set: of the best epoch, or of the average (`Choice.metrics`)."""
        return self.epochs[self.best_epoch].metrics if self.choice is None else self.choice.metrics

    def weight(self, network: str | None = None) -> float:
        """Weight in the model of what stands on hidden layers: on those of one network, or of all.

        It is 1 where networks were not weighed against single layers, and the model is the network.
        """
        if self.choice is None:
            return 1.0
        counted = (
            candidate
            for candidate in self.choice.candidates
            if candidate.network and network in (None, candidate.network)
        )
        return math.fsum(candidate.weight for candidate in counted)

    def summary(self) -> str:
        """What training did, in a few sentences; what depth added, if that was weighed, and how the model scores."""
        seconds = sum(epoch.seconds for epoch in self.epochs)
        lines = [f"{len(self.epochs) - 1} epochs in {seconds:.1f} s. {self.stop.value}", self._best_epoch_in_words()]
        if self.choice is not None:
            lines.append(str(self.choice))
            if self.scores:
                lines.append(f"It has {self.format_metrics(self.scores)}.")
        if self.refitted:
            lines.append(REFITTED)
        return "\n".join(lines)

    def _best_epoch_in_words(self) -> str:
        best = self.epochs[self.best_epoch]
        if self.choice is not None and not self.choice.has_requested:
            return f"Training loss {best.loss:.6g}."
        scores = self.format_metrics(best.metrics)
        words = weight_in_words(self.weight(NETWORK))
        of = f" of the network, which has {words}" if words else ""
        return (
            f"Best epoch {self.best_epoch}{of}: training loss {best.loss:.6g}{', ' if scores else ''}{scores}; "
            f"training loss of epoch 0, before any back-propagation: {self.epochs[0].loss:.6g}."
        )

    def format_metrics(self, metrics: dict[str, float]) -> str:
        """Metrics of an epoch, or the scores, in words."""
        return ", ".join(f"{self.metric} {value:.6g} on {name}" for name, value in metrics.items())
