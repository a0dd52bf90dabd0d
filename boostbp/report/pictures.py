"""Pictures of a comparison, in groups, with words for those who do not see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from boostbp import plots
from boostbp.inspection import health_of
from boostbp.network.history import NETWORK, weight_in_words
from boostbp.plots.axes import by_epoch
from boostbp.plots.epochs import PANELS, panel
from boostbp.report.canvas import Picture, picture
from boostbp.report.evidence import Evidence
from boostbp.report.result import Result
from boostbp.report.table import SCORES


class Group(NamedTuple):
    """Pictures that belong together, how to read them, and sentences to heed."""

    title: str
    reading: str
    pictures: list[Picture]
    notes: Sequence[str] = ()


def groups(results: Sequence[Result]) -> list[Group]:
    """All pictures of a comparison; groups that would be empty are left out."""
    ran = {result.model: result for result in results if result.state == "ran"}
    shown = {model: result.evidence for model, result in ran.items() if result.evidence is not None}
    colours = {model: f"C{number}" for number, model in enumerate(ran)}
    made = [
        Group("Scores by fold", "A dot is a fold, a line the mean.", _folds(ran, colours)),
        Group(
            "Learning curves",
            "Loss of the validation rows; a dot marks what was kept. Epoch 0 is the stack before back-propagation.",
            _curves(shown, colours),
        ),
        *_predictions(shown),
        Group(
            "Hidden representation",
            "Test rows in the last hidden layer, at the start and as kept; wider layers by their principal components.",
            _hidden(shown),
        ),
        _health(shown),
    ]
    return [group for group in made if group.pictures]


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
        ax.plot([result.scores[name]] * 2, [row - 0.3, row + 0.3], color=colours[model])
    ax.set_yticks(range(len(ran)), list(ran))
    ax.invert_yaxis()
    ax.grid(axis="y", visible=False)
    better = "more" if SCORES[name].greater_is_better else "less"
    ax.set(xlabel=f"{SCORES[name].heading} ({better} is better)")


def _folds_in_words(ran: Mapping[str, Result], name: str) -> str:
    scores = (f"{model} {result.scores[name]:.4f} ± {result.std(name):.4f}" for model, result in ran.items())
    return f"{SCORES[name].heading} of each fold. Means: {', '.join(scores)}."


def _curves(shown: Mapping[str, Evidence], colours: Mapping[str, str]) -> list[Picture]:
    pictures = []
    for epochs, who in ((True, "deep models"), (False, "single layers")):
        curves = {model: e.curve for model, e in shown.items() if e.curve is not None and e.curve.epochs == epochs}
        if curves:
            ends = (f"{model} {c.values[0]:.4g} at first, {c.values[c.kept]:.4g} kept" for model, c in curves.items())
            loss = next(iter(curves.values())).loss
            alt = f"Validation {loss} of {who} by {'epoch' if epochs else 'round'}: {'; '.join(ends)}."
            labels = {model: f"{model}{_weight(shown[model], NETWORK)}" for model in curves}
            pictures.append(picture(partial(_draw_curves, curves, colours, labels, who), alt))
    return pictures


def _weight(e: Evidence, network: str | None) -> str:
    """What names of pictures add, if a network that they show, or all, have but a part of the weight in the model."""
    words = "" if e.history is None else weight_in_words(e.history.weight(network))
    return f" ({words})" if words else ""


def _draw_curves(
    curves: Mapping[str, Any], colours: Mapping[str, str], labels: Mapping[str, str], who: str, ax: Any
) -> None:
    for model, curve in curves.items():
        steps = [number + (not curve.epochs) for number in range(len(curve.values))]
        ax.plot(steps, curve.values, color=colours[model], label=labels[model])
        ax.plot(steps[curve.kept], curve.values[curve.kept], "o", color=colours[model])
    by_epoch(ax, f"validation {curve.loss}", who.capitalize())
    ax.set_xlabel("epoch" if curve.epochs else "round")
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
        words = _weight(e, None)
        for epoch, H in e.hidden.items():
            title = f"{model}, epoch {epoch}{words}"
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
    return Group("Layer health", "Hidden layers by epoch; layer 0 is next to the input.", pictures, notes)


def _draw_health(histories: Mapping[str, Any], name: str, ax: Any) -> None:
    for model, history in histories.items():
        panel(history, name, ax, label=model)
