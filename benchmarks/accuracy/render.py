"""The findings as a page of Markdown and as a picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.accuracy.data import SETS
from benchmarks.accuracy.plan import CONTROLS, DEEP, MODELS
from benchmarks.accuracy.summary import RIVALS, SHALLOW, Line, Scores, difference, overall, standard_error

__all__ = ["markdown", "picture", "table"]

LEGEND = """\
Scores are of test rows: RMSE over the standard deviation of the target, or log-loss; less is better. After ± the
standard error over folds. Deep models: `boostbp` and `boostbp-xgboost` are one fit with the default settings on either
library, `boostbp-tuned` is a search like that of the rivals, but of candidates with a limit of time, as that of
`gbdt-nn`. Rivals are searched with the number of trials above, the first with their defaults, and for at least the
seconds of the default deep models on that fold. `average` is a mean of LightGBM models with at least as many trees as
the deep model, but no more than 20 of them. Controls: `linear-hidden` is the deep model with a ridge regression for a
hidden layer, `before` the deep model before any back-propagation, both searched. A model is taken as validation chose
it, as it was trained, without refitting. Differences are to the rival with the best mean of test scores, which is
harder than to the one that validation would choose, on the folds that all rivals finished. Chance alone wins or loses
by more than a standard error two times in five over three folds, every other time over two.
"""


def markdown(found: Scores, about: str) -> str:
    """The tables: differences to the best rival, all scores, seconds, models over all sets."""
    parts = [f"# Accuracy\n\n{about}\n", LEGEND, "## Deep models against the best rival\n"]
    parts += [_differences(found, name) for name in DEEP if any(name in of_set for of_set in found.values())]
    parts += ["## All scores\n", _scores(found), "## Error rates\n", _scores(found, "error")]
    parts += ["## Seconds of all trials together\n", _seconds(found)]
    parts += ["## Over all sets\n", *(_overall(found, name) for name in _models(found) if name in DEEP)]
    return "\n".join(parts)


def picture(found: Scores, path: Path) -> None:
    """Score of deep models and controls over the score of the best rival, set by set."""
    from boostbp.runtime.messages import require

    figure_of = require("matplotlib.figure", extra="plots", what="the picture")
    sets, rivals = [name for name in SETS if name in found], _rivals(found)
    shown = (*DEEP, *CONTROLS)
    figure = figure_of.Figure(figsize=(8, 1.2 + 0.28 * len(sets)), layout="constrained")
    ax = figure.add_subplot()
    for k, model in enumerate(shown):
        points = [
            (gap.relative, row)
            for row, name in enumerate(sets)
            if (gap := difference(found[name], model, rivals)) and np.isfinite(gap.relative)
        ]
        if points:
            ax.scatter(*zip(*points, strict=True), label=model, marker="osD^v<>"[k], s=34, alpha=0.8)
    ax.axvline(1.0, color="black", linewidth=0.8)
    ax.set_xscale("log")
    ticks = (0.25, 0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0)
    low, high = ax.get_xlim()
    ax.set_xticks([tick for tick in ticks if low <= tick <= high], minor=False)
    ax.xaxis.set_major_formatter("{x:g}")
    ax.set_xticks([], minor=True)
    ax.set_yticks(range(len(sets)), sets)
    ax.set_ylim(len(sets) - 0.5, -0.5)
    ax.set_xlabel("RMSE or log-loss over that of the best rival (left is better)")
    if ax.get_legend_handles_labels()[0]:
        ax.legend(fontsize="small")
    figure.savefig(path, dpi=120)


def _differences(found: Scores, name: str) -> str:
    rows, verdicts, relative = [], Counter[str](), []
    models, rivals = _models(found), _rivals(found)
    shallow = [rival for rival in rivals if rival in SHALLOW]
    against = [[control] if control in models else [] for control in ("average", *CONTROLS[1:])]
    for key in (key for key in SETS if key in found):
        gap = difference(found[key], name, shallow)
        if gap is None:
            continue
        verdicts[gap.verdict] += 1
        relative.append(gap.relative)
        others = [difference(found[key], name, each) for each in (rivals, *against)]
        ratios = [f"{each.relative:.3f}" if each else "" for each in others]
        score = _mean(found[key][name])
        gaps = [_pm(gap.mean, gap.error, "+.4f"), f"{gap.relative:.3f}", gap.verdict]
        rows.append([key, SETS[key].group, score, gap.rival, *gaps, *ratios])
    if not rows:
        return ""
    heads = ["set", "group", name, "best single layer", "difference", "ratio", "", "/ best rival of all"]
    heads += ["/ average", "/ linear-hidden", "/ before"]
    counts = ", ".join(f"{verdict} {number}" for verdict, number in sorted(verdicts.items()))
    total = f"{counts} of {len(rows)} sets; worst ratio "
    return table(heads, rows) + f"\n{total}{max(relative):.3f}, median {np.median(relative):.3f}.\n"


def _scores(found: Scores, what: str = "score") -> str:
    models = _models(found)
    rows = []
    for key in (key for key in SETS if key in found):
        cells = [_mean(found[key].get(model, {}), what) for model in models]
        if any(cells):
            rows.append([key, *cells])
    return table(["set", *models], rows)


def _seconds(found: Scores) -> str:
    models = _models(found)
    rows = []
    for key in (key for key in SETS if key in found):
        lines = [list(found[key].get(model, {}).values()) for model in models]
        rows.append([key, *(f"{np.mean([line['seconds'] for line in each]):.1f}" if each else "" for each in lines)])
    return table(["set", *models], rows)


def _overall(found: Scores, name: str) -> str:
    """One deep model among the rivals: others of ours are too much alike to be ranked beside it."""
    ranked = sorted(overall(found, [name, *_rivals(found)]).items(), key=lambda item: item[1].rank)
    rows = [[name, f"{of.rank:.2f}", f"{of.share_best:.2f}", f"{of.worst:.3f}"] for name, of in ranked]
    sets = ranked[0][1].sets if ranked else 0
    heads = ["model", "mean rank", "share best", "worst ratio to the best"]
    return f"Over the {sets} sets on which all models finished.\n\n" + table(heads, rows)


def _rivals(found: Scores) -> list[str]:
    return [model for model in _models(found) if model in RIVALS]


def _models(found: Scores) -> list[str]:
    return [model for model in MODELS if any(model in of_set for of_set in found.values())]


def _mean(folds: Mapping[int, Line], what: str = "score") -> str:
    values = [line[what] for line in folds.values() if line[what] is not None]
    return _pm(float(np.mean(values)), standard_error(values), ".4f") if values else ""


def _pm(value: float, error: float, how: str) -> str:
    return f"{value:{how}}" + (f" ± {error:.4f}" if np.isfinite(error) else "")


def table(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines) + "\n"
