"""Settings of a training: `BackpropSpec`, which users write, and `Settings`, which a network is trained with."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from boostbp.network import steps
from boostbp.network.layers import LayerSettings
from boostbp.network.layers.layer_spec import Spec, checked, only
from boostbp.network.steps import STARTS, Normalised, Start, Step, projection
from boostbp.runtime import checks

_positive = partial(checks.whole, least=1)


def _row_count(name: str, value: Any) -> Any:
    is_share = isinstance(value, float)
    checks.finite(name, value)
    if not (0.0 < value <= 1.0 if is_share else value >= 1):
        raise ValueError(f"{name}={value!r} is not allowed: give a share in (0, 1], or a number of rows.")
    return value


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BackpropSpec(Spec):
    """Settings of back-propagation, which trains the hidden layers of a network.

    Estimators accept a spec or a dict of its fields.

    Parameters
    ----------
    start : {"projection", "principal", "identity", "noise"}
        Hidden variables before the first epoch: random projections of the input, its principal components, copies
        of its first columns, or the paper's noise.
    step : {"normalised", "plain"} or Step
        Unit of `step_size`: "normalised" measures steps in standard deviations of the hidden units; "plain" multiplies
        the gradient, as in the paper. An object, from `boostbp.network.steps` or your own, has its own size and
        momentum.
    step_size, momentum : float
        alpha and mu of the paper. No effect if `step` is an object.
    refit_order : {"upward", "downward"}
        Order in which layers are fitted again. "upward": from input to output, each layer on the new output of the
        layer below. "downward": from output to input, each layer on its old input, as in the paper.
    output_target : {"loss", "moved"}
        Whether the output layer is boosted on the loss, or fitted to its moved target as in the paper.
    skip : bool
        Whether layers above the first also read the features.
    structure_epochs : int or "auto"
        Number of epochs between growths of the tree structures; leaves are fitted again in every epoch. "auto": 4, or 1
        with native leaves.
    structure_samples : int, float or None
        Number or share of the rows on which tree structures are grown, drawn once. Leaves are fitted on all rows. Not
        supported with native leaves.
    n_iter_no_change : int or None
        Number of epochs (not rounds) without improvement on the first evaluation set after which training stops. The
        best epoch is restored.

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

    start: Literal["projection", "principal", "identity", "noise"] = checked("projection", only(*STARTS))
    step: str | Step = "normalised"
    step_size: float = 0.4
    momentum: float = 0.8
    refit_order: Literal["upward", "downward"] = checked("upward", only("upward", "downward"))
    output_target: Literal["loss", "moved"] = checked("loss", only("loss", "moved"))
    skip: bool = checked(False, only(True, False))
    structure_epochs: int | Literal["auto"] = checked("auto", checks.or_else("auto", _positive))
    structure_samples: int | float | None = checked(None, checks.or_else(None, _row_count))
    n_iter_no_change: int | None = checked(30, checks.or_else(None, _positive))

    def __post_init__(self) -> None:
        Spec.__post_init__(self)
        steps.rule_of(self.step, self.step_size, self.momentum)


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the training of a network.

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
    max_time: float | None = None  # seconds after which no epoch ends, if the first one does not
    n_threads: int = 1
    seed: int = 0
    # Fields of the output layer's `LayerSpec` that the user set. Single layers of an ensemble keep them.
    given: frozenset[str] = frozenset()
