"""The findings as a page of Markdown and as a figure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.accuracy.render import table
from benchmarks.frontier.models import LADDERS, MODELS, REFERENCE, times_of
from benchmarks.frontier.plan import GROUPS, LOOKED_AT, group_of
from benchmarks.frontier.summary import Found, OfModel, overall

__all__ = ["figure", "markdown"]

LEGEND = """\
Every model has its default settings and one thread, learns from all rows of the training part and makes its own
validation split. Errors are of test rows: RMSE over the standard deviation of the target, or log-loss. Error and
seconds (of `fit` alone, after imports) are over those of **LightGBM**: its default settings (31 leaves, rate
.1), at most 4,000 rounds, stopped after 50 without gain on a tenth of the rows (at least 50), trained just before each
other model. On a set it is the ratio of the means over folds, over sets the geometric mean; standard errors are over
sets and in per cent, a set is won with less error than LightGBM. Ranks are among the models that finished at least
half of the sets, on the sets that all of them finished; a log-loss below one over the number of test rows counts as
that. XGBoost and `linear_tree` stop early as LightGBM does, all else as its authors have it; RealMLP and xRFM choose
by the log-loss where there are classes, as their guide says.
"""
Sizes = Mapping[int, Found]
_MARKERS = "sD^v<>pPX*hHd"


def markdown(sizes: Sizes, about: str, left_out: Iterable[Mapping[str, Any]] = ()) -> str:
    """The tables of each size: models over groups of sets, then set by set, and what could not be run."""
    parts = [f"# Error against seconds\n\n{about}\n", LEGEND]
    for size, found in sizes.items():
        parts.append(f"## At most {size:,} rows to learn from\n")
        groups = _groups(found)
        every = {"all sets": [each for sets in groups.values() for each in sets]} if len(groups) > 1 else {}
        for name, sets in (every | groups).items():
            parts += [f"### {name.capitalize()} ({len(sets)})\n", _models(overall(found, sets))]
        parts += ["### Set by set: error over LightGBM's\n", _sets(found, groups, "error")]
        parts += ["### Set by set: seconds over LightGBM's\n", _sets(found, groups, "seconds")]
    reasons = Counter((line["model"], line["state"], line["reason"]) for line in left_out)
    if reasons:
        parts.append("## Not run\n")
        parts.append("\n".join(f"- {model}, {n} cells {state}: {why}" for (model, state, why), n in reasons.items()))
    return "\n".join(parts).rstrip() + "\n"


# Where pages are dark, light and dark change places in a picture, and hues stay.
DARK = "<style>@media (prefers-color-scheme: dark) { svg { filter: invert(1) hue-rotate(180deg) } }</style>"


def figure(sizes: Sizes, path: Path) -> None:
    """Error against seconds, both over LightGBM's: a row of panels for each size, a panel for each group of sets."""
    from boostbp.runtime.messages import require

    figure_of = require("matplotlib.figure", extra="plots", what="the figure")
    groups = [group for group in GROUPS if any(group in _groups(found) for found in sizes.values())]
    rows, columns = max(len(sizes), 1), max(len(groups), 1)
    shown = figure_of.Figure(figsize=(max(3.2 * columns, 5.5), 2.9 * rows + 1.1), layout="constrained")
    axes = shown.subplots(rows, columns, squeeze=False)
    handles: dict[str, Any] = {}
    for row, (size, found) in enumerate(sizes.items()):
        for column, group in enumerate(groups):
            sets = _groups(found).get(group, [])
            ax = axes[row, column]
            ax.set_title(f"{group}: {len(sets)} sets, at most {size:,} rows", fontsize=8)
            _panel(ax, {name: each for name, each in overall(found, sets).items() if 2 * each.sets >= len(sets)})
            handles |= dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    if handles:
        ncols = 2 if columns == 1 else 4
        shown.legend(handles.values(), handles, loc="outside lower center", ncols=ncols, fontsize=8, frameon=False)
    shown.savefig(path, dpi=110)
    if path.suffix == ".svg":
        path.write_text(path.read_text("utf-8").replace("<defs>", f"{DARK}\n <defs>", 1), "utf-8")


