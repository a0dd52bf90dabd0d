"""Axes to draw on: the caller's, pyplot's, or those of a figure without a window; their titles and text."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from boostbp.runtime.messages import printable, require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from boostbp.network.history import History

AxesLike: TypeAlias = "Axes | Sequence[Axes] | NDArray[np.object_]"
_PANELS_PER_ROW = 3
_PANEL_INCHES = (4.6, 3.6)  # width and height: legends and titles of 10 points fit
_TITLE_WIDTH = 36  # characters of a line that fit above a panel


def current_axes(ax: Axes | None) -> Axes:
    """Return `ax`, or the current axes of pyplot."""
    return _matplotlib("pyplot").gca() if ax is None else ax


def panel_axes(axes: AxesLike | None, count: int) -> NDArray[np.object_]:
    """Return the axes of a plot with several panels, (count,): `axes`, or those of a new figure of pyplot."""
    if axes is None:
        return _grid(_matplotlib("pyplot").figure(layout="constrained"), count)
    flat = np.ravel(np.asarray(axes, dtype=object))
    if len(flat) != count:
        raise ValueError(f"axes: {len(flat)} given, but this plot has {count} panels: give {count} axes.")
    return flat


def figure(count: int = 1, *, size: tuple[float, float] = _PANEL_INCHES) -> tuple[Figure, NDArray[np.object_]]:
    """Return a figure without pyplot, which need not be closed, and its axes, (count,); `size` of a panel in inches."""
    drawing = _matplotlib("figure").Figure(layout="constrained")
    return drawing, _grid(drawing, count, size)


def as_text(name: object) -> str:
    """Return a name from data for matplotlib, with escaped dollar signs, and only characters that SVG allows."""
    return printable(str(name)).replace("$", r"\$")


def by_epoch(ax: Axes, ylabel: str, title: str, xlabel: str = "epoch") -> None:
    """Label axes over epochs or other whole steps."""
    ax.set(xlabel=xlabel, ylabel=ylabel, title=title)
    ax.locator_params("x", integer=True)


def titled(title: str, part: str) -> str:
    """Return a title, with the part of the model below it; `part` is empty for the whole model."""
    return "\n".join([title, *(textwrap.wrap(f"of {part}", _TITLE_WIDTH) if part else [])])


def of_network(history: History) -> str:
    """Return the network of a model and its weight in words; "" if the network is the whole model."""
    words = history.network_in_words
    return f"the {history.network} with {words}" if words else ""


def _grid(figure: Figure, count: int, size: tuple[float, float] = _PANEL_INCHES) -> NDArray[np.object_]:
    columns = min(count, _PANELS_PER_ROW)
    rows = -(-count // columns)
    figure.set_size_inches(size[0] * columns, size[1] * rows)
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for spare in grid[count:]:
        spare.remove()
    return grid[:count]


def _matplotlib(module: str) -> Any:
    return require(f"matplotlib.{module}", extra="plots", what="boostbp.plots")
