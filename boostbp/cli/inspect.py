"""boostbp inspect: what a model file holds."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.table import Table
from rich.text import Text

from boostbp.cautions import counted, printable
from boostbp.cli.console import one_line_errors, output

_NAMES = 8  # features that are named before it says how many more there are
_BAR = 30  # characters


@one_line_errors
def inspect(
    model: Annotated[Path, typer.Argument(help="File of the model.")],
    most: Annotated[int, typer.Option("--most", min=1, help="Importances to show.")] = 15,
    as_json: Annotated[bool, typer.Option("--json", help="Print all of it as JSON.")] = False,
) -> None:
    """Say what a model is: settings, layers, training, health of the layers, importances."""
    from boostbp import storage

    estimator = storage.load(model)
    facts = {"file": str(model), "bytes": model.stat().st_size, **facts_of(estimator)}
    if as_json:
        typer.echo(json.dumps(facts, indent=2))
        return
    console = output()
    for part in _parts(facts, estimator, most):
        console.print(printable(part) if isinstance(part, str) else part)


def _parts(facts: dict[str, Any], estimator: Any, most: int) -> Iterator[str | Group]:
    """What is printed, from the top: the words of the estimator, with tables of what it is made of."""
    yield f"{facts['estimator']} in {facts['file']}, {facts['bytes'] / 1e6:.2f} MB"
    for what in ("feature", "output"):
        names = facts[f"{what}s"]
        yield f"{counted(len(names), what)}: {_listed(names)}"
    yield from estimator.summary().splitlines()
    if facts["settings"]:
        yield _table("Settings other than the defaults", ("parameter", "value"), facts["settings"].items())
    heads = tuple(facts["layers"][0])
    layers = ((str(number), *(f"{layer[head]:,}" for head in heads)) for number, layer in enumerate(facts["layers"]))
    yield _table("Layers, the output layer last", ("layer", *heads), layers)
    if facts["health"]["layers"]:
        yield from ("", *str(estimator.health()).splitlines())
    largest = sorted(facts["importances"].items(), key=lambda pair: -pair[1])[:most]
    bars = ((name, f"{share:.1%}", "█" * round(_BAR * share / (largest[0][1] or 1.0))) for name, share in largest)
    yield _table("Importances, by attribution", ("feature", "share", ""), bars)


def _table(title: str, heads: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> Group:
    table = Table()
    for number, head in enumerate(heads):
        table.add_column(head, justify="right" if number and head not in ("value", "") else "left")
    for row in rows:
        table.add_row(*(Text(printable(str(cell))) for cell in row))
    return Group("", title, table)


def _listed(names: list[str]) -> str:
    more = len(names) - _NAMES
    return ", ".join(names[:_NAMES]) + (f" and {more} more" if more > 0 else "")


def facts_of(model: Any) -> dict[str, Any]:
    """What there is to say of a fitted estimator, as values that JSON holds.

    Returns
    -------
    dict
        ``estimator``, ``features`` and ``outputs`` (names), ``settings`` (those that are not the
        defaults), ``layers`` (see below), ``training``, ``health`` and ``importances`` (by feature).
        A layer has its number of ``inputs`` and ``outputs``, of ``trees`` that split and their ``leaves``,
        of trees without splits (``ridge``), and the ``coefficients`` of all.
    """
    features = model.layer_names(0)
    return {
        "estimator": type(model).__name__,
        "features": features,
        "outputs": model.output_names(),
        "settings": _settings(model),
        "layers": [_layer(layer.forest) for layer in model.network_.layers],
        "training": _training(model.history_),
        "health": model.health().to_dict(),
        "importances": dict(zip(features, model.feature_importances_.tolist(), strict=True)),
    }


def _settings(model: Any) -> dict[str, Any]:
    params = {name: _spelled(value) for name, value in model.get_params(deep=False).items()}
    defaults = {name: _spelled(p.default) for name, p in signature(type(model)).parameters.items()}
    return {name: value for name, value in params.items() if value != defaults[name]}


def _spelled(value: Any) -> Any:
    """A value as JSON reads it back; of an object, what `repr` says."""
    return json.loads(json.dumps(value, default=lambda other: getattr(other, "tolist", other.__repr__)()))


def _layer(forest: Any) -> dict[str, int]:
    import numpy as np

    splits = np.diff(forest.tree_split)
    return {
        "inputs": forest.n_features,
        "outputs": forest.n_outputs,
        "trees": int((splits > 0).sum()),
        "leaves": int((splits + 1)[splits > 0].sum()),
        "ridge": int((splits == 0).sum()),
        "coefficients": len(forest.leaves.weight),
    }


def _training(history: Any) -> dict[str, Any]:
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
