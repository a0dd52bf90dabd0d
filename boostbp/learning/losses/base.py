"""Final losses of a network: value, gradient, hessian, link and baseline of each.

Conventions, the same for every loss:

==========  ====================  ==================================================================
``h``       (rows, outputs)       raw output of the network, float64, finite
``y``       (rows, outputs)       target, float64: the values (regression), one column of 0 and 1
                                  (logistic), one-hot (softmax)
``weight``  (rows,)               weight of each row, float64, >= 0, not all 0
value       (rows,)               loss of each row, summed over outputs, without weight
gradient    (rows, outputs)       d value / d h of each row: **not divided by the number of rows**
hessian     (rows, outputs)       positive Newton weight: a step goes to ``h - gradient / hessian``
link        (rows, outputs)       ``h`` on the scale of ``y``; may be ``h`` itself
baseline    (outputs,)            constant ``h`` with the least weighted value, always finite
==========  ====================  ==================================================================

Where the true curvature vanishes the hessian is held at 1e-6: without it a row that is fitted well
would lose all weight in the leaf regressions, and a row that is badly wrong would ask for an
infinite step. Losses without curvature (absolute, Huber, quantile) have hessian 1, as in LightGBM:
their trees fit the plain negative gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from boostbp.learning.losses.likelihoods import Logistic, Poisson, Softmax
from boostbp.learning.losses.residuals import AbsoluteError, Huber, Quantile, SquaredError
from boostbp.learning.losses.targets import Task

__all__ = [
    "AbsoluteError",
    "Huber",
    "Logistic",
    "Loss",
    "Poisson",
    "Quantile",
    "Softmax",
    "SquaredError",
    "load",
    "task_of",
]

Floats = NDArray[np.float64]


class Loss(Protocol):
    """What training needs to know of a loss: these, or an object of the user's own.

    A loss that is a sum over outputs may say so by an attribute ``separable = True``: its outputs are
    then boosted side by side. Without it they are boosted together, round by round. One whose hessian varies
    may say ``curved = True``: the ridge regression under its layer then minimises the loss itself, where one
    Newton step from a constant would go too far.

    A loss says what it is for by an attribute ``task``, "regression" or "classification": an estimator of the other
    kind refuses it. One without it is taken by both, as a loss of what the estimator predicts; a regressor refuses
    metrics of classes whatever its loss says. These may be said, too:

    ``default_metric``
        Name of the metric of evaluation sets where ``eval_metric`` is None. Without it that is the mean of a loss that
        is `scale_free`, the log-loss of a classifier, and has to be given for any other.
    ``robust``
        True: a few rows far off hardly bend the fit. A target that may be scaled then is so by median and quartiles.
    ``soft_labels``
        True: `value` takes probabilities of classes in the place of 0 and 1. Held-out labels are then smoothed where
        candidates for a model are weighed.

    Value and derivatives are apart, because an evaluation needs no derivative. Each round of a curved loss needs
    all: where there is a method ``derivatives(h, y) -> (value, gradient, hessian)``, it is asked for them at once.

    Shapes are those above, also of a single output: LightGBM and XGBoost take a gradient of (rows,), which is
    ``gradient[:, None]`` here. Other shapes are refused, and so is a loss that writes into `h` or `y`.

    >>> loss = load("log_loss", n_outputs=1)
    >>> y = np.array([[0.0], [1.0], [1.0]])
    >>> loss.check(y)
    >>> h = np.tile(loss.baseline(y, np.ones(3)), (3, 1))
    >>> loss.link(h).round(3).ravel().tolist()  # the share of ones
    [0.667, 0.667, 0.667]
    >>> loss.gradient(h, y).round(3).ravel().tolist()
    [0.667, -0.333, -0.333]
    """

    @property
    def name(self) -> str:
        """What the loss is called in messages and files."""
        ...

    @property
    def scale_free(self) -> bool:
        """Whether training may shift and scale `y`: the best fit then shifts and scales with it."""
        ...

    def value(self, h: Floats, y: Floats) -> Floats:
        """Loss of each row, (rows,)."""
        ...

    def gradient(self, h: Floats, y: Floats) -> Floats:
        """Derivative of `value`, (rows, outputs)."""
        ...

    def hessian(self, h: Floats, y: Floats) -> Floats:
        """Positive Newton weight, (rows, outputs)."""
        ...

    def link(self, h: Floats) -> Floats:
        """Prediction on the scale of `y`, (rows, outputs)."""
        ...

    def baseline(self, y: Floats, weight: Floats) -> Floats:
        """Best constant raw output, (outputs,)."""
        ...

    def check(self, y: Floats) -> None:
        """Raise ValueError if the loss cannot take the target `y`."""
        ...


_BY_NAME: dict[str, Callable[[], Loss]] = {
    **dict.fromkeys(
        ("squared_error", "l2", "mse", "mean_squared_error", "regression", "reg:squarederror"), SquaredError
    ),
    **dict.fromkeys(
        ("absolute_error", "l1", "mae", "mean_absolute_error", "regression_l1", "reg:absoluteerror"), AbsoluteError
    ),
    "huber": Huber,
    **dict.fromkeys(("quantile", "reg:quantileerror"), Quantile),
    **dict.fromkeys(("poisson", "count:poisson"), Poisson),
    **dict.fromkeys(("logistic", "binary", "binary:logistic"), Logistic),
    **dict.fromkeys(("softmax", "multiclass", "multi:softprob", "multi:softmax"), Softmax),
}
_TASKS = (None, "regression", "classification")  # None: it does not say
_MEMBERS = ("name", "scale_free", "value", "gradient", "hessian", "link", "baseline", "check")


def load(loss: str | Loss, *, n_outputs: int) -> Loss:
    """Loss by name, or the user's own object if it has all that a `Loss` needs.

    Parameters
    ----------
    loss : str or Loss
        A name of scikit-learn, LightGBM or XGBoost. ``"log_loss"`` is `Logistic` for one output
        and `Softmax` for several.
    n_outputs : int
        Columns of the target.

    Raises
    ------
    ValueError
        If the name is unknown, or is that of a classification loss for another number of outputs; if the object is for
        no known task.
    TypeError
        If the object lacks a member of `Loss`.
    """
    if isinstance(loss, str):
        return _by_name(loss, n_outputs)
    if isinstance(loss, type):
        raise TypeError(f"loss={loss.__name__} is a class: pass an object of it, {loss.__name__}().")
    if str(getattr(loss, "__module__", "")).startswith("torch."):
        raise TypeError(
            f"loss={loss!r} is a loss of torch, which knows no hessian of each row: give a name or an object like "
            "boostbp.learning.losses.Loss, or train by it in a loop of your own (boostbp.interop.torch_bridge)."
        )
    missing = [member for member in _MEMBERS if not hasattr(loss, member)]
    if missing:
        raise TypeError(f"loss={loss!r} lacks {', '.join(missing)}: add them (see boostbp.learning.losses.Loss).")
    if task_of(loss) not in _TASKS:
        raise ValueError(f"loss={loss!r} has task={task_of(loss)!r}: let it be 'regression' or 'classification'.")
    return loss


def task_of(loss: Loss) -> Task | None:
    """What a loss says that it is for; None if it is the user's own and does not say."""
    return getattr(loss, "task", None)


def _by_name(name: str, n_outputs: int) -> Loss:
    if name == "log_loss":
        return Logistic() if n_outputs == 1 else Softmax()
    if name not in _BY_NAME:
        raise ValueError(
            f"loss={name!r} is unknown: use one of {', '.join(['log_loss', *_BY_NAME])}, or an own object."
        )
    loss = _BY_NAME[name]()
    if isinstance(loss, Logistic) and n_outputs != 1:
        raise ValueError(f"loss={name!r} takes 1 output, y has {n_outputs}: use loss='log_loss'.")
    if isinstance(loss, Softmax) and n_outputs < 2:
        raise ValueError(f"loss={name!r} takes 2 outputs or more, y has {n_outputs}: use loss='log_loss'.")
    return loss
