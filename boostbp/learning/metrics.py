"""Evaluation metrics of predictions: by the names of LightGBM, XGBoost and scikit-learn, or one's own.

A metric sees what users see: `prediction` (rows, outputs) on the scale of `y` (the loss's link is
applied), `y` (rows, outputs) as the loss takes it, `weight` (rows,). Classes are one column of
P(class 1) with 0 and 1, or a column of probability for each class with one-hot rows. Of several
regression outputs the metric is the mean over the outputs, as in scikit-learn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from boostbp.learning import losses, scores
from boostbp.learning.losses import Loss
from boostbp.learning.own_metrics import adapt, name_of

__all__ = ["Metric", "default_metric", "load"]

Floats = NDArray[np.float64]
Function = Callable[[Floats, Floats, Floats], float]


@dataclass(frozen=True, slots=True)
class Metric:
    """A number that says how good predictions are.

    Attributes
    ----------
    name : str
        What it is called in the history.
    greater_is_better : bool
        Whether the best epoch has the largest value.
    function : callable
        ``function(prediction, y, weight) -> float``.
    """

    name: str
    greater_is_better: bool
    function: Function

    def __call__(self, prediction: Floats, y: Floats, weight: Floats) -> float:
        """Value of the metric; the worst there is (inf, or -inf) if a prediction is not finite.

        Parameters
        ----------
        prediction, y : (rows, outputs) float64
        weight : (rows,) float64

        Raises
        ------
        ValueError
            If no row has a positive weight, or the rows do not determine the metric.
        """
        if not np.isfinite(prediction).all():
            return -np.inf if self.greater_is_better else np.inf
        if not weight.sum() > 0:
            raise ValueError(f"eval_metric={self.name!r}: the weights sum to 0. Give some row a positive weight.")
        return self.function(prediction, y, weight)


def _called(names: str, greater_is_better: bool, function: Function) -> dict[str, tuple[bool, Function]]:
    return dict.fromkeys(names.split(), (greater_is_better, function))


_REGRESSION = {
    **_called("rmse root_mean_squared_error", False, partial(scores.by_sklearn, "root_mean_squared_error")),
    **_called("mse l2 mean_squared_error", False, partial(scores.by_sklearn, "mean_squared_error")),
    **_called("mae l1 mean_absolute_error", False, partial(scores.by_sklearn, "mean_absolute_error")),
    **_called("mape", False, partial(scores.by_sklearn, "mean_absolute_percentage_error")),
    **_called("rmsle", False, scores.rmsle),
    **_called("r2", True, scores.r2),
    **_called("poisson", False, scores.poisson),
    **_called("poisson-nloglik", False, scores.poisson_nloglik),
}
_CLASSES = {
    **_called("logloss log_loss binary_logloss multi_logloss mlogloss", False, scores.logloss),
    **_called("error binary_error multi_error merror", False, scores.error),
    **_called("accuracy", True, scores.accuracy),
    **_called("auc roc_auc", True, scores.auc),
    **_called("average_precision", True, scores.average_precision),
}
_WITH_PARAMETER = ("huber", "quantile")  # delta and alpha come from the loss
_DEFAULTS = {
    losses.SquaredError: "rmse",
    losses.AbsoluteError: "mae",
    losses.Huber: "huber",
    losses.Quantile: "quantile",
    losses.Poisson: "poisson",
    losses.Logistic: "logloss",
    losses.Softmax: "logloss",
}


def load(
    metric: str | Callable[..., float] | tuple[str, Callable[..., float], bool] | Metric | None, loss: Loss
) -> Metric:
    """Metric by name, or from the user's own function.

    Parameters
    ----------
    metric : str, callable, (name, callable, greater_is_better), Metric or None
        None is `default_metric`.
        A callable is ``f(y_true, y_pred) -> float``, or takes ``sample_weight`` too. A single output
        comes as (rows,). Of classes, `y_true` holds their numbers 0, 1, ..., and `y_pred`
        probabilities, (rows,) of class 1 or (rows, classes); scikit-learn's functions of labels
        (``accuracy_score``, ``f1_score``, ...) get labels. A name that ends in ``_score`` is
        maximised, as in scikit-learn, any other minimised: give a tuple to say otherwise.
    loss : Loss
        What the network is trained by. ``"quantile"`` takes its `alpha`, ``"huber"`` its `delta`, in
        the units of the `y` that the metric sees.

    Raises
    ------
    ValueError
        If the name is unknown, or the metric is one of classes and the loss is not.
    TypeError
        If `metric` is none of these.
    """
    if metric is None:
        return default_metric(loss)
    if isinstance(metric, Metric):
        return metric
    if isinstance(metric, str):
        return _by_name(metric, loss)
    if isinstance(metric, tuple) and len(metric) == 3 and callable(metric[1]):
        name, function, greater_is_better = metric
        return Metric(str(name), bool(greater_is_better), adapt(function, classes=_of_classes(loss)))
    if callable(metric) and not hasattr(metric, "_score_func"):
        name = name_of(metric)
        greater_is_better = name.endswith("_score") or name == "matthews_corrcoef"
        return Metric(name, greater_is_better, adapt(metric, classes=_of_classes(loss)))
    raise TypeError(
        f"eval_metric={metric!r} is no metric: pass a name, a function f(y_true, y_pred), or a tuple "
        f"(name, function, greater_is_better); of a scikit-learn scorer, its metric function."
    )


def default_metric(loss: Loss) -> Metric:
    """Return the mean of the loss itself; its root for squared error.

    Raises
    ------
    ValueError
        For the user's own loss with a link, which predictions do not undo.
    """
    if type(loss) in _DEFAULTS:
        return _by_name(_DEFAULTS[type(loss)], loss)
    if loss.scale_free:
        return Metric(loss.name, False, partial(scores.mean_value, loss))
    raise ValueError(f"eval_metric=None: loss={loss.name!r} has no metric of its own. Pass a name or a function.")


def _by_name(name: str, loss: Loss) -> Metric:
    if name == "huber":
        loss = loss if isinstance(loss, losses.Huber) else losses.Huber()
        return Metric(name, False, partial(scores.mean_value, loss))
    if name == "quantile":
        loss = loss if isinstance(loss, losses.Quantile) else losses.Quantile()
        return Metric(name, False, partial(scores.mean_value, loss))
    if name in _REGRESSION:
        return Metric(name, *_REGRESSION[name])
    if name not in _CLASSES:
        names = ", ".join([*_REGRESSION, *_WITH_PARAMETER, *_CLASSES])
        raise ValueError(f"eval_metric={name!r} is unknown: use one of {names}, or a function f(y_true, y_pred).")
    if loss.scale_free or isinstance(loss, losses.Poisson):
        raise ValueError(f"eval_metric={name!r} is for classes, loss={loss.name!r} is not: use e.g. 'rmse'.")
    return Metric(name, *_CLASSES[name])


def _of_classes(loss: Loss) -> bool:
    return isinstance(loss, (losses.Logistic, losses.Softmax))
