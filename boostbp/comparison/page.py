"""A comparison as one HTML file, which contains its styles, scripts and pictures."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boostbp import plots
from boostbp.comparison.measured import Measured
from boostbp.comparison.measures import rarer
from boostbp.comparison.rendering import columns
from boostbp.plots.axes import as_text, figure
from boostbp.runtime.arrays import Floats
from boostbp.runtime.atomic_write import atomic_write, check_writable
from boostbp.runtime.messages import require
from boostbp.runtime.versions import versions

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_TEMPLATES = Path(__file__).with_name("templates")
_BINS, _PLOTTED_ROWS = 10, 1500  # groups of a calibration; points of a picture. Arbitrary
_SIZE = (3.7, 2.9)  # inches, for text of 10 points as large as that of the page


def check_report(path: Path) -> None:
    """Check before a long comparison that its report can be written: ImportError or OSError."""
    for package in ("jinja2", "matplotlib"):
        _require(package)
    check_writable(path)


def _require(package: str) -> ModuleType:
    return require(package, extra="report", what="an HTML report")


def write_report(path: Path, comparisons: Sequence[Measured]) -> None:
    """Write a report of comparisons, atomically."""
    jinja2 = _require("jinja2")
    options = {"trim_blocks": True, "lstrip_blocks": True, "undefined": jinja2.StrictUndefined}
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(_TEMPLATES), autoescape=True, **options)
    page = environment.get_template("report.html").render(
        studies=[(comparison, columns(comparison), groups(comparison)) for comparison in comparisons],
        settings={name: str(value) for name, value in comparisons[0].plan.settings.items()},
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


def groups(comparison: Measured) -> list[PageGroup]:
    """Return the groups of pictures of a comparison that are not empty."""
    colours = {model: f"C{number}" for number, model in enumerate(comparison.ran)}
    return [group for group in (_gains(comparison, colours), _predictions(comparison, colours)) if group.pictures]


def _gains(comparison: Measured, colours: Mapping[str, str]) -> PageGroup:
    judgement = comparison.judgement
    reference, unit = judgement.reference, f"gain in {judgement.unit}"
    reading = f"Above 0, a model is better than {reference}. A bar is an interval, which counts chance."
    group = PageGroup("Gains", f"{reading} By fold, a dot is a fold, and a line the mean.", [])
    if not judgement.differences:
        return group
    told = "; ".join([f"{model} has {judgement.gain_in_words(model)}" for model in judgement.differences])
    with group.picture(f"Gain over {reference} against seconds of a fit: {told}.") as ax:
        for model, scored in judgement.models.items():
            difference = judgement.differences.get(model)
            ends = (0.0, 0.0, 0.0) if difference is None else (difference.mean, difference.low, difference.high)
            mean, low, high = [judgement.shown(end) for end in ends]
            ax.errorbar(
                [scored.seconds], [mean], [[mean - low], [high - mean]], fmt="o", color=colours[model], capsize=3
            )
            ax.plot([], [], "o", color=colours[model], label=as_text(model))
        ax.axhline(0.0, color="gray", linewidth=0.8, zorder=0)
        ax.set(xlim=(0, None), xlabel="seconds of a fit", ylabel=unit, title="Against seconds")
        ax.legend()
    gains = {model: judgement.shown(judgement.gains(reference, model)) for model in judgement.differences}
    won = ", ".join([f"{model} on {np.sum(values > 0)} of {len(values)} folds" for model, values in gains.items()])
    with group.picture(f"Gain over {reference} by fold. Better: {won}.") as ax:
        for row, (model, values) in enumerate(gains.items()):
            ax.plot(values, [row] * len(values), "o", color=colours[model], alpha=0.6, markersize=5)
            ax.plot([values.mean()] * 2, [row - 0.3, row + 0.3], color=colours[model], label=as_text(model))
        ax.axvline(0.0, color="gray", linewidth=0.8, zorder=0)
        ax.set_yticks([])
        ax.invert_yaxis()
        ax.legend()
        ax.set(xlabel=unit, title="By fold")
    return group


def _predictions(comparison: Measured, colours: Mapping[str, str]) -> PageGroup:
    data, predicted = comparison.plan.data, comparison.predicted
    observed = data.y[comparison.predicted_rows]
    if data.task == "classification":
        return _calibration(observed, predicted, data.classes)
    group = PageGroup("Residuals", "Observed minus predicted of rows that the model did not learn from.", [])
    if data.task != "regression":
        return group
    errors = {model: abs(observed - values) for model, values in predicted.items()}
    limit = 1.05 * max(float(error.max()) for error in errors.values())
    for model, values in predicted.items():
        middle = f"half of them below {np.median(errors[model]):.4g}"
        with group.picture(f"Residuals of {model} against its predictions: {middle}.") as ax:
            rows = np.linspace(0, len(values) - 1, min(len(values), _PLOTTED_ROWS)).astype(int)
            plots.residuals(observed[rows], values[rows], ax, label=as_text(model), color=colours[model])
            ax.set_ylim(-limit, limit)
    return group


def _calibration(observed: NDArray[Any], predicted: Mapping[str, Floats], classes: NDArray[Any]) -> PageGroup:
    """Return observed shares against probabilities; axes end at the largest one, as that of a rare class is small."""
    of_class = "of the likeliest class"
    if len(classes) == 2:  # the rarer one is of interest
        rare = rarer(observed)
        of_class = f"of class {str(classes[rare])!r}"
        observed = (observed == rare).astype(int)
        predicted = {model: values[:, [1 - rare, rare]] for model, values in predicted.items()}
    size = f"{_BINS} groups of {len(observed) // _BINS} rows by probability"
    reading = f"Probabilities {of_class}, in {size}; a calibrated model lies on the diagonal."
    group = PageGroup("Calibration", reading, [])
    with group.picture(f"Observed share against predicted probability {of_class} for {', '.join(predicted)}.") as ax:
        for model, values in predicted.items():
            plots.calibration(observed, values, ax, bins=_BINS, label=as_text(model))
        end = max([float(np.max(values)) for line in ax.lines[1:] for values in line.get_data()])
        ax.set(
            title="", xlabel=f"predicted probability {as_text(of_class)}", xlim=(0, 1.05 * end), ylim=(0, 1.05 * end)
        )
    return group
