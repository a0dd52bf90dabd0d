"""What the training of tree layers goes on from, beside their trees: tensors and plain values, as an optimizer's."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boostbp.extras import require
from boostbp.torch.gathered import LastFit, Momentum
from boostbp.torch.module import GBDTModule
from boostbp.trees import interrupts

torch: Any = require("torch", extra="torch", what="boostbp.torch")

FORMAT, VERSION = "boostbp.GBDTStep", 2


class _Progress(NamedTuple):
    """What of a layer changes by training, but its trees."""

    last: LastFit
    momentum: Momentum | None
    random: np.random.Generator
    expected_rows: int | None


def state_of(layers: Sequence[GBDTModule], losses: Sequence[float]) -> dict[str, Any]:
    """The state of the training of some layers, in their order."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "losses": list(losses),
        "layers": [_record(layer) for layer in layers],
    }


@interrupts.deferred()  # what a handler raises is no fault of the state
def take_over(layers: Sequence[GBDTModule], state: Mapping[str, Any]) -> list[float]:
    """Let layers go on from a state, and return the losses of the training so far.

    Raises
    ------
    ValueError
        If it is none, or of other layers or trees. All layers are as they were then.
    """
    if not isinstance(state, Mapping) or state.get("format") != FORMAT:
        raise ValueError("this is not the state of a GBDTStep: load what its state_dict() gave.")
    if state.get("version") != VERSION:
        raise ValueError(
            f"the state has version {state.get('version')}, this boostbp reads {VERSION}: update boostbp, or save the "
            "state anew."
        )
    try:
        losses = [float(loss) for loss in state["losses"]]
        records = list(state["layers"])
        if len(records) != len(layers):
            raise ValueError(f"the state is of {len(records)} tree layers, and the model has {len(layers)}.")
        read = [_read(layer, record) for layer, record in zip(layers, records, strict=True)]
    except Exception as error:  # whatever a stranger's state makes its reader do
        raise ValueError(f"the state is damaged, or not of this model: {error or type(error).__name__}") from error
    for layer, progress in zip(layers, read, strict=True):
        layer._gathered.fitted()
        layer._last, layer._momentum, layer._random, layer.expected_rows = progress
    return losses


def _record(layer: GBDTModule) -> dict[str, Any]:
    last, momentum = layer._last, layer._momentum
    return {
        "n_rows": last.n_rows,
        "expected_rows": layer.expected_rows,
        "random": json.dumps(layer._random.bit_generator.state),
        "row_hashes": _tensor(None if last.hashes is None else last.hashes.view(np.int64)),
        "rows": _tensor(last.rows),
        "momentum": _tensor(None if momentum is None else momentum.m),
        "momentum_rows": _tensor(None if momentum is None else momentum.rows),
    }


def _read(layer: GBDTModule, record: Mapping[str, Any]) -> _Progress:
    hashes, rows, m_rows = (_array(record[name], np.int64) for name in ("row_hashes", "rows", "momentum_rows"))
    m, n_rows, expected = _array(record["momentum"], np.float64), record["n_rows"], record["expected_rows"]
    if expected is not None and (type(expected) is not int or expected < 1):
        raise ValueError(f"the state expects {expected!r:.99} rows.")
    if n_rows != layer.n_rows:
        raise ValueError(
            f"the state is of trees that were fitted to {n_rows} rows, and these were to {layer.n_rows}: load the "
            "state of the model first, that of the same moment."
        )
    if any(part is not None and part.shape != (n_rows,) for part in (hashes, rows)) or (
        m is not None and (m.shape[1:] != (layer.out_features,) or (m_rows is not None and m_rows.shape != m.shape[:1]))
    ):
        raise ValueError("the state has rows or momentum of other sizes than it says.")
    if any(part is not None and (np.diff(part) <= 0).any() for part in (rows, m_rows)):
        raise ValueError("the state has row numbers that do not ascend.")
    if m is not None and not np.isfinite(m).all():
        raise ValueError("the state has momentum that is not finite.")
    random = np.random.default_rng()
    random.bit_generator.state = json.loads(record["random"])
    last = layer._last._replace(hashes=None if hashes is None else hashes.view(np.uint64), rows=rows)
    return _Progress(last, None if m is None else Momentum(m, m_rows), random, expected)


def _tensor(array: NDArray[Any] | None) -> Any:
    return None if array is None else torch.tensor(array, device="cpu")


def _array(tensor: Any, dtype: Any) -> NDArray[Any] | None:
    if tensor is None:
        return None
    array = np.array(tensor.detach().cpu().numpy())
    if array.dtype != dtype:
        raise ValueError(f"the state has {array.dtype} in place of {np.dtype(dtype)}.")
    return array
