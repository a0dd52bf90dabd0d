"""Pictures of predictions and of what they rest on: calibration, residuals, importances."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boostbp.floats import Floats, usual_floats
from boostbp.plots import axes as panels


@usual_floats()
def calibration(
    y: ArrayLike,
    probability: ArrayLike,
    ax: Any = None,
    *,
    classes: ArrayLike | None = None,
    bins: int = 10,
    label: str = "",
) -> Any:
    """Draw observed shares against predicted probabilities; a calibrated model lies on the diagonal.

    Of two classes it is the probability of the second one; of more, that of the class which the model
    predicts, against how often it is right.

    Parameters
    ----------
    y : (rows,)
        Labels.
    probability : (rows, classes)
        As `predict_proba` gives it.
    ax : matplotlib axes, optional
    classes : (classes,), optional
        Label of each column, `classes_` of the model; by default 0, 1, ...
    bins : int
        Groups of rows, of the same size as far as ties allow.
    label : str
        For the legend; several models may share axes.

    Returns
    -------
    axes

    Raises
    ------
    ValueError
        If there is a label without a column.
    """
    ax = panels.one(ax)
    columns = np.shape(probability)[1]
    true = _columns(np.asarray(y), np.arange(columns) if classes is None else np.asarray(classes))
    predicted, observed = _reliability(true, np.asarray(probability, np.float64), bins)
    if not ax.lines:
        ax.axline((0.0, 0.0), slope=1.0, color="gray", linewidth=0.8, zorder=0)
    ax.plot(predicted, observed, "o-", markersize=4, label=label or None)
    ax.set(
        xlabel="predicted probability" if columns == 2 else "predicted probability of the likeliest class",
        ylabel="observed share",
        xlim=(-0.02, 1.02),
        ylim=(-0.02, 1.02),
        title="Calibration",
    )
    if label:
        ax.legend()
    return ax


def _columns(y: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.intp]:
    """Column of each label, (rows,)."""
    is_class = y[:, None] == classes
    if not is_class.any(axis=1).all():
        raise ValueError(f"y has labels {np.setdiff1d(y, classes)[:5]} that are not among classes={classes}.")
    return is_class.argmax(axis=1)


def _reliability(y: NDArray[np.intp], probability: Floats, bins: int) -> tuple[Floats, Floats]:
    """Mean probability and observed share of each group of rows, (groups,) each."""
    from sklearn.calibration import calibration_curve

    if probability.shape[1] == 2:
        came_true, of = y == 1, probability[:, 1]
    else:
        came_true, of = y == probability.argmax(axis=1), probability.max(axis=1)
    # Rounding may carry a sum of probabilities past 1, which scikit-learn refuses.
    observed, predicted = calibration_curve(came_true, np.clip(of, 0.0, 1.0), n_bins=bins, strategy="quantile")
    return predicted, observed


@usual_floats()
def residuals(
    y: ArrayLike, predicted: ArrayLike, ax: Any = None, *, label: str = "", color: Any = None, size: float = 8.0
) -> Any:
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
    ax = panels.one(ax)
    y, predicted = np.asarray(y, np.float64), np.asarray(predicted, np.float64)
    if y.ndim != 1 or y.shape != predicted.shape:
        raise ValueError(f"y has shape {y.shape}, predicted {predicted.shape}: give one number per row, (rows,).")
    ax.axhline(0.0, color="gray", linewidth=0.8, zorder=0)
    ax.scatter(predicted, y - predicted, s=size, color=color, linewidths=0, alpha=0.7, rasterized=True)
    ax.set(xlabel="predicted", ylabel="observed - predicted", title=label or "Residuals")
    return ax


@usual_floats()
def importances(
    model: Any, ax: Any = None, *, kind: str = "attribution", layer: int | None = None, X: Any = None, most: int = 20
) -> Any:
    """Draw the largest importances, as shares of all.

    Parameters
    ----------
    model : estimator
        Fitted.
    ax : matplotlib axes, optional
    kind, layer, X
        As in `importance` of the estimator.
    most : int
        Bars at most.

    Returns
    -------
    axes
    """
    ax = panels.one(ax)
    share = model.importance(kind, layer=layer, X=X)
    names = model.layer_names(0 if layer is None else layer)
    largest = np.argsort(-share, kind="stable")[:most]
    ax.barh(np.arange(len(largest)), share[largest])
    ax.set_yticks(np.arange(len(largest)), [panels.as_text(names[column]) for column in largest])
    ax.invert_yaxis()
    ax.set(xlabel=f"share of {kind}", title="Importances" if layer is None else f"Importances in layer {layer}")
    return ax
