"""Pictures: stages of a training in a line of panels, and scores of models by fold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

__all__ = ["dots", "stages"]


def stages(
    axes: Any, found: Sequence[tuple[dict, dict]], names: Iterable[str], epochs: Sequence[int], colour: str
) -> None:
    """A line of panels for each setting: the points of its first seed as they are at some epochs.

    Parameters
    ----------
    axes : (settings, epochs + 1) axes
    found : list of (about, outcome)
        An outcome has ``points``, by epoch, 0 being the input, and ``colours``.
    names : iterable of str
        The settings.
    epochs : sequence of int
    colour : str
        Name of a colour map.
    """
    first = {about["settings"]: outcome for about, outcome in reversed(found) if "points" in outcome}
    for line, name in zip(axes, names, strict=True):
        for ax, epoch in zip(line, (0, *epochs), strict=True):
            ax.set_axis_off()
            ax.set_title(f"epoch {epoch}" if epoch else name, fontsize=9)
            points = first.get(name, {}).get("points", {}).get(str(epoch))
            if points:
                columns = np.transpose(points)
                ax.scatter(*columns, c=first[name]["colours"], s=2, cmap=colour)
                for side, column in zip("xyz", columns, strict=False):
                    # a few far points would leave the others no room
                    low, high = np.quantile(column, [0.01, 0.99])
                    getattr(ax, f"set_{side}lim")(1.2 * low - 0.2 * high, 1.2 * high - 0.2 * low)


def dots(ax: Any, title: str, scores: dict[str, dict[int, float]], paper: float | None = None) -> None:
    """Scores of some models: a dot for each fold, a bar at the mean, a line at the paper's figure."""
    names = list(scores)
    for place, name in enumerate(reversed(names)):
        values = list(scores[name].values())
        ax.plot(values, [place] * len(values), "o", ms=3, alpha=0.5)
        if values:
            ax.plot([np.mean(values)], [place], "k|", ms=14)
    if paper is not None:
        ax.axvline(paper, color="grey", ls=":", lw=1)
    ax.set_yticks(range(len(names)), list(reversed(names)), fontsize=7)
    ax.tick_params(axis="x", labelsize=7)
    ax.set_title(title, fontsize=9)
