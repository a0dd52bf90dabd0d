"""The gathered rows of a step: a tree layer's forward calls with their gradients, and checks of their rows."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boostbp.inputs.repeats import row_hashes
from boostbp.runtime.arrays import Floats

RowHashes = NDArray[np.uint64]
Numbers = NDArray[np.int64] | None  # (rows,): row numbers in the training data, if they were announced
_call_numbers = itertools.count()  # numbers of the forward calls of all layers


class ForwardCall(NamedTuple):
    """One forward call of a tree layer."""

    number: int  # counted over all layers
    fit: int  # number of the fit of its trees
    X: Floats  # (rows, features) float64
    h: Floats  # (rows, outputs) float64
    rows: Numbers
    data: bool  # whether `X` is data, because no module below learns


class GatheredRows(NamedTuple):
    """The rows of all calls, in their order, or in that of row numbers if these are known."""

    X: Floats  # (rows, features) float64
    # (rows, outputs) float64: output, and dL/doutput
    h: Floats
    g: Floats
    rows: Numbers
    hashes: RowHashes | None  # (rows,) uint64: row hashes of `X` if it is data in all calls
    repeated: int  # number of calls with the same data as another call


@dataclass
class PendingCalls:
    """Forward calls that received a gradient since the last step."""

    calls: dict[int, tuple[ForwardCall, Floats]] = field(default_factory=dict)  # call and gradient, by its number
    fit: int = 0  # number of the current trees

    def __bool__(self) -> bool:
        return bool(self.calls)

    @property
    def known(self) -> bool:
        """Whether all rows can be identified, because they are data or have numbers."""
        return all(call.data or call.rows is not None for call, _ in self.calls.values())

    def call(self, X: Floats, h: Floats, rows: Numbers, *, data: bool) -> ForwardCall:
        """Return a forward call through the current trees."""
        return ForwardCall(next(_call_numbers), self.fit, X, h, rows, data)

    def add(self, call: ForwardCall, g: Floats) -> None:
        """Add dL/doutput of a call, (rows, outputs). Gradients of the same call are summed, as in torch."""
        if call.fit != self.fit:
            raise RuntimeError("the trees were fitted again between forward and backward: run forward again.")
        if call.number in self.calls:
            g = self.calls[call.number][1] + g
        self.calls[call.number] = call, g

    def start_anew(self) -> None:
        """Drop all calls, and refuse gradients of calls through the current trees."""
        self.calls.clear()
        self.fit += 1

    def join(self) -> GatheredRows:
        """Return the rows of all calls; ValueError if a row number is repeated, or only some calls have row numbers."""
        calls, gradients = zip(*(self.calls[number] for number in sorted(self.calls)), strict=True)
        order, rows = in_order([call.rows for call in calls])
        columns = [call.X for call in calls], [call.h for call in calls], gradients
        X, h, g = (np.concatenate(parts)[order] for parts in columns)
        data = [call.X for call in calls if call.data]
        distinct = {(part.shape, part.tobytes()) for part in data} if len(data) > 1 else data
        hashes = row_hashes(X) if len(data) == len(calls) else None
        return GatheredRows(X, h, g, rows, hashes, len(data) - len(distinct))


class Momentum(NamedTuple):
    """Momentum of rows, (rows, outputs), by their announced numbers, or otherwise by their places."""

    m: Floats  # (rows, outputs) float64
    rows: Numbers

    def of(self, rows: GatheredRows) -> Floats:
        """Return the momentum of the rows of a step, 0 for new rows."""
        momentum = np.zeros_like(rows.h)
        if self.rows is not None and rows.rows is not None:
            _, here, there = np.intersect1d(rows.rows, self.rows, assume_unique=True, return_indices=True)
            momentum[here] = self.m[there]
        elif self.rows is None and rows.rows is None and self.m.shape == momentum.shape:
            momentum = self.m
        return momentum


class StepTarget(NamedTuple):
    """Target of a step: the moved outputs of a layer."""

    X: Floats  # (rows, features) float64
    target: Floats  # (rows, outputs) float64
    weight: Floats  # (rows,) float64
    first: int  # number of the first call of the step
    hashes: RowHashes | None = None  # (rows,) uint64: row hashes of `X` if it is data
    momentum: Momentum | None = None  # momentum of the layer after the fit; None for no change


class LastFit(NamedTuple):
    """The rows of a layer's last fit, with which a step compares its rows."""

    n_rows: int = 0  # 0 if there was no fit, or it does not count
    hashes: RowHashes | None = None  # (rows,) uint64; None if modules below learn, so that the input is not data
    rows: Numbers = None
    above: bool = False  # whether modules below are known to learn
    complete: NDArray[np.bool_] | None = None  # (features,): columns without a missing value; None with few rows

    def check(self, step: GatheredRows, expected: int | None) -> None:
        """Raise ValueError, with the cure, if the rows of a step are not those of the last fit, nor `expected` ones."""
        changed: tuple[RowHashes, RowHashes] | None = None  # hashes of both, if rows have places and some differ
        if self.rows is step.rows is None and self.hashes is not None and step.hashes is not None:
            changed = None if np.array_equal(self.hashes, step.hashes) else (self.hashes, step.hashes)
        if expected is not None:
            _check_number(len(step.X), expected, f"n_rows={expected} are expected", _OTHER_NUMBER)
            if changed:
                _refuse_repeats(*changed)
            return
        _check_number(len(step.X), self.n_rows or len(step.X), f"the trees were fitted to {self.n_rows}", _FORGET)
        if step.rows is None and step.repeated:
            raise ValueError(
                f"{step.repeated} of the forward calls since the last step had the same rows as others: {_DROP}. If "
                "rows are to come twice, say how many there are in all: GBDTStep(model, n_rows=...)."
            )
        if self.rows is not None and step.rows is not None:
            same = len(np.intersect1d(self.rows, step.rows, assume_unique=True))
            if 2 * same < len(step.rows):  # a loader may drop a few rows
                new = f"{len(step.rows) - same} of the {len(step.rows)} rows of this step are new"
                raise ValueError(f"{new}: {_ALL_ROWS} {_FORGET}")
        if changed:
            raise ValueError(
                f"the rows of this step are not those of the last fit, or come in another order: {_ALL_ROWS} {_FORGET} "
                f"{_ANNOUNCE} If their cells change, as by augmentation, say GBDTStep(model, n_rows=...)."
            )


