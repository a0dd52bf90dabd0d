"""boostbp plot: a picture of a model, or of its predictions on a file."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from boostbp.cli.console import ModelFile, Offset, Quiet, StatedOptions, UsageError, check_output, say
from boostbp.cli.predict import roles_of

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pandas import DataFrame

    from boostbp.estimators.base import BaseBoostBP
    from boostbp.inputs.files.tables import ColumnRoles

_FORMATS = {".png", ".svg", ".pdf"}
PlotKind = StrEnum("PlotKind", ["training", "health", "importances", "representation", "calibration", "residuals"])
Method = StrEnum("Method", ["pca", "tsne"])


def plot(
    model: ModelFile,
    out: Annotated[Path, Option("--out", "-o", help="File to write: .png, .svg or .pdf.")],
    file_options: StatedOptions,
    data: Annotated[
        Path | None, Argument(help="CSV or Parquet file, for representation, calibration, residuals.")
    ] = None,
    kind: Annotated[PlotKind, Option("--kind", "-k", help="What to draw.")] = PlotKind.training,
    target: Annotated[
        str | None, Option("--target", "-t", help="Column that was predicted; it colours points.")
    ] = None,
    layer: Annotated[int, Option(help="Hidden layer of a representation: 0 is next to the input.")] = -1,
    method: Annotated[Method, Option(help="Projection of more than two units.")] = Method.pca,
    rows: Annotated[int, Option(min=2, help="Most rows to draw, chosen at random.")] = 2000,
    offset: Offset = None,
    quiet: Quiet = False,
) -> None:
    """Draw training curves, layer health, importances, a hidden representation, calibration or residuals."""
    from boostbp import plots, storage
    from boostbp.plots.axes import figure
    from boostbp.plots.epochs import PANELS, n_curves
    from boostbp.runtime.atomic_write import atomic_write

    if out.suffix.lower() not in _FORMATS:
        raise UsageError(f"--out {str(out)!r}: give a file that ends in .png, .svg or .pdf.")
    check_output("--out", out, ("MODEL", model), ("DATA", data))
    of_rows = kind in (PlotKind.representation, PlotKind.calibration, PlotKind.residuals)
    if of_rows and data is None:
        raise UsageError(f"--kind {kind} is a picture of rows: name a .csv or .parquet file after the model.")
    if not of_rows and data is not None:
        raise UsageError(f"--kind {kind} is a picture of the model alone: leave out {str(data)!r}.")
    if kind in (PlotKind.calibration, PlotKind.residuals) and target is None:
        raise UsageError(f"--kind {kind} needs --target: the column that was predicted.")
    estimator: Any = storage.load(model)
    n_panels = {PlotKind.training: n_curves(estimator.history_), PlotKind.health: len(PANELS)}.get(kind, 1)
    picture, axes = figure(n_panels)
    if kind is PlotKind.training:
        plots.training_curves(estimator, axes)
    elif kind is PlotKind.health:
        plots.layer_health(estimator, axes)
    elif kind is PlotKind.importances:
        plots.importances(estimator, axes[0])
    else:
        assert data is not None
        X, y, offsets = _sample(estimator, data, target, rows, roles_of(estimator, file_options, offset))
        needed = {PlotKind.residuals: "regressor", PlotKind.calibration: "classifier"}.get(kind)
        if needed is not None and hasattr(estimator, "predict_proba") != (needed == "classifier"):
            raise ValueError(f"--kind {kind} needs a {needed}, but the model is a {type(estimator).__name__}.")
        if kind is PlotKind.calibration and estimator.multilabel_:
            raise ValueError(f"--kind {kind} needs a model of one target: draw a label with boostbp.plots.calibration.")
        if kind is PlotKind.representation:
            plots.representations(estimator, X, y, axes[0], layer=layer, method=str(method))
        elif kind is PlotKind.residuals:
            plots.residuals(y, estimator.predict(X, offset=offsets), axes[0])
        else:
            plots.calibration(y, estimator.predict_proba(X, offset=offsets), axes[0], classes=estimator.classes_)
    with atomic_write(out) as part:
        picture.savefig(part, format=out.suffix[1:].lower(), dpi=150)
    say(f"Drawn to {out}.", quiet)


def _sample(
    estimator: BaseBoostBP, data: Path, target: str | None, n_rows: int, columns: ColumnRoles
) -> tuple[DataFrame, Any, NDArray[Any] | None]:
    """Return random rows of a file, their targets if these are named, and their offset, the verbatim columns."""
    import numpy as np
    from sklearn.base import is_regressor

    from boostbp.inputs.files.reading import chunks, numbers_of, read_table

    if target is None:
        (X, beside), y = next(chunks(data, columns)), None
    else:
        classes = getattr(estimator, "classes_", None)
        text = False if is_regressor(estimator) else None if classes is None else classes.dtype.kind in "OU"
        X, y, beside = read_table(data, target, columns, text=text, labels=classes is not None)
    offsets = numbers_of(beside, list(columns.verbatim), data.name, columns.options)
    chosen = np.sort(np.random.default_rng(0).permutation(len(X))[:n_rows])
    y, offsets = (None if values is None else values[chosen] for values in (y, offsets))
    return X.iloc[chosen], y, offsets
