"""Final losses of a network, by name or the user's own.

A loss is a class that describes itself by its attributes: see `Loss` and `Traits`. Losses in `LOSSES`, the only list of
them, are known by name. ``docs/extending.md`` shows how to write one.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, cast, get_args

from boostbp.losses.aft import AFT
from boostbp.losses.base import Loss, Task, Traits, traits_of
from boostbp.losses.cox import Cox
from boostbp.losses.log_link import Gamma, Logistic, Multilabel, Poisson, Softmax, Tweedie
from boostbp.losses.query_losses import LambdaRank, ListwiseRanking, PairwiseRanking
from boostbp.losses.residuals import AbsoluteError, Huber, Quantile, Quantiles, SquaredError
from boostbp.runtime import checks
from boostbp.runtime.messages import counted, nearest, unsupported

__all__ = [
    "AFT",
    "LOSSES",
    "AbsoluteError",
    "Cox",
    "Gamma",
    "Huber",
    "LambdaRank",
    "ListwiseRanking",
    "Logistic",
    "Loss",
    "Multilabel",
    "PairwiseRanking",
    "Poisson",
    "Quantile",
    "Quantiles",
    "Softmax",
    "SquaredError",
    "Task",
    "Traits",
    "Tweedie",
    "load_loss",
    "traits_of",
]

# Classes by name. They are called without arguments, or with the parameters in a model file.
_KNOWN = (
    *(SquaredError, AbsoluteError, Huber, Quantile, Quantiles, Poisson, Gamma, Tweedie, Logistic, Softmax, Multilabel),
    *(ListwiseRanking, LambdaRank, PairwiseRanking),
    *(AFT, Cox),
)
LOSSES: dict[str, type[Any]] = {loss.name: loss for loss in _KNOWN}
_ESTIMATORS = {"ranking": "BoostBPRanker", "survival": "BoostBPSurvival"}  # by the task of their losses alone
_MEMBERS = ("name", "scale_free", "value", "gradient", "hessian", "link", "baseline", "check")


def load_loss(
    loss: str | Loss, *, n_outputs: int, alpha: float | Sequence[float] | None = None, task: Task | None = None
) -> Loss:
    """Return a loss by its name, or the user's own object if it has all members of `Loss`.

    Parameters
    ----------
    loss : str or Loss
        A name of scikit-learn, LightGBM or XGBoost. ``"log_loss"`` is `Logistic` for one output
        and `Softmax` for several.
    n_outputs : int
        Columns of the target.
    alpha : float, sequence of float or None
        Level of ``"quantile"``, or several ascending levels, with an output for each. Other losses ignore one level, as
        in scikit-learn and LightGBM, and refuse several.
    task : {"classification", "ranking", "regression", "survival"}, optional
        The error for an unknown name lists the losses of this task; all if left out. Losses of rankings and survival
        times are refused for another task.

    Raises
    ------
    ValueError
        If the name, the number of outputs, `alpha` or the task of the object is not valid.
    TypeError
        If the object lacks a member of `Loss`.
    """
    loss = loss if alpha is None else _at_levels(loss, alpha)
    if isinstance(loss, str):
        return _by_name(loss, n_outputs, task)
    if isinstance(loss, type):
        raise TypeError(f"loss={loss.__name__} is a class: pass an object of it, {loss.__name__}().")
    if str(getattr(loss, "__module__", "")).startswith("torch."):
        cure = "give a name or an object like boostbp.losses.Loss, or train with it in your own loop (boostbp.torch)"
        raise TypeError(f"loss={loss!r} is a loss of torch, which has no hessian of each row: {cure}.")
    if missing := [member for member in _MEMBERS if not hasattr(loss, member)]:
        raise TypeError(f"loss={loss!r} lacks {', '.join(missing)}: add them (see boostbp.losses.Loss).")
    traits = traits_of(loss)
    if traits.task not in (None, *get_args(Task)):
        raise ValueError(f"loss={loss!r} has task={traits.task!r}: let it be one of {', '.join(get_args(Task))}.")
    _refuse_task(loss, traits, task)
    if traits.copies is not None and not traits.takes(n_outputs):
        raise ValueError(f"loss={loss!r} takes one target, y has {n_outputs}: train a model for each column of y.")
    return loss


def _refuse_task(loss: object, traits: Traits, task: Task | None) -> None:
    """Refuse a loss of rankings or survival times for another estimator."""
    if task not in (None, traits.task) and (estimator := _ESTIMATORS.get(traits.task or "")) is not None:
        raise ValueError(f"loss={loss!r} is for {traits.task}: use {estimator}.")


def task_of(name: str) -> Task | None:
    """Return the task of a loss by its name; None if the name is unknown."""
    return next((traits_of(loss).task for loss in _called(name)), None)


def _called(name: str) -> list[type[Any]]:
    return [loss for known, loss in LOSSES.items() if name == known or name in traits_of(loss).aliases]


def _at_levels(loss: str | Loss, alpha: float | Sequence[float]) -> str | Loss:
    """Return the quantile loss at a level, or at several; another loss as it is."""
    several = checks.is_container(alpha)
    levels: tuple[Any, ...] = tuple(alpha) if several else (alpha,)  # type: ignore[arg-type]
    if not all(isinstance(level, Real) and not isinstance(level, bool) for level in levels):
        raise ValueError(f"alpha={alpha!r} is not a level: give a number between 0 and 1, or several, ascending.")
    if isinstance(loss, str) and loss in (Quantile.name, *Quantile.aliases):
        return Quantiles(levels) if several else Quantile(float(levels[0]))
    if several:
        raise ValueError(f"alpha={alpha!r} holds levels of loss='quantile', and loss={loss!r} has none: leave it out.")
    return loss


def _by_name(name: str, n_outputs: int, task: Task | None) -> Loss:
    losses = _called(name)
    if not losses:
        if reason := unsupported(name):
            raise ValueError(f"loss={name!r}: {reason}")
        of_task = [loss for loss in LOSSES.values() if task in (None, traits_of(loss).task)]
        names = list(dict.fromkeys(alias for loss in of_task for alias in (loss.name, *traits_of(loss).aliases)))
        close = nearest(name, names)
        cure = f"did you mean {close!r}?" if close else f"use one of {', '.join(names)}, or an object of your own."
        raise ValueError(f"loss={name!r} is unknown: {cure}")
    _refuse_task(name, traits_of(losses[0]), task)
    suitable = [loss for loss in LOSSES.values() if traits_of(loss).takes(n_outputs)]
    if of_size := [loss for loss in losses if loss in suitable]:
        return cast("Loss", of_size[0]())
    traits = traits_of(losses[0])
    common = [alias for alias in traits.aliases if any(alias in traits_of(loss).aliases for loss in suitable)]
    cure = f"use loss={common[0]!r}" if common else "use another loss"
    least, most = traits.min_outputs, traits.max_outputs
    takes = counted(least, "output") + {None: " or more", least: ""}.get(most, f", or up to {most}")
    raise ValueError(f"loss={name!r} takes {takes}, y has {n_outputs}: {cure}.")
