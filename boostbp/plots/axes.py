"""Axes to draw on: those that were given, pyplot's, or those of a figure that no window knows."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np

from boostbp.cautions import printable
from boostbp.extras import require

_ROW = 3  # panels side by side
_PANEL = (4.6, 3.6)  # inches
_TITLE = 36  # characters of a line of a title that fit above a panel


def one(ax: Any) -> Any:
    """`ax`, or the current axes of pyplot."""
    return _matplotlib("pyplot").gca() if ax is None else ax


def several(axes: Any, count: int) -> Any:
    """As many axes as a plot needs, (count,): `axes`, or those of a new figure of pyplot.

    Raises ValueError if another number is given.
    """
    if axes is None:
        return _grid(_matplotlib("pyplot").figure(layout="constrained"), count)
    flat = np.ravel(np.asarray(axes, dtype=object))
    if len(flat) != count:
        raise ValueError(f"axes: {len(flat)} given, but this plot has {count} panels: give {count} axes.")
    return flat


def figure(count: int = 1, *, size: tuple[float, float] = _PANEL) -> tuple[Any, Any]:
    """A figure without pyplot, which needs no closing, and its axes, (count,); `size` is that of a panel in inches."""
    made = _matplotlib("figure").Figure(layout="constrained")
    return made, _grid(made, count, size)


def as_text(name: Any) -> str:
    """A name from data as matplotlib is to draw it: dollar signs are none of mathematics, and it fits into SVG."""
    return printable(str(name)).replace("$", r"\$")


def as_read(text: str) -> str:
    """Return the text that is read where matplotlib drew one of `as_text`."""
    return text.replace(r"\$", "$")


def by_epoch(ax: Any, unit: str, title: str, steps: str = "epoch") -> None:
    """Name axes over epochs, or other steps, which are whole numbers."""
    ax.set(xlabel=steps, ylabel=unit, title=title)
    ax.xaxis.get_major_locator().set_params(integer=True)


def titled(title: str, of: str) -> str:
    """A title, and below it what is drawn; nothing if that is all of the model."""
    return "\n".join([title, *(textwrap.wrap(f"of {of}", _TITLE) if of else [])])


def of_network(history: Any) -> str:
    """The network of a model and its weight, for titles; empty if it is all of the model."""
    words = history.network_in_words
    return f"the {history.network} with {words}" if words else ""


def _grid(figure: Any, count: int, size: tuple[float, float] = _PANEL) -> Any:
    columns = min(count, _ROW)
    rows = -(-count // columns)
    figure.set_size_inches(size[0] * columns, size[1] * rows)
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for spare in grid[count:]:
        spare.remove()
    return grid[:count]


def _matplotlib(module: str) -> Any:
    return require(f"matplotlib.{module}", extra="plots", what="boostbp.plots")
