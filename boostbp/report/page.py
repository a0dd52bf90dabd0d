"""A comparison as one HTML file: styles, scripts and pictures inside, nothing from the network.

Pictures are in groups, with words for those who do not see them.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from boostbp import plots
from boostbp.atomic_write import atomic_write, check_writable
from boostbp.extras import require
from boostbp.inspection import health_of
from boostbp.plots.axes import as_read, by_epoch, figure, of_network
from boostbp.plots.epochs import PANELS, panel
from boostbp.report.result import Evidence, Result
from boostbp.report.table import SCORES, columns
from boostbp.versions import versions


@dataclass(frozen=True, slots=True)
class Study:
    """A comparison on one data set."""

    name: str  # of the data set
    facts: str  # task and size, in words
    results: Sequence[Result]  # with evidence where there are to be pictures


def check(path: Path) -> None:
    """Find out before a long comparison whether its report can be written.

    Raises ImportError if a package of the extra ``report`` is not installed, and OSError if there is no such folder, or
    no file can be written there.
    """
    for package in ("jinja2", "matplotlib"):
        require(package, extra="report", what="an HTML report")
    check_writable(path)


def write(path: Path, studies: Sequence[Study], settings: Mapping[str, str]) -> None:
    """Write a report, atomically; `settings` is what the comparison was told, for people."""
    jinja2 = require("jinja2", extra="report", what="an HTML report")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("boostbp.report", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    page = environment.get_template("report.html").render(
        studies=[(study, columns(study.results), groups(study.results)) for study in studies],
        settings=settings,
        machine=versions(),
        now=datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
    )
    with atomic_write(path) as part:
        part.write_text(page, encoding="utf-8")


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


class Key(NamedTuple):
    """What a colour of pictures stands for, in both themes, and whether the line is dashed."""

    label: str
    light: str
    dark: str
    dashed: bool


class Picture(NamedTuple):
    """A picture in two themes, as data URIs, its title, what it shows in words, and the key to its colours."""

    light: str
    dark: str
    width: int
    height: int
    title: str
    alt: str
    keys: tuple[Key, ...]


def picture(draw: Callable[[Any], object], alt: str) -> Picture:
    """Draw once for each theme, on axes of its own; the page has title and legend, which would squeeze them."""
    matplotlib = require("matplotlib", extra="report", what="an HTML report")
    uris, legends = [], []
    for theme in (_LIGHT, _DARK):
        with matplotlib.rc_context(_theme(*theme)):
            made, (ax,) = figure(size=_SIZE)
            draw(ax)
            title, legend = ax.get_title(), ax.get_legend()
            ax.set_title("")
            if legend is not None:
                legend.remove()
            drawn = zip(*ax.get_legend_handles_labels(), strict=True) if legend is not None else ()
            legends.append([(label, _colour(handle), _dashed(handle)) for handle, label in drawn])
            buffer = io.BytesIO()
            made.savefig(buffer, format="svg", metadata={"Date": None})
        uris.append("data:image/svg+xml;base64," + base64.b64encode(buffer.getvalue()).decode("ascii"))
    width, height = made.get_size_inches() * 72.0  # points, the unit of the SVG
    keys = tuple(
        Key(as_read(label), light, dark, dashed) for (label, light, dashed), (_, dark, _) in zip(*legends, strict=True)
    )
    return Picture(uris[0], uris[1], round(width), round(height), as_read(title), alt, keys)


def _colour(drawn: Any) -> str:
    """Colour of a line or of points in the current theme, as CSS writes it."""
    hexadecimal = require("matplotlib.colors", extra="report", what="an HTML report").to_hex
    colour: str = hexadecimal(drawn.get_color() if hasattr(drawn, "get_color") else drawn.get_facecolor()[0])
    return colour


def _dashed(drawn: Any) -> bool:
    return hasattr(drawn, "get_color") and drawn.get_linestyle() == "--"


class Group(NamedTuple):
    """Pictures that belong together, how to read them, and sentences to heed."""

    title: str
    reading: str
    pictures: list[Picture]
    notes: Sequence[str] = ()

    @property
    def keys(self) -> list[Key]:
        """The legend of all pictures."""
        return list(dict.fromkeys(key for shown in self.pictures for key in shown.keys))


def groups(results: Sequence[Result]) -> list[Group]:
    """What there is to show of a comparison; groups that would be empty are left out."""
    ran = {result.model: result for result in results if result.state == "ran"}
    shown = {model: result.evidence for model, result in ran.items() if result.evidence is not None}
    colours = {model: f"C{number}" for number, model in enumerate(ran)}
    made = [
        _made_of(shown),
        Group("Scores by fold", "A dot is a fold, a line the mean.", _folds(ran, colours)),
        Group(
            "Learning curves",
            "Loss of the validation rows by boosting round, or by epoch of back-propagation; a dot marks what was "
            "kept. Of an average of models it is that of the leading piece, the one with most weight.",
            _curves(shown, colours),
        ),
        *_predictions(shown),
        Group(
            "Hidden representation",
            "Test rows in the last hidden layer as kept, and of one network alone at the start; wider layers by their "
            "principal components.",
            _hidden(shown),
        ),
        _health(shown),
    ]
    return [group for group in made if group.pictures or group.notes]


def _made_of(shown: Mapping[str, Evidence]) -> Group:
    """What the models of boostbp are made of, and what hidden layers added."""
    choices = {model: e.history.choice for model, e in shown.items() if e.history is not None and e.history.choice}
    notes = [f"{model}: {choice.parts_in_words} {choice.depth_in_words}" for model, choice in choices.items()]
    return Group("What the models are made of", "Weights of the parts, chosen by the validation rows.", [], notes)


def _folds(ran: Mapping[str, Result], colours: Mapping[str, str]) -> list[Picture]:
    crossed = {model: result for model, result in ran.items() if result.folds}
    if not crossed:
        return []
    names = [name for name in SCORES if name in next(iter(crossed.values())).scores]
    return [picture(partial(_draw_folds, crossed, colours, name), _folds_in_words(crossed, name)) for name in names]


def _draw_folds(ran: Mapping[str, Result], colours: Mapping[str, str], name: str, ax: Any) -> None:
    for row, (model, result) in enumerate(ran.items()):
        values = [fold[name] for fold in result.folds]
        ax.plot(values, [row] * len(values), "o", color=colours[model], alpha=0.6, markersize=5)
        ax.plot([result.scores[name]] * 2, [row - 0.3, row + 0.3], color=colours[model], label=model)
    ax.set_yticks([])
    ax.invert_yaxis()
    ax.legend()
    better = "more" if SCORES[name].greater_is_better else "less"
    ax.set(xlabel=f"{SCORES[name].heading} ({better} is better)")


def _folds_in_words(ran: Mapping[str, Result], name: str) -> str:
    scores = (f"{model} {result.scores[name]:.4f} ± {result.std(name):.4f}" for model, result in ran.items())
    return f"{SCORES[name].heading} of each fold. Means: {', '.join(scores)}."


def _curves(shown: Mapping[str, Evidence], colours: Mapping[str, str]) -> list[Picture]:
    pictures = []
    for epochs, step in ((True, "epoch of back-propagation"), (False, "boosting round")):
        curves = {model: e.curve for model, e in shown.items() if e.curve is not None and e.curve.epochs == epochs}
        if curves:
            ends = (f"{model} {c.values[0]:.4g} at first, {c.values[c.kept]:.4g} kept" for model, c in curves.items())
            loss = next(iter(curves.values())).loss
            alt = f"Validation {loss} by {step}: {'; '.join(ends)}."
            pictures.append(picture(partial(_draw_curves, curves, colours, step), alt))
    return pictures


def _draw_curves(curves: Mapping[str, Any], colours: Mapping[str, str], step: str, ax: Any) -> None:
    for model, curve in curves.items():
        ax.plot(curve.steps, curve.values, color=colours[model], label=model)
        ax.plot(curve.steps[curve.kept], curve.values[curve.kept], "o", color=colours[model])
    by_epoch(ax, f"validation {curve.loss}", f"By {step}", step)
    ax.legend()


def _predictions(shown: Mapping[str, Evidence]) -> list[Group]:
    if not shown:
        return []
    if next(iter(shown.values())).predicted.ndim == 2:
        reading = "Test rows in groups of the same size; a calibrated model lies on the diagonal."
        alt = f"Observed share against predicted probability for {', '.join(shown)}."
        return [Group("Calibration", reading, [picture(partial(_draw_calibration, shown), alt)])]
    most = max(float(abs(e.observed - e.predicted).max()) for e in shown.values())
    pictures = []
    for number, (model, e) in enumerate(shown.items()):
        median = float(np.median(abs(e.observed - e.predicted)))
        alt = f"Residuals of {model} against its predictions: half of them below {median:.4g}."
        pictures.append(picture(partial(_draw_residuals, e, model, f"C{number}", 1.05 * most), alt))
    return [Group("Residuals", "Observed minus predicted of the test rows, against predicted.", pictures)]


def _draw_calibration(shown: Mapping[str, Evidence], ax: Any) -> None:
    for model, e in shown.items():
        plots.calibration(e.observed, e.predicted, ax, label=model)
    ax.set_title("")


def _draw_residuals(e: Evidence, model: str, colour: str, most: float, ax: Any) -> None:
    plots.residuals(e.observed, e.predicted, ax, label=model, color=colour).set_ylim(-most, most)


def _hidden(shown: Mapping[str, Evidence]) -> list[Picture]:
    pictures = []
    for model, e in shown.items():
        for epoch, H in e.hidden.items():
            title = f"{model}, epoch {epoch}"
            alt = (
                f"{len(H)} test rows in the {H.shape[1]} units of the last hidden layer of {title}, coloured by target."
            )
            y = np.array(e.labels)[e.observed] if e.labels else e.observed
            pictures.append(picture(partial(_draw_hidden, H, y[: len(H)], title), alt))
    return pictures


def _draw_hidden(H: Any, y: Any, title: str, ax: Any) -> None:
    plots.representation(H, y, ax).set_title(title)


def _health(shown: Mapping[str, Evidence]) -> Group:
    histories = {model: e.history for model, e in shown.items() if e.history is not None and e.hidden}
    pictures = [
        picture(partial(_draw_health, histories, name), f"{title} by epoch, {unit}, for {', '.join(histories)}.")
        for name, (title, unit) in PANELS.items()
        if histories
    ]
    notes = [f"{model}: {line}" for model, history in histories.items() for line in health_of(history).warnings]
    networks = (f"{model}: {of_network(history)}" for model, history in histories.items() if of_network(history))
    reading = ". ".join(["Hidden layers by epoch; layer 0 is next to the input", *networks])
    return Group("Layer health", f"{reading}.", pictures, notes)


def _draw_health(histories: Mapping[str, Any], name: str, ax: Any) -> None:
    for model, history in histories.items():
        panel(history, name, ax, label=model)
