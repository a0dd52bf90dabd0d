"""A comparison as one HTML file, which contains its styles, scripts and pictures."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from boostbp import plots
from boostbp.cli.report.result import SCORES, Evidence, Result, columns
from boostbp.model.health import health_of
from boostbp.plots.axes import by_epoch, figure, of_network
from boostbp.plots.epochs import PANELS, panel
from boostbp.runtime.atomic_write import atomic_write, check_writable
from boostbp.runtime.messages import require
from boostbp.runtime.versions import versions

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TEMPLATES = Path(__file__).with_name("templates")
_SIZE = (3.7, 2.9)  # inches, for text of 10 points as large as that of the page


@dataclass(frozen=True, slots=True)
class Study:
    """A comparison on one data set."""

    name: str  # name of the data set
    facts: str  # task and size, in words
    results: Sequence[Result]  # with evidence for pictures


def check_report(path: Path) -> None:
    """Check before a long comparison that its report can be written: ImportError or OSError."""
    for package in ("jinja2", "matplotlib"):
        _require(package)
    check_writable(path)


def _require(package: str) -> ModuleType:
    return require(package, extra="report", what="an HTML report")


def write_report(path: Path, studies: Sequence[Study], settings: Mapping[str, str]) -> None:
    """Write a report, atomically; the page lists the `settings` of the comparison."""
    jinja2 = _require("jinja2")
    options = {"trim_blocks": True, "lstrip_blocks": True, "undefined": jinja2.StrictUndefined}
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(_TEMPLATES), autoescape=True, **options)
    page = environment.get_template("report.html").render(
        studies=[(study, columns(study.results), groups(study.results)) for study in studies],
        settings=settings,
        machine=versions(),
        now=datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
    )
    with atomic_write(path) as part:
        part.write_text(page, encoding="utf-8")


class Key(NamedTuple):
    """An entry of a legend: its colour, and whether the line is dashed."""

    label: str
    colour: str
    dashed: bool


class Picture(NamedTuple):
    """A picture as a data URI, with its title, alternative text and legend."""

    uri: str
    width: int
    height: int
    title: str
    alt: str
    keys: Sequence[Key]


class PageGroup(NamedTuple):
    """A group of pictures, with an explanation and notes."""

    title: str
    reading: str
    pictures: list[Picture]
    notes: Sequence[str] = ()

    @property
    def keys(self) -> list[Key]:
        """The legend of all pictures."""
        return list(dict.fromkeys(key for shown in self.pictures for key in shown.keys))

    @contextmanager
    def picture(self, alt: str) -> Iterator[Axes]:
        """Yield axes and add their picture; title and legend are on the page, as they would take its space."""
        with _require("matplotlib.style").context(_TEMPLATES / "report.mplstyle"):
            drawing, (ax,) = figure(size=_SIZE)
            yield ax
            title, legend, keys = ax.get_title().replace(r"\$", "$"), ax.get_legend(), []
            ax.set_title("")
            if legend is not None:
                legend.remove()
                for drawn, label in zip(*ax.get_legend_handles_labels(), strict=True):
                    colour = drawn.get_color() if hasattr(drawn, "get_color") else drawn.get_facecolor()[0]
                    colour = _require("matplotlib.colors").to_hex(colour)
                    keys.append(Key(label.replace(r"\$", "$"), colour, drawn.get_linestyle() == "--"))
            buffer = io.BytesIO()
            drawing.savefig(buffer, format="svg", metadata={"Date": None})
        uri = "data:image/svg+xml;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
        width, height = drawing.get_size_inches() * 72.0  # points, the unit of the SVG
        self.pictures.append(Picture(uri, round(width), round(height), title, alt, keys))


def groups(results: Sequence[Result]) -> list[PageGroup]:
    """Return the groups of pictures and notes of a comparison that are not empty."""
    ran = {result.model: result for result in results if result.state == "ran"}
    evidence = {model: result.evidence for model, result in ran.items() if result.evidence is not None}
    colours = {model: f"C{number}" for number, model in enumerate(ran)}
    candidates = [_parts_of_models(evidence), _folds(ran, colours), _curves(evidence, colours)]
    candidates += [_predictions(evidence), _hidden(evidence), _health(evidence)]
    return [group for group in candidates if group.pictures or group.notes]


def _parts_of_models(evidence: Mapping[str, Evidence]) -> PageGroup:
    """Return the parts of each model of boostbp, and the gain from hidden layers."""
    choices = {model: e.history.choice for model, e in evidence.items() if e.history is not None and e.history.choice}
    notes = [f"{model}: {choice.parts_in_words} {choice.depth_in_words}" for model, choice in choices.items()]
    return PageGroup("What the models are made of", "Weights of the parts, chosen by the validation rows.", [], notes)


def _folds(ran: Mapping[str, Result], colours: Mapping[str, str]) -> PageGroup:
    group = PageGroup("Scores by fold", "A dot is a fold, a line the mean.", [])
    crossed = {model: result for model, result in ran.items() if result.folds}
    for name, score in SCORES.items():
        if not any(name in result.scores for result in crossed.values()):
            continue
        means = ", ".join(f"{model} {result.score_text(name)}" for model, result in crossed.items())
        with group.picture(f"{score.heading} of each fold. Means: {means}.") as ax:
            for row, (model, result) in enumerate(crossed.items()):
                values = [fold[name] for fold in result.folds]
                ax.plot(values, [row] * len(values), "o", color=colours[model], alpha=0.6, markersize=5)
                ax.plot([result.scores[name]] * 2, [row - 0.3, row + 0.3], color=colours[model], label=model)
            ax.set_yticks([])
            ax.invert_yaxis()
            ax.legend()
            ax.set(xlabel=f"{score.heading} ({'more' if score.greater_is_better else 'less'} is better)")
    return group


def _curves(evidence: Mapping[str, Evidence], colours: Mapping[str, str]) -> PageGroup:
    group = PageGroup(
        "Learning curves",
        "Loss of the validation rows by boosting round, or by epoch of back-propagation; a dot marks the kept one. An "
        "average of models shows its leading part, the one with most weight.",
        [],
    )
    for epochs, step in ((True, "epoch of back-propagation"), (False, "boosting round")):
        curves = {model: e.curve for model, e in evidence.items() if e.curve is not None and e.curve.epochs == epochs}
        if not curves:
            continue
        ends = (f"{model} {c.values[0]:.4g} at first, {c.values[c.kept]:.4g} kept" for model, c in curves.items())
        loss = next(iter(curves.values())).loss
        with group.picture(f"Validation {loss} by {step}: {'; '.join(ends)}.") as ax:
            for model, curve in curves.items():
                ax.plot(curve.steps, curve.values, color=colours[model], label=model)
                ax.plot(curve.steps[curve.kept], curve.values[curve.kept], "o", color=colours[model])
            by_epoch(ax, f"validation {loss}", f"By {step}", step)
            ax.legend()
    return group


def _predictions(evidence: Mapping[str, Evidence]) -> PageGroup:
    if any(e.labels for e in evidence.values()):
        reading = "Test rows in groups of the same size; a calibrated model lies on the diagonal."
        group = PageGroup("Calibration", reading, [])
        with group.picture(f"Observed share against predicted probability for {', '.join(evidence)}.") as ax:
            for model, e in evidence.items():
                plots.calibration(e.observed, e.predicted, ax, label=model)
            ax.set_title("")
        return group
    group = PageGroup("Residuals", "Observed minus predicted of the test rows, against predicted.", [])
    errors = {model: abs(e.observed - e.predicted) for model, e in evidence.items()}
    for number, (model, e) in enumerate(evidence.items()):
        middle = np.median(errors[model])
        with group.picture(f"Residuals of {model} against its predictions: half of them below {middle:.4g}.") as ax:
            plots.residuals(e.observed, e.predicted, ax, label=model, color=f"C{number}")
            limit = 1.05 * max(float(error.max()) for error in errors.values())
            ax.set_ylim(-limit, limit)
    return group


def _hidden(evidence: Mapping[str, Evidence]) -> PageGroup:
    group = PageGroup(
        "Hidden representation",
        "Test rows in the last hidden layer as kept, and of one network alone at the start; wider layers by their "
        "principal components.",
        [],
    )
    for model, e in evidence.items():
        y = np.array(e.labels)[e.observed] if e.labels else e.observed
        for epoch, H in e.hidden.items():
            title, size = f"{model}, epoch {epoch}", f"{len(H)} test rows in the {H.shape[1]} units"
            with group.picture(f"{size} of the last hidden layer of {title}, coloured by target.") as ax:
                plots.representation(H, y[: len(H)], ax).set_title(title)
    return group


def _health(evidence: Mapping[str, Evidence]) -> PageGroup:
    histories = {model: e.history for model, e in evidence.items() if e.history is not None and e.hidden}
    networks = (f"{model}: {of_network(history)}" for model, history in histories.items() if of_network(history))
    reading = ". ".join(["Hidden layers by epoch; layer 0 is next to the input", *networks])
    notes = [f"{model}: {line}" for model, history in histories.items() for line in health_of(history).warnings]
    group = PageGroup("Layer health", f"{reading}.", [], notes)
    for name, (title, unit) in PANELS.items() if histories else ():
        with group.picture(f"{title} by epoch, {unit}, for {', '.join(histories)}.") as ax:
            for model, history in histories.items():
                panel(history, name, ax, label=model)
    return group
