"""Numbers of a graph in few bits: a runtime makes arrays of them when it loads the graph, once.

Whole numbers are planes of bits, the lowest ones of all numbers first; the few that would need many more bits stand
beside them. Real numbers are whole numbers of units that are powers of two, where that takes less room.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from boostbp.export.onnx_graph import Graph, int64, library
from boostbp.floats import Floats

BITS = np.arange(8, dtype=np.uint8)
MOST_BITS = 24  # of a whole number that float32 holds
FEW = 64  # numbers that take less room as they are than what makes them of bits
_ODD = 96  # bits of a number that stands beside the planes: its place and itself


def whole_numbers(graph: Graph, values: NDArray[np.integer] | NDArray[np.bool_]) -> str:
    """Add whole numbers, (n,), that int32 holds; returns their name."""
    once, values = graph.outermost, np.asarray(values, np.int64)
    if len(values) <= FEW:
        return once.constant(values.astype(np.int32))
    least, n_bits = _window(values)
    held = values - least
    odd = (held < 0) | (held >= 1 << n_bits)
    bits = np.where(odd, 0, held) >> np.arange(n_bits)[:, None] & 1
    planes = np.packbits(bits.astype(np.uint8), axis=1, bitorder="little")
    bit = once.op("BitwiseAnd", planes[:, :, None], np.uint8(1) << BITS)
    bit = once.op("Cast", once.op("Cast", bit, to=library().TensorProto.BOOL), to=once.real)
    power = 2.0 ** np.arange(n_bits)[None]
    total = once.op("Reshape", once.op("MatMul", power, once.op("Reshape", bit, int64(n_bits, -1))), int64(-1))
    whole = once.op("Cast", once.op("Slice", total, int64(0), int64(len(values))), to=library().TensorProto.INT32)
    if least:
        whole = once.op("Add", whole, np.int32(least))
    return _beside(once, whole, odd, values.astype(np.int32))


@dataclass(frozen=True, slots=True)
class Units:
    """Powers of two, whose numbers of a graph are multiples; they are added to it where they are asked for.

    Attributes
    ----------
    values : (n,), (n, 1) or (n, m) float64
    name : function () -> str
    """

    values: Floats
    name: Callable[[], str]

    @classmethod
    def of(cls, graph: Graph, exponent: NDArray[np.integer]) -> Units:
        """Return ``2 ** exponent``."""
        least, most = int(exponent.min(initial=0)), int(exponent.max(initial=0))
        powers, once = np.ldexp(1.0, np.arange(least, most + 1)), graph.outermost

        def name() -> str:
            made = once.op("Gather", powers, whole_numbers(graph, exponent.ravel() - least))
            return once.op("Reshape", made, int64(*exponent.shape))

        return cls(np.ldexp(1.0, exponent), cache(name))

    def at(self, graph: Graph, place: NDArray[np.int64], name: Callable[[], str]) -> Units:
        """Return those in some places, (places,), which the graph has by a name."""
        return Units(self.values[place], cache(lambda: graph.outermost.op("Gather", self.name(), name(), axis=0)))

    def times(self, graph: Graph, factor: float) -> Units:
        """Return them times a power of two."""
        return Units(factor * self.values, cache(lambda: graph.outermost.op("Mul", self.name(), np.array(factor))))

    def over(self, graph: Graph, other: Units) -> Units:
        """Return (n,) or (n, m) ones over (n,) others."""
        once, several = graph.outermost, self.values.ndim > 1
        below = cache(lambda: once.op("Unsqueeze", other.name(), int64(1)) if several else other.name())
        values = self.values / (other.values[:, None] if several else other.values)
        return Units(values, cache(lambda: once.op("Div", self.name(), below())))


def multiples(graph: Graph, values: Floats, units: Units) -> str:
    """Add real numbers, (n,) or (n, m), as whole numbers of units, or as they are; returns their name."""
    once, shape = graph.outermost, int64(*values.shape)
    with np.errstate(all="ignore"):
        unit = units.values.astype(graph.dtype)
        count = values / unit
        good = (count == np.rint(count)) & (np.abs(count) < 1 << MOST_BITS) & (np.float64(unit) * count == values)
        good &= (unit == units.values) & (np.abs(unit) >= np.finfo(graph.dtype).tiny)
    whole = np.where(good, count, 0.0).astype(np.int64).ravel()
    room = _window(whole)[1] * len(whole) + _ODD * int((~good).sum())
    if room > 8 * np.dtype(graph.dtype).itemsize * len(whole) or len(whole) <= FEW:
        return once.constant(values)
    made = once.op("Cast", whole_numbers(graph, whole), to=once.real)
    made = once.op("Mul", once.op("Reshape", made, shape), units.name())
    if good.all():
        return made
    return once.op("Reshape", _beside(once, once.op("Reshape", made, int64(-1)), ~good.ravel(), values.ravel()), shape)


def lowest_bits(values: Floats) -> NDArray[np.int64]:
    """Return the largest powers of two of which numbers are multiples, as exponents; a large one of 0."""
    mantissa, exponent = np.frexp(np.where(np.isfinite(values), values, 1.0))
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    lowest = np.frexp((whole & -whole).astype(np.float64))[1]
    return np.where(whole == 0, 1 << 20, exponent - 54 + lowest)


def owners(graph: Graph, count: str, total: int) -> str:
    """Add the numbers 0, 1, .. as often as counts, (n,), say; returns the name of (total,) int64."""
    once = graph.outermost
    first = once.op("CumSum", count, np.int64(0), exclusive=1)
    ones = once.op("Expand", np.ones(1, np.int64), once.op("Shape", count))
    zeros = once.op("Expand", np.zeros(1, np.int64), int64(total + 1))
    begins = once.op("ScatterElements", zeros, first, ones, axis=0, reduction="add")
    owner = once.op("Sub", once.op("CumSum", begins, np.int64(0)), np.int64(1))
    return once.op("Slice", owner, int64(0), int64(total))


def _beside(once: Graph, name: str, odd: NDArray[np.bool_], values: NDArray[np.generic]) -> str:
    """Add some numbers in place of what stands in their places."""
    if not odd.any():
        return name
    return once.op("ScatterElements", name, np.flatnonzero(odd).astype(np.int32), values[odd], axis=0)


def _window(values: NDArray[np.int64]) -> tuple[int, int]:
    """Return the least whole number and the bits of planes that take, with what stands beside them, the least room."""
    least = int(values.min(initial=0))
    windows = [(start, n) for n in range(1, MOST_BITS + 1) for start in (least, 0, -(1 << n - 1))]

    def room(window: tuple[int, int]) -> int:
        start, n_bits = window
        inside = int(np.count_nonzero((values >= start) & (values < start + (1 << n_bits))))
        return n_bits * len(values) + _ODD * (len(values) - inside)

    return min(windows, key=room)
