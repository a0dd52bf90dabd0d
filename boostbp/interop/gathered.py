"""Gathered: the rows of a tree layer's forward calls with their gradients, until the next step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Call", "Gathered", "Rows", "in_order"]

Floats = NDArray[np.float64]


class Call(NamedTuple):
    """One forward call.

    Attributes
    ----------
    number : int
        Place among all calls of all layers.
    fit : int
        Which trees it went through.
    X : (rows, features) float64
    h : (rows, outputs) float64
    rows : (rows,) int64 or None
        Row numbers in the training data, if they were announced.
    """

    number: int
    fit: int
    X: Floats
    h: Floats
    rows: NDArray[np.int64] | None


class Rows(NamedTuple):
    """The rows of all calls: in the order of the calls, or of the row numbers where these are known.

    Attributes
    ----------
    X : (rows, features) float64
    h, g : (rows, outputs) float64
        Output, and dL/doutput.
    rows : (rows,) int64 or None
    """

    X: Floats
    h: Floats
    g: Floats
    rows: NDArray[np.int64] | None


@dataclass(slots=True)
class Gathered:
    """Calls that got a gradient since the last step; one that never gets any leaves nothing here.

    Attributes
    ----------
    calls : dict
        Each call and its gradient, by number.
    fit : int
        Number of the trees that are fitted now.
    """

    calls: dict[int, tuple[Call, Floats]] = field(default_factory=dict)
    fit: int = 0

    def __bool__(self) -> bool:
        return bool(self.calls)

    @property
    def first(self) -> int:
        """Number of the first call."""
        return min(self.calls)

    def add(self, call: Call, g: Floats) -> None:
        """Add dL/doutput of a call, (rows, outputs); a second gradient of the same call is summed, as in torch.

        Raises
        ------
        RuntimeError
            If the trees were fitted again since the call.
        """
        if call.fit != self.fit:
            raise RuntimeError("the trees were fitted again between forward and backward: run forward again.")
        if call.number in self.calls:
            g = self.calls[call.number][1] + g
        self.calls[call.number] = call, g

    def fitted(self) -> None:
        """Forget all calls, and refuse gradients of calls through the trees so far."""
        self.calls.clear()
        self.fit += 1

    def join(self) -> Rows:
        """Put the rows of all calls under one another.

        Raises
        ------
        ValueError
            If a row number came twice, or some calls have row numbers and others none.
        """
        pairs = [self.calls[number] for number in sorted(self.calls)]
        calls = [call for call, _ in pairs]
        order, rows = in_order([call.rows for call in calls])
        X, h = (np.concatenate(parts)[order] for parts in ([call.X for call in calls], [call.h for call in calls]))
        return Rows(X, h, np.concatenate([g for _, g in pairs])[order], rows)


def in_order(parts: list[NDArray[np.int64] | None]) -> tuple[NDArray[np.intp] | slice, NDArray[np.int64] | None]:
    """The order in which joined calls are to be read, and their row numbers in it."""
    known = [part for part in parts if part is not None]
    if not known:
        return slice(None), None
    if len(known) < len(parts):
        raise ValueError(
            f"{len(known)} of {len(parts)} forward calls had row numbers: announce them for every call of a step, "
            "or for none."
        )
    rows = np.concatenate(known)
    order = np.argsort(rows, kind="stable")
    rows = rows[order]
    twice = rows[1:][rows[1:] == rows[:-1]]
    if len(twice):
        raise ValueError(
            f"row {twice[0]} came twice since the last step: call step() after one pass over the data, "
            "and zero_grad() to drop the gradients of passes that only the neural layers learn from."
        )
    return order, rows
