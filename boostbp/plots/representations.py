"""Hidden representations as points in the plane, by epoch."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boostbp.network.choice import weight_in_words
from boostbp.plots import axes as panels
from boostbp.runtime.arrays import Floats, numpy_errstate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

    from boostbp.estimators.base import BaseBoostBP
    from boostbp.network.network import Network

# More distinct numbers than this are an amount and get a colour scale; more labels get no legend. Arbitrary.
_MAX_CLASSES = 20


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
    labels = np.unique(y)
    if y.dtype.kind in "fiu" and len(labels) > _MAX_CLASSES:
        ax.figure.colorbar(draw(*points.T, c=y, cmap="viridis"), ax=ax, label="target")
        return
    for number, label in enumerate(labels):
        draw(*points[y == label].T, color=f"C{number % 10}", label=panels.as_text(label))
    if len(labels) <= _MAX_CLASSES:
        ax.legend(markerscale=2.0, loc="upper left", bbox_to_anchor=(1.0, 1.0))
