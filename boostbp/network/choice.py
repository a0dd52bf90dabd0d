"""Choice: what a model is made of, and what each candidate for it lost on held-out rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

NETWORK = "network"  # name of the candidate that was asked for
CONSTANT = "constant"  # name of the part that takes the rest of the weight where a model is shrunk
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


@dataclass(frozen=True, slots=True)
class CandidateResult:
    """Result of a candidate for the model: its loss and its weight.

    Attributes
    ----------
    name : str
        `CONSTANT` for the constant towards which a model is shrunk.
    loss : float
        Weighted mean loss on the held-out rows. Labels of classes are smoothed, as if a quarter of a row more had
        another class.
    weight : float
        Its share in the model; 0: left out.
    network : str or None
        Name of the back-propagated network whose hidden layers it uses: "network" for the one with the user's
        `hidden_layer_sizes`; None for no network.
    directions : bool
        Whether it stands on directions of the features: a hidden layer that no back-propagation trains.
    """

    name: str
    loss: float
    weight: float
    network: str | None
    directions: bool = False

    @property
    def is_deep(self) -> bool:
        """Whether it stands on hidden layers."""
        return self.directions or self.network is not None


@dataclass(frozen=True, slots=True)
class Choice:
    """The parts of the model, and the gain by hidden layers on held-out rows.

    Attributes
    ----------
    candidates : tuple of CandidateResult
    gain : float
        Held-out loss of the best sum of single layers, minus that of the best sum with hidden layers in it.
    error : float
        Standard error of the gain, from its standard deviation over rows.
    cut_by_time : bool
        Whether `max_time` cut candidates short, or left them out.
    metrics : dict
        Metric of the model on each evaluation set, by name, before the leaves were fitted again on all rows. The
        first set chose the model, too: on other rows it may do worse.
    members : int
        Number of such sums that the model is the mean of, each with held-out rows of its own; this is the first one.
    seconds : dict
        Seconds of each stage of the fit, by name; they are no part of what makes two choices equal.
    failed : tuple of str
        Candidates that failed for numerical reasons, each with its error. They are left out, or end before the failure.
    """

    candidates: tuple[CandidateResult, ...]
    gain: float
    error: float
    cut_by_time: bool = False
    metrics: dict[str, float] = field(default_factory=dict)
    members: int = 1
    seconds: dict[str, float] = field(default_factory=dict, compare=False)
    failed: tuple[str, ...] = ()

    @property
    def has_hidden(self) -> bool:
        """Whether candidates with hidden layers were tried; not with ``deep=False``."""
        return any(candidate.is_deep for candidate in self.candidates)

    @property
    def parts(self) -> tuple[CandidateResult, ...]:
        """The candidates that are part of the model, most weight first."""
        return tuple(sorted((part for part in self.candidates if part.weight), key=lambda part: -part.weight))

    @property
    def made_of(self) -> str:
        """The number of layers or networks in the model, as the end of a sentence about it."""
        number, kind = sum(part.name != CONSTANT for part in self.parts), "models" if self.network else "layers"
        if number > 1:
            return f"averages {_NUMBERS[number] if number < len(_NUMBERS) else number} {kind}"
        return "is one layer" if number else "is a constant"

    @property
    def lead(self) -> str | None:
        """Name of the leading piece: of the layer, or of the network with all that stands on it, that weighs most.

        None if the constant does.
        """
        weights: dict[str, float] = {}
        for part in self.candidates:
            name = part.network or part.name
            weights[name] = weights.get(name, 0.0) + part.weight
        return max(weights, key=lambda name: weights[name]) if weights else None

    @property
    def network(self) -> str | None:
        """Name of the network trained by back-propagation that weighs most; None if none has weight."""
        weights = {part.network: self.weight(part.network) for part in self.candidates if part.network and part.weight}
        return max(weights, key=lambda name: weights[name]) if weights else None

    def weight(self, network: str | None = None) -> float:
        """Total weight of the parts with hidden layers: those of one network, or all."""
        return math.fsum(part.weight for part in self.candidates if part.is_deep and network in (None, part.network))

    @property
    def parts_in_words(self) -> str:
        """What the model is made of, in a sentence, most weight first."""
        made_of = " + ".join(f"{part.weight:.2f} {part.name}" for part in self.parts)
        return f"{'The model' if self.members == 1 else 'This member'} is {made_of}."

    def __str__(self) -> str:
        """Sentences: what each candidate lost, what hidden layers added, what the model is made of."""
        members = [
            f"The model is the mean of {self.members} such members, each with held-out rows of its own; members that "
            "are clearly worse than the best count less."
        ]
        stages = ", ".join(f"{name} {seconds:.1f}" for name, seconds in self.seconds.items())
        cut_by_time = ["max_time cut candidates short, or left them out: more time may give a better model."]
        return "\n".join(
            [
                "Loss on held-out rows:",
                *(f"  {candidate.loss:.6g}  {candidate.name}" for candidate in self.candidates),
                *([self.depth_in_words] if self.has_hidden else []),
                self.parts_in_words,
                *(members if self.members > 1 else []),
                *([f"Failed, and left out after that: {'; '.join(self.failed)}."] if self.failed else []),
                *([f"Training took {math.fsum(self.seconds.values()):.1f} s: {stages}."] if stages else []),
                *(cut_by_time if self.cut_by_time else []),
            ]
        )

    @property
    def depth_in_words(self) -> str:
        """What hidden layers did to the held-out loss, in a sentence; empty if none were tried."""
        if not self.has_hidden:
            return ""
        if not self.weight():
            return "Hidden layers were tried, and none is part of the model."
        if abs(self.gain) < 2.0 * self.error:
            effect = "no measurable effect"
        else:
            effect = "they helped" if self.gain > 0.0 else "they did harm"
        return (
            f"Hidden layers changed the held-out loss by {0.0 - self.gain:+.3g} ± {self.error:.2g}: {effect} "
            "(optimistic: these rows chose the model)."
        )


def weight_in_words(weight: float) -> str:
    """The weight of a part of the model, after "with"; empty for all of it."""
    if weight >= 1.0 - 1e-9:
        return ""
    if weight == 0.0:
        return "no weight in the model"
    return f"{f'{weight:.0%}' if weight >= 0.005 else 'less than 1%'} of the weight in the model"
