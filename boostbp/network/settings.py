"""Settings of a training: `BackpropSpec`, which users write, and `Settings`, which a network is trained with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from boostbp.layers import LayerSettings
from boostbp.layers.layer_spec import Spec, checked
from boostbp.network import steps
from boostbp.network.starts import STARTS, Start, projection
from boostbp.network.steps import Normalised, Step
from boostbp.runtime import checks


def _one_of(*allowed: object) -> Callable[[str, Any], Any]:
    return partial(checks.one_of, allowed=allowed)


_positive = partial(checks.whole, least=1)


def _row_count(name: str, value: Any) -> Any:
    is_share = isinstance(value, float)
    checks.finite(name, value)
    if not (0.0 < value <= 1.0 if is_share else value >= 1):
        raise ValueError(f"{name}={value!r} is not allowed: give a share in (0, 1], or a number of rows.")
    return value


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BackpropSpec(Spec):
    """How the hidden layers of a network are trained by back-propagation.

    Estimators take it, or a dict of its fields.

    Parameters
    ----------
    start : {"projection", "principal", "identity", "noise"}
        Hidden variables before the first epoch: random projections of the input, its principal components, copies
        of its first columns, or the paper's noise.
    step : {"normalised", "plain"} or Step
        Whether `step_size` counts in standard deviations of the hidden units, or multiplies the gradient as in the
        paper; or an object with its own size and momentum, of `boostbp.network.steps` or your own.
    step_size, momentum : float
        alpha and mu of the paper; without effect if `step` is an object.
    refit_order : {"upward", "downward"}
        Layers are fitted again from the input to the output, each on the new output of the layer below; or, as in the
        paper, from the output to the input, each on its old input.
    output_target : {"loss", "moved"}
        The output layer is boosted on the loss, or fitted to its moved target as in the paper.
    skip : bool
        Layers above the first see the features beside the hidden layer below them.
    structure_epochs : int or "auto"
        Epochs for which tree structures are kept while their leaves are fitted again; 1: grown every epoch.
        "auto": 4, or 1 with native leaves.
    structure_samples : int, float or None
        Number or share of the rows that tree structures are grown on. They are drawn once. Leaves are fitted on all
        rows. Not supported with native leaves.
    n_iter_no_change : int or None
        Epochs (not rounds) without improvement on the first evaluation set after which training stops. The best epoch
        is restored.

    Raises
    ------
    ValueError
        If a value is out of bounds; the message names the field.

    Examples
    --------
    >>> from boostbp import BoostBPRegressor
    >>> model = BoostBPRegressor(backprop={"step_size": 0.3, "skip": True})
    >>> model.set_params(backprop__momentum=0.9).backprop.skip
    True
    """

    start: Literal["projection", "principal", "identity", "noise"] = checked("projection", _one_of(*STARTS))
    step: str | Step = "normalised"
    step_size: float = 0.4
    momentum: float = 0.8
    refit_order: Literal["upward", "downward"] = checked("upward", _one_of("upward", "downward"))
    output_target: Literal["loss", "moved"] = checked("loss", _one_of("loss", "moved"))
    skip: bool = checked(False, _one_of(True, False))
    structure_epochs: int | Literal["auto"] = checked("auto", checks.or_else("auto", _positive))
    structure_samples: int | float | None = checked(None, checks.or_else(None, _row_count))
    n_iter_no_change: int | None = checked(30, checks.or_else(None, _positive))

    def __post_init__(self) -> None:
        Spec.__post_init__(self)
        steps.rule_of(self.step, self.step_size, self.momentum)


@dataclass(frozen=True, slots=True)
class Settings:
    """How a network is trained.

    Fields with the names of `BackpropSpec` have the same meaning. The others:
    """

    layers: tuple[LayerSettings, ...]  # settings of each T_i, i = 0 .. L-1
    units: tuple[int, ...]  # number of units of each hidden layer, L-1 numbers
    epochs: int = 30
    step: Step = field(default_factory=Normalised)  # rule that moves hidden variables, with its alpha and mu
    start: Start = projection
    refit_order: Literal["upward", "downward"] = "upward"
    output_target: Literal["loss", "moved"] = "loss"
    n_iter_no_change: int | None = None
    skip: bool = False
    structure_epochs: int = 1
    structure_samples: int | None = None  # number of rows
    max_time: float | None = None  # seconds after which no new epoch begins
    n_threads: int = 1
    seed: int = 0
    # Fields of the output layer's `LayerSpec` that the user set. Single layers of an ensemble keep them.
    given: frozenset[str] = frozenset()
