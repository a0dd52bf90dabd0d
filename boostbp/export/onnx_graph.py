"""Graph: nodes, constants and subgraphs of an ONNX model that is being written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp.extras import require

OPSET = 18
IR_VERSION = 8  # that of opset 18


def library() -> Any:
    """Return the package onnx.

    Raises
    ------
    ImportError
        If it is not installed; the message says how to.
    """
    return require("onnx", extra="onnx", what="to_onnx")


@dataclass
class Graph:
    """A graph, or the body of a loop or branch within one; all share constants and names.

    Attributes
    ----------
    dtype : dtype
        Of all real numbers, float64 or float32.
    nodes : list of NodeProto
    constants : dict of key to TensorProto
    names : list of one int
        How many names were given.
    outer : Graph or None
        What this one stands in.
    known : dict of key to str
        The first output of each operation of the outermost graph.
    """

    dtype: Any
    nodes: list[Any] = field(default_factory=list)
    constants: dict[tuple[Any, ...], Any] = field(default_factory=dict)
    names: list[int] = field(default_factory=lambda: [0])
    outer: Graph | None = None
    known: dict[tuple[str, ...], str] = field(default_factory=dict)

    @property
    def outermost(self) -> Graph:
        """Return the graph whose nodes run once."""
        return self if self.outer is None else self.outer.outermost

    @property
    def real(self) -> int:
        """Return ONNX's number of the type of real numbers."""
        return int(library().helper.np_dtype_to_tensor_dtype(np.dtype(self.dtype)))

    def name(self) -> str:
        """Return a new name."""
        self.names[0] += 1
        return f"t{self.names[0]}"

    def constant(self, values: Any) -> str:
        """Return the name of a constant; real numbers are rounded to the type of the graph, equal ones stored once.

        Raises
        ------
        ValueError
            If a number is too large for the type, or so small that it would be 0.
        """
        array = np.ascontiguousarray(values).reshape(np.shape(values))  # a scalar stays one
        if array.dtype.kind == "f":
            with np.errstate(over="ignore", under="ignore"):
                rounded = array.astype(self.dtype)
            lost = (np.isfinite(array) & ~np.isfinite(rounded)) | ((array != 0) & (rounded == 0))
            if lost.any():
                raise ValueError(
                    f"dtype={np.dtype(self.dtype).name!r} does not hold {array[lost].flat[0]:.3g}, a slope or bound of "
                    "this model: use dtype='float64', or multiply the features by constants before the fit."
                )
            array = rounded
        key = (array.dtype.str, array.shape, array.tobytes() if array.dtype != object else tuple(array.tolist()))
        if key not in self.constants:
            self.constants[key] = library().numpy_helper.from_array(array, self.name())
        return str(self.constants[key].name)

    def op(self, kind: str, *inputs: Any, outputs: Sequence[str] = (), domain: str = "", **attributes: Any) -> str:
        """Add an operation; inputs that are no names are constants. Returns the name of the first output.

        What runs once is added once.
        """
        names = [part if isinstance(part, str) else self.constant(part) for part in inputs]
        key = (kind, *names, repr(attributes)) if self.outer is None and not outputs else ()
        if key in self.known:
            return self.known[key]
        made = list(outputs) or [self.name()]
        if key:
            self.known[key] = made[0]
        self.nodes.append(library().helper.make_node(kind, names, made, domain=domain, **attributes))
        return made[0]

    def inner(self) -> Graph:
        """Return an empty graph that sees what this one has computed."""
        return Graph(self.dtype, [], self.constants, self.names, self)

    def proto(self, inputs: Sequence[Any], outputs: Sequence[Any], *, constants: bool = False) -> Any:
        """Return the GraphProto of what was added."""
        held = list(self.constants.values()) if constants else []
        return library().helper.make_graph(self.nodes, "boostbp", list(inputs), list(outputs), held)

    def typed(self, name: str, dtype: Any = None, shape: Sequence[Any] | None = None) -> Any:
        """Return the declaration of a value; real numbers, of no said shape, if nothing is said."""
        helper = library().helper
        kind = self.real if dtype is None else dtype
        return helper.make_tensor_value_info(name, kind, shape)

    def either(self, condition: str, then: Callable[[Graph], str], otherwise: Callable[[Graph], str]) -> str:
        """Add a branch: what one or the other of two functions adds, by a condition that is met at run time."""
        protos = []
        for branch in (then, otherwise):
            inner = self.inner()
            protos.append(inner.proto([], [inner.typed(branch(inner))]))
        return self.op("If", condition, then_branch=protos[0], else_branch=protos[1])


def int64(*values: int) -> NDArray[np.int64]:
    """Return whole numbers as ONNX takes shapes and axes."""
    return np.array(values, np.int64)
