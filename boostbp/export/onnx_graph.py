"""Graph: nodes, constants and subgraphs of an ONNX model under construction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from boostbp.runtime.arrays import Floats
from boostbp.runtime.messages import require

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto, ValueInfoProto

OPSET = 18
IR_VERSION = 8  # for opset 18
_NEUTRAL = {"Add": 0.0, "Sub": 0.0, "Mul": 1.0, "Div": 1.0}  # neutral second operand of each operation
_NARROW = {True: ("float16", "float32"), False: ("uint8", "int8", "uint16", "int16")}  # of real and whole numbers


def library() -> ModuleType:
    """Return the package onnx; raise ImportError with the command to install it."""
    return require("onnx", extra="onnx", what="to_onnx")


def _tensor_type(dtype: DTypeLike) -> int:
    return int(library().helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


@dataclass
class Graph:
    """A graph, or the body of a loop or branch within one; all share constants and names."""

    dtype: np.dtype[np.floating]  # type of all real numbers, float64 or float32
    nodes: list[NodeProto] = field(default_factory=list)
    constants: dict[str, NDArray[Any]] = field(default_factory=dict)  # by their names
    # names of the constants, and of the first output of each operation of the outermost graph
    known: dict[tuple[object, ...], str] = field(default_factory=dict)
    names: Iterator[int] = field(default_factory=lambda: count(1))  # numbers for new names
    outer: Graph | None = None  # the graph that contains this one

    @property
    def outermost(self) -> Graph:
        """Return the graph whose nodes run once."""
        return self if self.outer is None else self.outer.outermost

    def name(self) -> str:
        """Return a new name."""
        return f"t{next(self.names)}"

    def constant(self, values: ArrayLike) -> str:
        """Return the name of a constant, in the type of the graph if it is real. Equal constants are stored once."""
        array = np.ascontiguousarray(values).reshape(np.shape(values))  # keeps scalars
        return self.stored(self._held(array) if array.dtype.kind == "f" else array)

    def _held(self, values: Floats) -> NDArray[np.floating]:
        """Return real numbers in the type of the graph; ValueError if it cannot hold them with as many digits."""
        with np.errstate(over="ignore", under="ignore"):
            held = values.astype(self.dtype)
        small = (np.abs(held) < np.finfo(self.dtype).tiny) & (held != values)  # fewer digits, or 0
        lost = (np.isfinite(values) & ~np.isfinite(held)) | small
        if lost.any():
            number = f"dtype={np.dtype(self.dtype).name!r} cannot hold {values[lost].flat[0]:.3g}"
            raise ValueError(f"{number}: use dtype='float64', or scale features and targets before the fit.")
        return held

    def stored(self, array: NDArray[Any]) -> str:
        """Return the name of a constant in the type of the array. Equal constants are stored once."""
        key = (array.dtype.str, array.shape, array.tobytes() if array.dtype != object else tuple(array.tolist()))
        if key not in self.known:
            self.known[key] = self.name()
            self.constants[self.known[key]] = array
        return self.known[key]

    def table(self, values: NDArray[Any]) -> str:
        """Return the name of an array of real or whole numbers as the type of the graph, or int32.

        The file has them in the narrowest exact type, or as distinct numbers and indices: a third of the size.
        """
        is_real = values.dtype.kind == "f"
        wide = self._held(values) if is_real else values.astype(np.int32)
        with np.errstate(over="ignore", under="ignore"):
            types = [np.dtype(name) for name in _NARROW[is_real] if np.array_equal(wide.astype(name), wide)]
        stored = wide.astype(min([*types, wide.dtype], key=lambda dtype: dtype.itemsize))
        if is_real:
            bits, place = np.unique(wide.view(f"i{wide.dtype.itemsize}"), return_inverse=True)  # 0.0 is not -0.0
            if stored.itemsize * bits.size + np.min_scalar_type(len(bits)).itemsize * place.size < stored.nbytes:
                distinct, place = self.table(bits.view(wide.dtype)), place.reshape(values.shape)
                return self.outermost.op("Gather", distinct, self.table(place))
        if stored.dtype == wide.dtype or wide.size == 1:  # `op` looks at constants of one number
            return self.stored(wide)
        return self.outermost.cast(self.stored(stored), wide.dtype)

    def op(self, kind: str, *inputs: ArrayLike, outputs: Sequence[str] = (), **attributes: Any) -> str:
        """Add an operation, in the outermost graph only once; returns the name of its first output."""
        names = [part if isinstance(part, str) else self.constant(part) for part in inputs]
        if kind in _NEUTRAL and (kept := self._kept(kind, *names)):
            return kept
        key = (kind, *names, repr(attributes))
        is_shared = self.outer is None and not outputs
        if is_shared and key in self.known:
            return self.known[key]
        made = list(outputs) or [self.name()]
        if is_shared:
            self.known[key] = made[0]
        self.nodes.append(library().helper.make_node(kind, names, made, **attributes))
        return made[0]

    def reshaped(self, x: str, *shape: int) -> str:
        """Add an array in another shape."""
        return self.op("Reshape", x, int64(*shape))

    def cast(self, x: str, dtype: DTypeLike) -> str:
        """Add an array in another type of numpy."""
        return self.op("Cast", x, to=_tensor_type(dtype))

    def _kept(self, kind: str, x: str, y: str) -> str:
        """Add an equivalent of an operation that onnxruntime would remove by mistake; return "" if there is no need.

        Its optimizer (`NoopElimination`) compares single constants with 0 or 1 in float32, so it removes the addition
        of 1e-46, and the product with 1 + 1e-9. It does not remove `Sum`, nor two factors that are not 1.
        """
        if kind in ("Add", "Mul") and self._number(x) is not None:
            x, y = y, x
        constant, neutral = self._number(y), _NEUTRAL[kind]
        with np.errstate(over="ignore", under="ignore"):
            if constant is None or constant == neutral or constant.astype(np.float32) != neutral:
                return ""
        if kind in ("Add", "Sub"):
            return self.op("Sum", x, constant if kind == "Add" else -constant)
        return self.op(kind, self.op(kind, x, constant / 2), np.array(2.0))

    def _number(self, name: str) -> NDArray[np.floating] | None:
        """Return a constant if it is a single real number, of any shape; otherwise None."""
        array = self.constants.get(name)
        return array if array is not None and array.dtype.kind == "f" and array.size == 1 else None

    def inner(self) -> Graph:
        """Return an empty graph that can read the values of this one."""
        return replace(self, nodes=[], outer=self)

    def proto(self, inputs: Sequence[ValueInfoProto], outputs: Sequence[ValueInfoProto]) -> GraphProto:
        """Return the graph; the outermost one includes the constants."""
        onnx, held = library(), self.constants if self.outer is None else {}
        tensors = [onnx.numpy_helper.from_array(array, name) for name, array in held.items()]
        return onnx.helper.make_graph(self.nodes, "boostbp", list(inputs), list(outputs), tensors)

    def typed(
        self, name: str, dtype: DTypeLike | None = None, shape: Sequence[str | int | None] | None = None
    ) -> ValueInfoProto:
        """Return the declaration of a value: by default of real numbers, without a shape."""
        kind = _tensor_type(self.dtype if dtype is None else dtype)
        return library().helper.make_tensor_value_info(name, kind, shape)

    def either(self, condition: str, then: Callable[[Graph], str], otherwise: Callable[[Graph], str]) -> str:
        """Add a branch: a condition decides at run time which of two functions' operations run."""
        protos = []
        for branch in (then, otherwise):
            inner = self.inner()
            protos.append(inner.proto([], [inner.typed(branch(inner))]))
        # a new name, as `op` would merge operations with the same inputs, and does not compare branches
        return self.op("If", condition, outputs=[self.name()], then_branch=protos[0], else_branch=protos[1])


def int64(*values: int) -> NDArray[np.int64]:
    """Return whole numbers in the type that ONNX needs for shapes and axes."""
    return np.array(values, np.int64)
