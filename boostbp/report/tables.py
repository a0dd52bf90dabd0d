"""A comparison as a table in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from boostbp.report.compare import Result

__all__ = ["SCORES", "table"]

# Score -> heading, digits, and whether more is better.
SCORES = {
    "accuracy": ("accuracy", 4, True),
    "log_loss": ("log-loss", 4, False),
    "r2": ("R2", 4, True),
    "rmse": ("RMSE", 4, False),
}


def table(results: Sequence[Result], title: str) -> Table:
    """Render a comparison, with the best of each score in bold.

    Parameters
    ----------
    results : sequence of Result
    title : str
    """
    scores = [name for name in SCORES if any(name in result.scores for result in results)]
    best = {name: _best(results, name) for name in scores}
    rendered = Table(title=title, title_justify="left")
    rendered.add_column("model", no_wrap=True)
    for name in scores:
        rendered.add_column(SCORES[name][0], justify="right")
    for heading in ("fit s", "predict s", "peak MB", "length"):
        rendered.add_column(heading, justify="right")
    for result in results:
        rendered.add_row(result.model, *(_score(result, name, best[name]) for name in scores), *_costs(result))
    return rendered


def _best(results: Sequence[Result], name: str) -> float:
    values = [result.scores[name] for result in results if name in result.scores]
    return max(values) if SCORES[name][2] else min(values)


def _score(result: Result, name: str, best: float) -> Text:
    if name not in result.scores:
        return Text(result.state, style="dim")
    value, digits = result.scores[name], SCORES[name][1]
    return Text(f"{value:.{digits}f}", style="bold" if value == best else "")


def _costs(result: Result) -> list[str]:
    return [
        "" if result.fit_seconds is None else f"{result.fit_seconds:.2f}",
        "" if result.predict_seconds is None else f"{result.predict_seconds:.4f}",
        "" if result.peak_bytes is None else f"{result.peak_bytes / 1e6:.0f}",
        "" if result.length is None else str(result.length),
    ]
