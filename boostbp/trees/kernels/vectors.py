"""What compiled loops tell the processor in LLVM's words, as numba has none for it: vectors, and what to fetch."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

LINE = 64  # bytes that come together from memory
TOGETHER = 4  # numbers of a vector
_READ, _KEEP, _DATA = 0, 3, 1  # what LLVM's ``llvm.prefetch`` is told


def _pointer(context: Any, builder: Any, kind: Any, array: Any, place: Any, of: Any) -> Any:
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [place]), of.as_pointer())


@intrinsic
def prefetch(typing_context: Any, array: Any, place: Any) -> Any:
    """Ask for the line of memory that holds an entry, which may lie behind the end, of an array of one axis."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], args[0], args[1], ir.IntType(8))
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer.type, number, number, number])
        ask = builder.module.declare_intrinsic("llvm.prefetch", [pointer.type], kind)
        builder.call(ask, [pointer, number(_READ), number(_KEEP), number(_DATA)])
        return context.get_dummy_value()

    return types.void(array, place), generate


@intrinsic
def add_times(typing_context: Any, total: Any, at: Any, table: Any, place: Any, factor: Any) -> Any:
    """Add `TOGETHER` entries of `table`, float32 or float64, from `place` on, times a factor, to float64 totals.

    A product is rounded before it is added.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        totals, numbers = signature.args[0], signature.args[2]
        of_totals = ir.VectorType(context.get_data_type(totals.dtype), TOGETHER)
        of_numbers = ir.VectorType(context.get_data_type(numbers.dtype), TOGETHER)
        to = _pointer(context, builder, totals, args[0], args[1], of_totals)
        source = _pointer(context, builder, numbers, args[2], args[3], of_numbers)
        values = builder.load(source, align=numbers.dtype.bitwidth // 8)
        if of_numbers != of_totals:
            values = builder.fpext(values, of_totals)
        factors = ir.Constant(of_totals, ir.Undefined)
        for number in range(TOGETHER):
            factors = builder.insert_element(factors, args[4], ir.IntType(32)(number))
        total = builder.fadd(builder.load(to, align=8), builder.fmul(values, factors))
        builder.store(total, to, align=8)
        return context.get_dummy_value()

    return types.void(total, at, table, place, factor), generate
