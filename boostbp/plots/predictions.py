"""Plots of predictions: calibration, residuals, importances."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boostbp.plots import axes as panels
from boostbp.runtime.arrays import numpy_errstate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.typing import ColorType
    from pandas import DataFrame

    from boostbp.estimators.base import BaseBoostBP


@numpy_errstate()
def calibration(
    y: ArrayLike,
    probability: ArrayLike,
    ax: Axes | None = None,
    *,
    classes: ArrayLike | None = None,
    bins: int = 10,
    label: str = "",
) -> Axes:
    """Draw observed shares against predicted probabilities; a calibrated model lies on the diagonal.

    For two classes, the probability is that of the second one. For more, it is that of the predicted class, and the
    observed share is that of right predictions.

    Parameters
    ----------
    y : (rows,)
        Labels.
    probability : (rows, classes)
        Output of `predict_proba`.
    ax : matplotlib axes, optional
    classes : (classes,), optional
        Label of each column, `classes_` of the model; by default 0, 1, ...
    bins : int
        Number of groups of rows, of equal size except for ties.
    label : str
        Text of the legend, for several models on the same axes.

    Returns
    -------
    axes

    Raises
    ------
    ValueError
        If a label has no column.
    """
    from sklearn.calibration import calibration_curve

    ax = panels.current_axes(ax)
    shares = np.asarray(probability, np.float64)
    n_classes = shares.shape[1]
    true = _class_numbers(np.asarray(y), np.arange(n_classes) if classes is None else np.asarray(classes))
    if n_classes == 2:
        is_right, confidence = true == 1, shares[:, 1]
    else:
        is_right, confidence = true == shares.argmax(axis=1), shares.max(axis=1)
    # A rounded sum of probabilities may exceed 1, which scikit-learn refuses.
    observed, predicted = calibration_curve(is_right, np.clip(confidence, 0.0, 1.0), n_bins=bins, strategy="quantile")
    if not ax.lines:
        ax.axline((0.0, 0.0), slope=1.0, color="gray", linewidth=0.8, zorder=0)
    ax.plot(predicted, observed, "o-", markersize=4, label=label or None)
    ax.set(
        xlabel="predicted probability" if n_classes == 2 else "predicted probability of the likeliest class",
        ylabel="observed share",
        xlim=(-0.02, 1.02),
        ylim=(-0.02, 1.02),
        title="Calibration",
    )
    if label:
        ax.legend()
    return ax


def _class_numbers(y: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.intp]:
    """Return the number of each label in `classes`, (rows,)."""
    is_class = y[:, None] == classes
    if not is_class.any(axis=1).all():
        raise ValueError(f"y has labels {np.setdiff1d(y, classes)[:5]} that are not among classes={classes}.")
    return is_class.argmax(axis=1)


@numpy_errstate()
def residuals(
    y: ArrayLike,
    predicted: ArrayLike,
    ax: Axes | None = None,
    *,
    label: str = "",
    color: ColorType | None = None,
    size: float = 8.0,
) -> Axes:
    """Draw observed minus predicted against predicted.

    Parameters
    ----------
    y, predicted : (rows,) of float
    ax : matplotlib axes, optional
    label : str
        Title; "Residuals" by default.
    color : matplotlib colour, optional
    size : float
        Area of a point.

    Returns
    -------
    axes
    """
    ax = panels.current_axes(ax)
    y, predicted = np.asarray(y, np.float64), np.asarray(predicted, np.float64)
    if y.ndim != 1 or y.shape != predicted.shape:
        raise ValueError(f"y has shape {y.shape}, predicted {predicted.shape}: give one number per row, (rows,).")
    ax.axhline(0.0, color="gray", linewidth=0.8, zorder=0)
    ax.scatter(predicted, y - predicted, s=size, color=color, linewidths=0, alpha=0.7, rasterized=True)
    ax.set(xlabel="predicted", ylabel="observed - predicted", title=label or "Residuals")
    return ax


@numpy_errstate()
def importances(
    model: BaseBoostBP,
    ax: Axes | None = None,
    *,
    kind: str = "attribution",
    layer: int | None = None,
    X: ArrayLike | DataFrame | None = None,
    most: int = 20,
) -> Axes:
    """Draw the largest importances, as shares of their total sum.

    Parameters
    ----------
    model : estimator
        Fitted.
    ax : matplotlib axes, optional
    kind, layer, X
        As in `importance` of the estimator.
    most : int
        Maximum number of bars.

    Returns
    -------
    axes
    """
    ax = panels.current_axes(ax)
    share = model.importance(kind, layer=layer, X=X)
    names = model.layer_names(0 if layer is None else layer)
    largest = np.argsort(-share, kind="stable")[:most]
    ax.barh(np.arange(len(largest)), share[largest])
    ax.set_yticks(np.arange(len(largest)), [panels.as_text(names[column]) for column in largest])
    ax.invert_yaxis()
    ax.set(xlabel=f"share of {kind}", title="Importances" if layer is None else f"Importances in layer {layer}")
    return ax
