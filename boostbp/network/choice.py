"""ModelChoice: the parts of a model, and the held-out loss of each candidate for it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

# Names of candidates.
NETWORK = "network"  # the user's network
CONSTANT = "constant"  # the constant that a model is shrunk towards
CONSTANT_LEAVES = "single layer, constant leaves"  # the one that is closest to the defaults of libraries


@dataclass(frozen=True, slots=True)
class CandidateResult:
    """Loss and weight of a candidate for the model.

    Attributes
    ----------
    name : str
        `CONSTANT` for the constant that a model is shrunk towards.
    loss : float
        Weighted mean loss on the held-out rows. Class labels are smoothed as if there were a quarter of a row more of
        another class.
    weight : float
        Share in the model; 0 if the candidate is left out.
    network : str or None
        Name of the back-propagated network whose hidden layers the candidate uses: "network" for the one with the
        user's `hidden_layer_sizes`; None for no network.
    directions : bool
        Whether the candidate has a hidden layer without back-propagation: directions of the features, or means of the
        levels of categories.
    """

    name: str
    loss: float
    weight: float
    network: str | None
    directions: bool = False

    @property
    def is_deep(self) -> bool:
        """Whether the candidate has hidden layers."""
        return self.directions or self.network is not None


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The parts of the model, and the gain of hidden layers on held-out rows.

    Attributes
    ----------
    candidates : tuple of CandidateResult
    gain : float
        Held-out loss of the best sum of single layers, minus that of the best sum that includes hidden layers.
    error : float
        Standard error of the gain over the rows.
    cut_by_time : bool
        Whether `max_time` shortened or excluded candidates.
    metrics : dict
        Metric of the model on each evaluation set, by name, before the leaves were fitted again on all rows. The first
        set also chose the model, which may do worse on other rows.
    members : int
        Number of sums whose mean is the model, each with its own held-out rows. This choice describes the first one.
    seconds : dict
        Seconds of each stage of the fit, by name. Comparisons of two choices ignore them.
    failed : tuple of str
        Candidates that failed for numerical reasons, each with its error. They are left out, or end before the error.
    left_out : tuple of int
        Features that no candidate reads, because they gain nothing on the held-out rows.
    """

    candidates: tuple[CandidateResult, ...]
    gain: float
    error: float
    cut_by_time: bool = False
    metrics: dict[str, float] = field(default_factory=dict)
    members: int = 1
    seconds: dict[str, float] = field(default_factory=dict, compare=False)
    failed: tuple[str, ...] = ()
    left_out: tuple[int, ...] = ()

    @property
    def has_hidden(self) -> bool:
        """Whether candidates with hidden layers were tried; never with ``deep=False``."""
        return any(candidate.is_deep for candidate in self.candidates)

    @property
    def parts(self) -> tuple[CandidateResult, ...]:
        """The candidates with weight, the largest weight first."""
        return tuple(sorted((part for part in self.candidates if part.weight), key=lambda part: -part.weight))

    @property
    def made_of(self) -> str:
        """The number of layers or networks in the model, as the end of a sentence such as "the model ..."."""
        number, kind = sum(part.name != CONSTANT for part in self.parts), "models" if self.network else "layers"
        if number > 1:
            return f"averages {number} {kind}"
        return "is one layer" if number else "is a constant"

    @property
    def lead(self) -> str | None:
        """Name of the leading piece, which has the largest weight: a layer, or a network with all layers on it."""
        weights: dict[str, float] = {}
        for part in self.candidates:
            name = part.network or part.name
            weights[name] = weights.get(name, 0.0) + part.weight
        return max(weights, key=lambda name: weights[name]) if weights else None

    @property
    def network(self) -> str | None:
        """Name of the back-propagated network with the largest weight; None if none has weight."""
        weights = {part.network: self.weight(part.network) for part in self.candidates if part.network and part.weight}
        return max(weights, key=lambda name: weights[name]) if weights else None

    def weight(self, network: str | None = None) -> float:
        """Return the total weight of the parts with hidden layers: those of one network, or all."""
        return math.fsum(part.weight for part in self.candidates if part.is_deep and network in (None, part.network))

    @property
    def parts_in_words(self) -> str:
        """A sentence that lists the parts of the model, the largest weight first."""
        made_of = " + ".join(f"{share_in_words(part.weight)} {part.name}" for part in self.parts)
        return f"{'The model' if self.members == 1 else 'This member'} is {made_of}."

    @property
    def depth_pays(self) -> bool:
        """Whether the hidden layers of the model have a measurable gain: at least twice its standard error."""
        return bool(self.weight()) and 0.0 < self.gain >= 2.0 * self.error

    @property
    def depth_in_words(self) -> str:
        """A sentence on the gain of hidden layers; empty if none were tried."""
        if not self.has_hidden:
            return ""
        if not self.weight():
            return "Hidden layers were tried, and none is part of the model."
        effect = "they helped" if self.gain > 0.0 else "they did harm"
        if abs(self.gain) < 2.0 * self.error:
            effect = "no measurable effect"
        change = f"{0.0 - self.gain:+.3g} ± {self.error:.2g}: {effect} (optimistic: these rows chose the model)"
        return f"Hidden layers changed the held-out loss by {change}."

    @property
    def seconds_in_words(self) -> str:
        """Sentences on the seconds of each stage, and on `max_time`; empty if there is nothing to say."""
        stages = "; ".join(f"{name} {seconds:.1f}" for name, seconds in self.seconds.items())
        total = f"Training took {math.fsum(self.seconds.values()):.1f} s: {stages}." if stages else ""
        cut = "max_time cut candidates short, or left them out: more time may give a better model."
        return "\n".join(filter(None, [total, cut if self.cut_by_time else ""]))

    def __str__(self) -> str:
        """Return the gain of hidden layers in words, and a table of the candidates with their weight and loss."""
        of_member = "" if self.members == 1 else " of the first member"
        lines = [f"Candidates{of_member}, with their weight in the model and their loss on held-out rows:"]
        for result in sorted(self.candidates, key=lambda candidate: (-candidate.weight, candidate.loss)):
            weight = share_in_words(result.weight) if result.weight else "-"
            lines.append(f"  {weight:>4}  {result.loss:<12.6g}{result.name}")
        lines = [*filter(None, [self.depth_in_words]), *lines]
        if self.members > 1:
            mean = f"The model is the mean of {self.members} such members, each with held-out rows of its own"
            lines.append(f"{mean}; members that are clearly worse than the best count less.")
        if self.left_out:
            lines.append(f"{len(self.left_out)} features gain nothing on held-out rows, and are left out.")
        if self.failed:
            lines.append(f"Failed, and left out after that: {'; '.join(self.failed)}.")
        return "\n".join(lines)


def weight_in_words(weight: float) -> str:
    """Return the weight of a part of the model as words that follow "with"; "" for a weight of 1."""
    if weight >= 1.0 - 1e-9:  # up to rounding
        return ""
    if weight == 0.0:
        return "no weight in the model"
    return f"{share_in_words(weight).replace('<', 'less than ')} of the weight in the model"


def share_in_words(weight: float) -> str:
    """Return a weight above 0 in whole per cent."""
    return f"{weight:.0%}" if weight >= 0.005 else "<1%"
