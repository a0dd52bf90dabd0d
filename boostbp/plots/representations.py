"""Hidden representations as points in the plane, by epoch."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from boostbp.floats import Floats, usual_floats
from boostbp.network.choice import weight_in_words
from boostbp.plots import axes as panels

Method = Literal["pca", "tsne"]

_MOST_CLASSES = 20  # more distinct numbers than this are an amount, with a colour scale; more labels have no legend


@usual_floats()
def representation(
    H: ArrayLike, y: Any = None, ax: Any = None, *, method: Method = "pca", random_state: int = 0, size: float = 8.0
) -> Any:
    """Draw rows as points: two units as they are, more by PCA or t-SNE, one beside the number of the row.

    Parameters
    ----------
    H : (rows, units)
        As `transform` gives it.
    y : (rows,), optional
        Labels or numbers that colour the points.
    ax : matplotlib axes, optional
    method : {"pca", "tsne"}
        For more than two units.
    random_state : int
        Of t-SNE.
    size : float
        Area of a point.

    Returns
    -------
    axes

    Raises
    ------
    ValueError
        For another method, or fewer than 2 rows.
    """
    ax = panels.one(ax)
    points, names = plane(np.asarray(H, np.float64), method, random_state)
    _scatter(ax, points, y, size)
    ax.set(xlabel=names[0], ylabel=names[1])
    return ax


@usual_floats()
def representations(
    model: Any,
    X: Any,
    y: Any = None,
    axes: Any = None,
    *,
    networks: Mapping[int, Any] | None = None,
    layer: int = -1,
    method: Method = "pca",
    random_state: int = 0,
) -> Any:
    """Draw the hidden representation of the same rows at several epochs; titles say what weight it has in an average.

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
        What `callbacks.record_networks` recorded; by default those of the model side by side, at the kept epoch.
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
    axes = panels.several(axes, len(networks))
    for ax, epoch in zip(axes, sorted(networks), strict=True):
        then = copy.copy(model)
        then.model_ = replace(model.model_, network=networks[epoch])
        H = then.hidden_representation(X, layer)
        representation(H, y, ax, method=method, random_state=random_state)
        title = "Hidden units" if history.network is None else f"Epoch {epoch}"
        ax.set_title(panels.titled(title, f"layers with {words}" if words else ""))
    return axes


def plane(H: Floats, method: Method = "pca", random_state: int = 0) -> tuple[Floats, tuple[str, str]]:
    """Two coordinates of each row, (rows, 2), and their names."""
    if method not in ("pca", "tsne"):
        raise ValueError(f"method={method!r} is not known: use 'pca' or 'tsne'.")
    if len(H) < 2:
        raise ValueError(f"A representation of {len(H)} rows is no picture: give at least 2.")
    if H.shape[1] == 1:
        return np.column_stack([H[:, 0], np.arange(len(H))]), ("unit 0", "row")
    if H.shape[1] == 2:
        return H, ("unit 0", "unit 1")
    if method == "pca":
        from sklearn.decomposition import PCA

        with np.errstate(invalid="ignore"):  # nothing varies: shares of nothing
            pca = PCA(2, svd_solver="full").fit(H)
        shares = np.nan_to_num(pca.explained_variance_ratio_)
        names = [f"component {k} ({share:.0%} of the variance)" for k, share in enumerate(shares, 1)]
        return pca.transform(H), (names[0], names[1])
    from sklearn.manifold import TSNE

    tsne = TSNE(2, perplexity=min(30.0, (len(H) - 1) / 3), init="pca", random_state=random_state)
    return tsne.fit_transform(H).astype(np.float64), ("t-SNE 1", "t-SNE 2")


def _scatter(ax: Any, points: Floats, y: Any, size: float) -> None:
    style = {"s": size, "linewidths": 0, "alpha": 0.8, "rasterized": True}
    if y is None:
        ax.scatter(*points.T, **style)
        return
    y = np.asarray(y)
    labels = np.unique(y)
    if y.dtype.kind in "fiu" and len(labels) > _MOST_CLASSES:
        ax.figure.colorbar(ax.scatter(*points.T, c=y, cmap="viridis", **style), ax=ax, label="target")
        return
    for number, label in enumerate(labels):
        ax.scatter(*points[y == label].T, color=f"C{number % 10}", label=panels.as_text(label), **style)
    if len(labels) <= _MOST_CLASSES:
        ax.legend(markerscale=2.0, loc="upper left", bbox_to_anchor=(1.0, 1.0))
