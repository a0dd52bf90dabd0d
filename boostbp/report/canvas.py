"""Canvas: a picture drawn for light and for dark pages, as text that fits into a page."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from boostbp.extras import require
from boostbp.plots.axes import figure

_SIZE = (3.7, 2.9)  # inches: letters of 10 points are as large as those around the picture
_SHARED: dict[str, Any] = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": "medium",
    "axes.titleweight": "bold",
    "font.size": 10.0,
    "legend.fontsize": "small",
    "legend.framealpha": 0.8,
    "lines.linewidth": 1.6,
    "savefig.dpi": 144,
    "savefig.transparent": True,
    "svg.fonttype": "none",  # letters stay letters: small, and sharp at any size
    "svg.hashsalt": "boostbp",  # the same picture gives the same bytes
}


def _theme(ink: str, paper: str, grid: str, colours: Sequence[str]) -> dict[str, Any]:
    inked = ("text.color", "axes.labelcolor", "axes.edgecolor", "axes.titlecolor", "xtick.color", "ytick.color")
    return {
        **_SHARED,
        **dict.fromkeys(inked, ink),
        "axes.facecolor": paper,
        "legend.facecolor": paper,
        "legend.edgecolor": grid,
        "grid.color": grid,
        "axes.prop_cycle": f"cycler('color', {colours})",
    }


_LIGHT = (
    "#1b2430",
    "#ffffff",
    "#e3e7ec",
    ("#1769c2", "#d1580a", "#19805a", "#8b46b5", "#a87a00", "#c0305d", "#4d6370", "#0f8b8d", "#7a4b2a", "#858500"),
)
_DARK = (
    "#e4e9ef",
    "#171c23",
    "#303944",
    ("#6db3ff", "#ff9d57", "#56cc9d", "#cf9bf2", "#e6c04d", "#ff86a8", "#a5bac7", "#5fd3d5", "#c79a78", "#cfd06a"),
)


class Picture(NamedTuple):
    """A picture in two themes, as data URIs, and what it shows in words."""

    light: str
    dark: str
    width: int
    height: int
    alt: str


def picture(draw: Callable[[Any], object], alt: str) -> Picture:
    """Draw once for each theme, on axes of its own."""
    matplotlib = require("matplotlib", extra="report", what="an HTML report")
    uris = []
    for theme in (_LIGHT, _DARK):
        with matplotlib.rc_context(_theme(*theme)):
            made, (ax,) = figure(size=_SIZE)
            draw(ax)
            buffer = io.BytesIO()
            made.savefig(buffer, format="svg", metadata={"Date": None})
        uris.append("data:image/svg+xml;base64," + base64.b64encode(buffer.getvalue()).decode("ascii"))
    width, height = made.get_size_inches() * 72.0  # points, the unit of the SVG
    return Picture(uris[0], uris[1], round(width), round(height), alt)