def _refuse_repeats(last: RowHashes, step: RowHashes) -> None:
    """Refuse the rows of the last fit in another order, and a step that repeats some of them and lacks others."""
    values, place = np.unique(np.concatenate([last, step]), return_inverse=True)
    before, now = (np.bincount(part, minlength=len(values)) for part in (place[: len(last)], place[len(last) :]))
    if (before == now).all():
        raise ValueError(f"these rows come in another order: {_ANNOUNCE}")
    again = int((now - before)[before > 0].clip(0).sum())
    gone = int((before - now).clip(0).sum())
    if again and gone and 2 * now[before > 0].sum() >= len(step):
        repeats = f"{again} rows came more often than at the last fit, and {gone} of its rows did not come"
        raise ValueError(f"{repeats}, as if a loader draws with replacement: {_ALL_ROWS}")


def _check_number(n_rows: int, expected: int, because: str, cure: str) -> None:
    got = f"{n_rows} rows got a gradient since the last step, and {because}"
    if n_rows < expected:
        raise ValueError(f"{got}: {_ALL_ROWS} {cure}")
    if n_rows > expected:
        raise ValueError(f"{got}: {_DROP}. {cure}")


def check_known(expected: int | None, *pending: PendingCalls) -> None:
    """Refuse a step if no layer can find out whether its rows are all training rows."""
    if expected is None and not any(calls.known for calls in pending):
        raise ValueError(
            "modules that learn are below the tree layers, so that a mini-batch may look like all training rows: say "
            "how many there are, GBDTStep(model, n_rows=...), or announce which come, GBDTStep.rows."
        )


_ALL_ROWS = "trees are fitted from scratch, so go through all rows before a step."
_FORGET = "To train on others from now on, call forget() of the tree layer."
_OTHER_NUMBER = "To train on another number from now on, make a new GBDTStep(model, n_rows=...)."
_ANNOUNCE = "Momentum belongs to rows, so announce shuffled rows by GBDTStep.rows."
_DROP = (
    "drop the gradients of passes that train neural layers alone by GBDTStep.zero_grad() (that of the model does not "
    "reach the trees), or run these passes in eval mode"
)


def in_order(parts: list[Numbers]) -> tuple[NDArray[np.intp] | slice, Numbers]:
    """Return the order of joined calls, ascending by row number, and the row numbers in this order."""
    known = [part for part in parts if part is not None]
    if not known:
        return slice(None), None
    if len(known) < len(parts):
        raise ValueError(f"{len(known)} of {len(parts)} forward calls had row numbers: announce all or none.")
    rows = np.concatenate(known)
    order = np.argsort(rows, kind="stable")
    rows = rows[order]
    twice = rows[1:][rows[1:] == rows[:-1]]
    if len(twice):
        raise ValueError(
            f"row {twice[0]} came twice since the last step: call step() after one pass over the data, and {_DROP}. "
            "A layer at two places sees each row twice: there run the rows in one order, and announce none."
        )
    return order, rows
