"""boostbp inspect: the content of a model file."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from inspect import signature
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from boostbp.cli.console import ModelFile, output
from boostbp.runtime.messages import counted, printable

if TYPE_CHECKING:
    from boostbp.estimators.base import BaseBoostBP
    from boostbp.network.history import History
    from boostbp.trees.forest import Forest

_LISTED_NAMES = 8  # names to print before "and 12 more"; arbitrary
_BAR_WIDTH = 30  # characters of the longest bar


def inspect(
    model: ModelFile,
    most: Annotated[int, typer.Option("--most", min=1, help="Importances to show.")] = 15,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Print a model: settings, layers, training, health of the layers, importances."""
    from boostbp import storage

    estimator = storage.load(model)
    facts = {"file": str(model), "bytes": model.stat().st_size, **description_of(estimator)}
    if as_json:
        typer.echo(json.dumps(facts, indent=2))
        return
    lines = [f"{facts['estimator']} in {facts['file']}, {facts['bytes'] / 1e6:.2f} MB"]
    for noun in ("feature", "output"):
        names = facts[f"{noun}s"]
        more = len(names) - _LISTED_NAMES
        rest = f" and {more} more" if more > 0 else ""
        lines.append(f"{counted(len(names), noun)}: {', '.join(names[:_LISTED_NAMES])}{rest}")
    output().print(*map(printable, [*lines, *estimator.summary().splitlines()]), sep="\n")
    if facts["settings"]:
        _print_table("Settings other than the defaults", ("parameter", "value"), facts["settings"].items())
    heads = tuple(facts["layers"][0])
    layers = ((number, *(f"{layer[head]:,}" for head in heads)) for number, layer in enumerate(facts["layers"]))
    _print_table("Layers, the output layer last", ("layer", *heads), layers)
    if facts["health"]["layers"]:
        output().print("", *map(printable, str(estimator.health()).splitlines()), sep="\n")
    largest = sorted(facts["importances"].items(), key=lambda pair: -pair[1])[:most]
    unit = _BAR_WIDTH / (largest[0][1] or 1.0)
    bar = "█" if output().encoding.startswith("utf") else "#"
    bars = ((name, f"{share:.1%}", bar * round(unit * share)) for name, share in largest)
    _print_table("Importances, by attribution", ("feature", "share", ""), bars)


def _print_table(title: str, heads: Sequence[str], rows: Iterable[tuple[object, ...]]) -> None:
    table = Table()
    for number, head in enumerate(heads):
        table.add_column(head, justify="right" if number and head not in ("value", "") else "left")
    for row in rows:
        table.add_row(*(Text(printable(str(cell))) for cell in row))
    output().print("", title, table, sep="\n")


def description_of(model: BaseBoostBP) -> dict[str, Any]:
    """Return the facts of a fitted estimator in JSON types; the ``settings`` are those other than the defaults."""
    features = model.layer_names(0)
    params = {name: _as_json(value) for name, value in model.get_params(deep=False).items()}
    defaults = {name: _as_json(p.default) for name, p in signature(type(model)).parameters.items()}
    return {
        "estimator": type(model).__name__,
        "features": features,
        "outputs": model.output_names(),
        "settings": {name: value for name, value in params.items() if value != defaults[name]},
        "layers": [_layer(layer.forest) for layer in model.network_.layers],
        "training": _training(model.history_),
        "health": model.health().to_dict(),
        "importances": dict(zip(features, model.feature_importances_.tolist(), strict=True)),
    }


def _as_json(value: object) -> Any:
    """Return a value in JSON types; objects become their `repr`."""
    return json.loads(json.dumps(value, default=lambda other: getattr(other, "tolist", other.__repr__)()))


def _layer(forest: Forest) -> Mapping[str, int]:
    import numpy as np

    splits = np.diff(forest.tree_split)
    return {
        "inputs": forest.n_features,
        "outputs": forest.n_outputs,
        "trees": int((splits > 0).sum()),  # with splits
        "leaves": int((splits + 1)[splits > 0].sum()),
        "ridge": int((splits == 0).sum()),  # trees without splits
        "coefficients": len(forest.leaves.weight),  # of all trees
    }


def _training(history: History) -> dict[str, Any]:
    best = history[history.best_epoch]
    choice = None if history.choice is None else asdict(history.choice)
    if choice is not None:
        del choice["metrics"]  # the scores of the training
    return {
        "epochs": len(history) - 1,
        "kept": best.epoch,
        "loss": best.loss,
        "metric": history.metric,
        "metrics": best.metrics,
        "scores": history.scores,
        "seconds": math.fsum(epoch.seconds for epoch in history.epochs),
        "stop": history.stop.value,
        "network": history.network,
        "weight_of_network": history.weight(history.network) if history.network else 0.0,
        "weight_of_hidden_layers": history.weight(),
        "best_iteration": history.best_iteration,
        "iterations_are": "rounds" if history.by_rounds else "epochs",
        "choice": choice,
        "refitted": history.refitted,
    }
