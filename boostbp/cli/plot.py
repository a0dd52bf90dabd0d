"""boostbp plot: a picture of a model, or of its predictions on a file."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from boostbp.cli.console import Missing, Offset, Quiet, check_written, fail, one_line_errors, say
from boostbp.cli.predict import roles_of
from boostbp.files.tables import ColumnRoles

_FORMATS = {".png", ".svg", ".pdf"}


class PlotKind(StrEnum):
    """What to draw."""

    training = "training"
    health = "health"
    importances = "importances"
    representation = "representation"
    calibration = "calibration"
    residuals = "residuals"


class Method(StrEnum):
    """How more than two units become points in the plane."""

    pca = "pca"
    tsne = "tsne"


@one_line_errors
def plot(
    model: Annotated[Path, typer.Argument(help="File of the model.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write: .png, .svg or .pdf.")],
    data: Annotated[
        Path | None, typer.Argument(help="CSV or Parquet file, for representation, calibration and residuals.")
    ] = None,
    kind: Annotated[PlotKind, typer.Option("--kind", "-k", help="What to draw.")] = PlotKind.training,
    target: Annotated[
        str | None, typer.Option("--target", "-t", help="Column that was predicted; it colours a representation.")
    ] = None,
    layer: Annotated[int, typer.Option(help="Hidden layer of a representation: 0 is next to the input.")] = -1,
    method: Annotated[Method, typer.Option(help="For more than two units.")] = Method.pca,
    rows: Annotated[int, typer.Option(min=2, help="Rows to draw at most, chosen at random.")] = 2000,
    offset: Offset = None,
    missing: Missing = None,
    quiet: Quiet = False,
) -> None:
    """Draw training curves, layer health, importances, a hidden representation, calibration or residuals."""
    from boostbp import plots, storage
    from boostbp.atomic_write import atomic_write
    from boostbp.plots.axes import figure
    from boostbp.plots.epochs import PANELS, n_curves

    if out.suffix.lower() not in _FORMATS:
        raise fail(f"--out {str(out)!r}: give a file that ends in .png, .svg or .pdf.", 2)
    check_written("--out", out, ("MODEL", model), ("DATA", data))
    _check(kind, data, target)
    estimator: Any = storage.load(model)
    panels = {PlotKind.training: n_curves(estimator.history_), PlotKind.health: len(PANELS)}.get(kind, 1)
    made, axes = figure(panels)
    if kind is PlotKind.training:
        plots.training_curves(estimator, axes)
    elif kind is PlotKind.health:
        plots.layer_health(estimator, axes)
    elif kind is PlotKind.importances:
        plots.importances(estimator, axes[0])
    else:
        assert data is not None
        columns = roles_of(estimator, offset or (), missing or ())
        X, y, known = _sample(estimator, data, target, rows, columns)
        if kind is PlotKind.representation:
            plots.representations(estimator, X, y, axes[0], layer=layer, method=method.value)
        elif kind is PlotKind.residuals:
            _needs(not hasattr(estimator, "predict_proba"), kind, "regressor", estimator)
            plots.residuals(y, estimator.predict(X, offset=known), axes[0])
        else:
            _needs(hasattr(estimator, "predict_proba"), kind, "classifier", estimator)
            plots.calibration(y, estimator.predict_proba(X, offset=known), axes[0], classes=estimator.classes_)
    with atomic_write(out) as part:
        made.savefig(part, format=out.suffix[1:].lower(), dpi=150)
    if not quiet:
        say(f"Drawn to {out}.")


def _check(kind: PlotKind, data: Path | None, target: str | None) -> None:
    """Whether what a picture needs was given."""
    of_data = kind in (PlotKind.representation, PlotKind.calibration, PlotKind.residuals)
    if of_data and data is None:
        raise fail(f"--kind {kind} is a picture of rows: name a .csv or .parquet file after the model.", 2)
    if not of_data and data is not None:
        raise fail(f"--kind {kind} is a picture of the model alone: leave out {str(data)!r}.", 2)
    if kind in (PlotKind.calibration, PlotKind.residuals) and target is None:
        raise fail(f"--kind {kind} needs --target: the column that was predicted.", 2)


def _needs(fits: bool, kind: PlotKind, what: str, estimator: Any) -> None:
    if not fits:
        raise ValueError(f"--kind {kind} needs a {what}, but the model is a {type(estimator).__name__}.")


def _sample(estimator: Any, data: Path, target: str | None, most: int, columns: ColumnRoles) -> tuple[Any, Any, Any]:
    """Some rows of a file, their targets if these are named, and their offset, the verbatim columns."""
    import numpy as np

    from boostbp.files.reading import chunks, numbers_of, read_table

    if target is None:
        (X, beside), y = next(chunks(data, columns)), None
    else:
        classes = getattr(estimator, "classes_", None)
        text = None if classes is None else classes.dtype.kind in "OU"
        X, y, beside = read_table(data, target, columns, text=text)
    known = numbers_of(beside, list(columns.verbatim), data.name)
    chosen = np.sort(np.random.default_rng(0).permutation(len(X))[:most])
    return X.iloc[chosen], *(None if values is None else values[chosen] for values in (y, known))
