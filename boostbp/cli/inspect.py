"""boostbp inspect: what a model file holds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.table import Table
from rich.text import Text

from boostbp.cli.errors import one_line_errors, output, say
from boostbp.printable import printable

_HEALTH = {
    "dead": "no gradient",
    "drift": "movement",
    "std_start": "standard deviation at start",
    "std": "standard deviation",
    "r2": "R2 of refits",
    "explained": "explains",
    "explained_held": "held out",
}
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
    from boostbp.report.facts import facts_of

    facts = {"file": str(model), "bytes": model.stat().st_size, **facts_of(storage.load(model))}
    if as_json:
        typer.echo(json.dumps(facts, indent=2))
        return
    console = output()
    for part in _parts(facts, most):
        console.print(printable(part) if isinstance(part, str) else part)
    for sentence in facts["health"]["warnings"]:
        say(f"warning: {sentence}")


def _parts(facts: dict[str, Any], most: int) -> Iterator[str | Group]:
    """What is printed, from the top."""
    from boostbp.network.history import NETWORK, REFITTED, weight_in_words

    training = facts["training"]
    metrics = "".join(f", {name} {training['metric']} {value:.6g}" for name, value in training["metrics"].items())
    yield f"{facts['estimator']} in {facts['file']}, {facts['bytes'] / 1e6:.2f} MB"
    yield f"{len(facts['features'])} features: {_listed(facts['features'])}"
    yield f"{len(facts['outputs'])} outputs: {_listed(facts['outputs'])}"
    words = weight_in_words(facts["health"]["weight"])
    names = (
        {candidate["network"] for candidate in training["choice"]["candidates"]}
        if training["choice"] is not None
        else set()
    )
    networks = any(names)
    of = f"network with {words or 'all weight in the model'}: " if NETWORK in names else ""
    yield f"{of}epoch {training['kept']} of {training['epochs']}: training loss {training['loss']:.6g}{metrics}"
    yield f"{training['seconds']:.1f} s of training. {training['stop']}"
    if facts["settings"]:
        yield _table("Settings other than the defaults", ("parameter", "value"), facts["settings"].items())
    heads, hidden = tuple(facts["layers"][0]), facts["health"]["layers"]
    layers = ((str(number), *(f"{layer[head]:,}" for head in heads)) for number, layer in enumerate(facts["layers"]))
    unused = ""
    if hidden and not training["weight_of_networks"]:
        unused = "; hidden layers are of a network with no weight in the model"
    yield _table(f"Layers, the output layer last{unused}", ("layer", *heads), layers)
    if training["choice"] is not None:
        weighed = training["choice"]["candidates"]
        candidates = (
            (candidate["name"], f"{candidate['loss']:.6g}", f"{candidate['weight']:.2f}") for candidate in weighed
        )
        yield _table("Candidates for the model, on held-out rows", ("candidate", "loss", "weight"), candidates)
        if networks:
            gain, error = training["choice"]["gain"], training["choice"]["error"]
            yield f"Depth lowers the held-out loss by {gain:.3g} ± {error:.2g}."
        if training["scores"]:
            scores = ", ".join(f"{name} {training['metric']} {value:.6g}" for name, value in training["scores"].items())
            yield f"The average of them has {scores}."
    if training["refitted"]:
        yield REFITTED
    if hidden:
        health = ((str(layer["layer"]), *(_short(layer[name]) for name in _HEALTH)) for layer in hidden)
        beside = f", of a network with {words}" if words else ""
        yield _table(f"Health of the hidden layers{beside}", ("layer", *_HEALTH.values()), health)
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


def _short(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"
