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

from dataclasses import dataclass, fields
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from boostbp.floats import Floats

Task = Literal["classification", "regression"]
LinkName = Literal["identity", "log", "logit", "softmax", "sorted"]
LEAST_HESSIAN = 1e-6


class Loss(Protocol):
    """What training needs to know of a loss: these, or an object of the user's own.

    What else may be said of a loss, by attributes of the names in `Traits`, has a default there: its task, its other
    names, its default metric, and so on. Whether its hessian varies, and whether its outputs can be boosted side by
    side, is found out on a few rows (`boostbp.losses.loss_trial.try_loss`).

    Value and derivatives are apart, because an evaluation needs no derivative. Each round of a loss whose hessian
    varies needs all: where there is a method ``derivatives(h, y) -> (value, gradient, hessian)``, it is asked for them
    at once. A method ``inverse_link(prediction) -> h`` lets the mean of a loss be a metric by its name. Where
    intervals are made of residuals, these are divided by what a method ``deviation(prediction)`` returns, (rows,
    outputs).

    Shapes are those above, also of a single output: LightGBM and XGBoost take a gradient of (rows,), which is
    ``gradient[:, None]`` here. Other shapes are refused, and so is a loss that writes into `h` or `y`.
    `boostbp.check_loss` compares the members with one another.

    >>> from boostbp import losses
    >>> loss = losses.load("log_loss", n_outputs=1)
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


@dataclass(frozen=True, slots=True)
class Traits:
    """What a loss says about itself by attributes, and what is taken for true where it says nothing.

    Attributes
    ----------
    task : {"regression", "classification", None}
        What it is for: an estimator of the other kind refuses it. None: both take it, as a loss of what they predict;
        a regressor refuses metrics of classes whatever its loss says.
    aliases : tuple of str
        What else it is called, by LightGBM, XGBoost or scikit-learn. Two losses may share an alias if no number of
        outputs suits both.
    link_name : {"identity", "log", "logit", "softmax", "sorted", None}
        What `link` undoes; "sorted": nothing, it sorts the outputs of a row. The labels of a classifier are read from
        the raw output itself if it is log-odds, by a logit or softmax link, and the probability of the other one of
        two classes is ``link(-h)``: nothing is rounded away.
    min_outputs, max_outputs : int, int or None
        Columns of the targets that it takes; None: any number.
    copies : int or None
        Outputs that learn the one column of a target, of which ``y`` then has copies side by side; None: outputs are
        the columns of the target.
    default_metric : str or None
        Name of the metric of evaluation sets where ``eval_metric`` is None. None: the log-loss of a classifier, and
        the mean of the loss itself of a regressor.
    homogeneous : bool
        ``value(a h, a y) = a value(h, y)`` for a > 0: its mean is then told in units of the target, and not in
        those of the standardised target that training sees.
    robust : bool
        A few rows far off hardly bend the fit. A target that may be scaled then is so by median and quartiles.
    least_squares : bool
        It is half the squared residual. The slope of held-out targets on the model then has a standard error, by which
        models are shrunk that hardly follow them.
    soft_labels : bool
        `value` takes probabilities of classes in the place of 0 and 1. Held-out labels are then smoothed where
        candidates for a model are compared.
    """

    task: Task | None = None
    aliases: tuple[str, ...] = ()
    link_name: LinkName | None = None
    min_outputs: int = 1
    max_outputs: int | None = None
    copies: int | None = None
    default_metric: str | None = None
    homogeneous: bool = False
    robust: bool = False
    least_squares: bool = False
    soft_labels: bool = False

    def takes(self, n_outputs: int) -> bool:
        """Whether targets may have so many columns."""
        return self.min_outputs <= n_outputs and (self.max_outputs is None or n_outputs <= self.max_outputs)


_DEFAULTS: tuple[tuple[str, Any], ...] = tuple((field.name, field.default) for field in fields(Traits))


def traits_of(loss: Loss | type[Any]) -> Traits:
    """Return what a loss, or the class of one, says about itself."""
    return Traits(*[getattr(loss, name, default) for name, default in _DEFAULTS])  # quick: asked for in every round


def refuse(y: Floats, wrong: NDArray[np.bool_], cure: str) -> None:
    """Raise ValueError if any target is wrong.

    Parameters
    ----------
    y : (rows, outputs) float64
    wrong : (rows, outputs) bool
    cure : str
        What the loss takes and what to do; follows the first wrong value and its place.
    """
    if wrong.any():
        row, output = np.argwhere(wrong)[0]
        raise ValueError(f"y={y[row, output]:g} in row {row}, output {output}: {cure}")
