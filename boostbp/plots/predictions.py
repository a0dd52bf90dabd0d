"""Plots of rows and features: calibration, residuals, importances, and hidden representations."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boostbp.network.choice import weight_in_words
from boostbp.plots import axes as panels
from boostbp.runtime.arrays import Floats, numpy_errstate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.typing import ColorType
    from pandas import DataFrame

    from boostbp.estimators.base import BaseBoostBP
    from boostbp.network.network import Network

# More distinct numbers than this are an amount and get a colour scale; more labels get no legend. Arbitrary.
_MAX_CLASSES = 20


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
    xlabel = "predicted probability" if n_classes == 2 else "predicted probability of the likeliest class"
    ax.set(xlabel=xlabel, ylabel="observed share", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), title="Calibration")
    if label:
        ax.legend()
    return ax


def _class_numbers(y: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.intp]:
    """Return the number of each label in `classes`, (rows,)."""
    if y.ndim != 1:
        cure = "draw one label k at a time, with y[:, k] and np.column_stack([1 - p[:, k], p[:, k]])"
        raise ValueError(f"y has shape {y.shape}, not (rows,): {cure}.")
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


@numpy_errstate()
def representation(
    H: ArrayLike,
    y: ArrayLike | None = None,
    ax: Axes | None = None,
    *,
    method: str = "pca",
    random_state: int = 0,
    size: float = 8.0,
) -> Axes:
    """Draw rows as points: two units directly, more units by PCA or t-SNE, one unit against the row number.

    Parameters
    ----------
    H : (rows, units)
        Output of `transform`.
    y : (rows,), optional
        Labels or numbers that colour the points.
    ax : matplotlib axes, optional
    method : {"pca", "tsne"}
        Projection of more than two units.
    random_state : int
        Seed of t-SNE.
    size : float
        Area of a point.

    Returns
    -------
    axes

    Raises
    ------
    ValueError
        If the method is unknown, or there are fewer than 2 rows.
    """
    ax = panels.current_axes(ax)
    points, (xlabel, ylabel) = _projection(np.asarray(H, np.float64), method, random_state)
    _scatter(ax, points, y, size)
    ax.set(xlabel=xlabel, ylabel=ylabel)
    return ax


@numpy_errstate()
def representations(
    model: BaseBoostBP,
    X: ArrayLike | DataFrame,
    y: ArrayLike | None = None,
    axes: panels.AxesLike | None = None,
    *,
    networks: Mapping[int, Network] | None = None,
    layer: int = -1,
    method: str = "pca",
    random_state: int = 0,
) -> NDArray[np.object_]:
    """Draw the hidden representation of the same rows at several epochs; titles state its weight in an average.

    Parameters
    ----------
    model : estimator
        Fitted.
    X : array-like or data frame, (rows, features)
    y : (rows,), optional
        Labels or numbers that colour the points.
    axes : array of matplotlib axes, optional
        One for each epoch.
    networks : mapping of int to Network, optional
        Record of `callbacks.record_networks`, by epoch. The default is the network of the model, at the kept epoch.
    layer : int
        As in `transform`.
    method, random_state
        As in `representation`.

    Returns
    -------
    array of axes

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from boostbp import BoostBPClassifier, callbacks, plots
    >>> X, y = load_iris(return_X_y=True)
    >>> seen = {}
    >>> record = callbacks.record_networks(seen, epochs=[0, 2])
    >>> model = BoostBPClassifier((2,), epochs=2, random_state=0).fit(X, y, callbacks=[record])
    >>> axes = plots.representations(model, X, y, networks=seen)  # doctest: +SKIP
    """
    history = model.history_
    words = "" if networks else weight_in_words(history.weight())
    networks = {history.best_epoch: model.network_} if networks is None else networks
    axes = panels.panel_axes(axes, len(networks))
    for ax, epoch in zip(axes, sorted(networks), strict=True):
        snapshot = copy.copy(model)
        snapshot.model_ = replace(model.model_, network=networks[epoch])
        representation(snapshot.hidden_representation(X, layer), y, ax, method=method, random_state=random_state)
        title = "Hidden units" if history.network is None else f"Epoch {epoch}"
        ax.set_title(panels.titled(title, f"layers with {words}" if words else ""))
    return axes


def _projection(H: Floats, method: str, random_state: int) -> tuple[Floats, tuple[str, str]]:
    """Return two coordinates of each row, (rows, 2), and their names."""
    if method not in ("pca", "tsne"):
        raise ValueError(f"method={method!r} is not known: use 'pca' or 'tsne'.")
    if len(H) < 2:
        raise ValueError(f"A representation of {len(H)} rows is no picture: give at least 2.")
    if H.shape[1] == 1:
        return np.column_stack([H[:, 0], np.arange(float(len(H)))]), ("unit 0", "row")
    if H.shape[1] == 2:
        return H, ("unit 0", "unit 1")
    if method == "pca":
        from sklearn.decomposition import PCA

        with np.errstate(invalid="ignore"):  # shares of a variance of 0
            pca = PCA(2, svd_solver="full").fit(H)
        shares = np.nan_to_num(pca.explained_variance_ratio_)
        names = [f"component {k} ({share:.0%} of the variance)" for k, share in enumerate(shares, 1)]
        return pca.transform(H), (names[0], names[1])
    from sklearn.manifold import TSNE

    tsne = TSNE(2, perplexity=min(30.0, (len(H) - 1) / 3), init="pca", random_state=random_state)
    return tsne.fit_transform(H).astype(np.float64), ("t-SNE 1", "t-SNE 2")


def _scatter(ax: Axes, points: Floats, y: ArrayLike | None, size: float) -> None:
    draw = partial(ax.scatter, s=size, linewidths=0, alpha=0.8, rasterized=True)
    if y is None:
        draw(*points.T)
        return
    y = np.asarray(y)
    if y.ndim != 1:
        raise ValueError(f"y has shape {y.shape}, not (rows,): colour the points by one column, such as y[:, 0].")
    labels = np.unique(y)
    if y.dtype.kind in "fiu" and len(labels) > _MAX_CLASSES:
        ax.figure.colorbar(draw(*points.T, c=y, cmap="viridis"), ax=ax, label="target")
        return
    for number, label in enumerate(labels):
        draw(*points[y == label].T, color=f"C{number % 10}", label=panels.as_text(label))
    if len(labels) <= _MAX_CLASSES:
        ax.legend(markerscale=2.0, loc="upper left", bbox_to_anchor=(1.0, 1.0))