def _panel(ax: Any, models: Mapping[str, OfModel]) -> None:
    """One panel: ladders and models with a limit of time are lines, the others points."""
    limited = tuple(sorted((name for name in models if times_of(name)), key=_order))
    lines = {**LADDERS, "boostbp with max_time": limited}
    for k, (label, names) in enumerate(lines.items()):
        there = [name for name in names if name in models]
        x, y = ([getattr(models[name], what) for name in there] for what in ("seconds", "error"))
        if there:
            ax.plot(x, y, "--" if names is limited else "-", marker="o", markersize=4, color=f"C{k}", label=label)
        for name, *at in zip(there, x, y, strict=True):
            step = f"{times_of(name):g}x" if names is limited else name.removesuffix("-xgboost")[-1]
            ax.annotate(step, at, xytext=(2, 3), textcoords="offset points", fontsize=6, color=f"C{k}")
    points = [name for name in models if not any(name in names for names in lines.values())]
    for name in sorted(points, key=_order):
        color = "black" if name == REFERENCE else f"C{4 + _order(name) % 6}"
        label = "boostbp, defaults" if name == "boostbp" else name
        ax.plot(models[name].seconds, models[name].error, _MARKERS[_order(name) % 13], color=color, label=label)
    ax.axhline(1.0, color="grey", linewidth=0.6, zorder=0)
    ax.set_xscale("log")
    ax.set_yscale("log")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter("{x:g}")
        axis.set_tick_params(which="both", labelsize=7)
    ax.xaxis.set_minor_formatter("")
    ax.yaxis.set_minor_formatter("{x:g}")
    ax.set_xlabel("seconds over LightGBM's", fontsize=8)
    ax.set_ylabel("error over LightGBM's", fontsize=8)


def _models(models: Mapping[str, OfModel]) -> str:
    rows = [
        [
            name,
            of.sets,
            _pm(of.error, of.error_error, ".3f"),
            _pm(of.seconds, of.seconds_error, ".3g"),
            "" if name == REFERENCE else f"{of.won:.0%}",
            "" if of.rank is None else f"{of.rank:.1f}",
        ]
        for name, of in models.items()
    ]
    return table(["model", "sets", "error", "seconds", "sets won", "mean rank"], rows)


def _sets(found: Found, groups: Mapping[str, Sequence[str]], what: str) -> str:
    models = [name for name in sorted(found, key=_order) if name != REFERENCE]
    rows = []
    for group, sets in groups.items():
        for name in sets:
            first = next(of[name] for of in found.values() if name in of)
            ratios = [f"{getattr(found[model][name], what):.3g}" if name in found[model] else "" for model in models]
            looked_at = "yes" if name in LOOKED_AT else "no"
            rows.append([name, group, looked_at, first.rows, first.folds, f"{first.reference:.4f}", *ratios])
    heads = ["set", "group", "looked at when defaults were chosen", "rows", "folds", "LightGBM's error"]
    return table([*heads, *models], rows)


def _groups(found: Found) -> dict[str, list[str]]:
    """Sets that any model finished, by group."""
    there = dict.fromkeys(name for of_model in found.values() for name in of_model)
    groups = {group: [name for name in there if group_of(name) == group] for group in GROUPS}
    return {group: sets for group, sets in groups.items() if sets}


def _order(name: str) -> int:
    """Place of a model among its like; those with limits of time come last."""
    return MODELS.index(name) if name in MODELS else len(MODELS) + int(10 * (times_of(name) or 0))


def _pm(value: float, error: float, how: str) -> str:
    return f"{value:{how}}" + (f" ± {100 * error:.0f} %" if np.isfinite(error) else "")
