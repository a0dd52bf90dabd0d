"""Forward and backward of fitted trees under autograd, torch.compile, and tensors as arrays."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boostbp.layers import Trace
from boostbp.runtime.arrays import Floats
from boostbp.runtime.messages import require

if TYPE_CHECKING:
    import torch
    from torch import Tensor
else:
    torch = require("torch", extra="torch", what="boostbp.torch")

C = TypeVar("C", bound=type)
NOT_FINITE = "dL/doutput has values that are not finite: look into the loss and the modules above."


def uncompiled_forward(cls: C) -> C:
    """Exclude the `forward` of a class from torch.compile: trees are compiled already, and it cannot trace NumPy code.

    ``torch.compiler.disable`` imports the compiler, which takes as long as importing torch, so it is applied only once
    the compiler is imported.
    """
    traced: Any = cls.forward  # type: ignore[attr-defined]
    disabled: list[Any] = []

    @wraps(traced)
    def forward(self: Any, x: Any) -> Any:
        if "torch._dynamo" not in sys.modules:
            return traced(self, x)
        if not disabled:
            disabled.append(torch.compiler.disable(traced))
        return disabled[0](self, x)

    cls.forward = forward  # type: ignore[attr-defined]
    return cls


def differentiable(x: Tensor, h: Floats, trace: Trace, keep_gradient: Callable[[Floats], None] | None) -> Tensor:
    """Return the output `h`, (rows, outputs), of trees on `x`, in the type and on the device of `x`, with its gradient.

    `keep_gradient`, if any, is called with dL/doutput, (rows, outputs) float64, in each ``backward()``.
    """
    anchor = torch.empty(0, device="cpu")
    if keep_gradient is not None:
        # A leaf in the place of the output: what backward accumulates in it is dL/doutput. Backward reaches it even
        # where the input is data, which require no gradient; torch.autograd.grad, which trains nothing, does not.
        anchor = torch.empty(h.shape, dtype=torch.float64, device="cpu", requires_grad=True)

        def hand_over(anchor: Tensor) -> None:
            assert anchor.grad is not None  # autograd has just accumulated it
            G, anchor.grad = as_floats(anchor.grad), None
            keep_gradient(G)

        anchor.register_post_accumulate_grad_hook(hand_over)
    output: Tensor = _Pass.apply(x, anchor, h, trace)
    return output


class _Pass(torch.autograd.Function):
    """(rows, features) -> (rows, outputs) with dL/dinput by `Trace.vjp`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, anchor: Tensor, h: Floats, trace: Trace) -> Tensor:
        ctx.save_for_backward(*([x] if x.requires_grad else []))
        ctx.trace = trace
        return as_tensor(h, x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
        x_grad = anchor_grad = None
        if torch.isnan(grad).any():
            raise ValueError(NOT_FINITE)
        if ctx.needs_input_grad[0] and torch.is_grad_enabled():
            # A graph of this pass is asked for: with input and gradient in it, a second derivative raises.
            x_grad = _Slope.apply(*ctx.saved_tensors, grad, ctx.trace)
        elif ctx.needs_input_grad[0]:
            x_grad = _slope(grad, ctx.trace)
        if ctx.needs_input_grad[1]:
            anchor_grad = _on_cpu(grad)
        return x_grad, anchor_grad, None, None


class _Slope(torch.autograd.Function):
    """dL/dinput, for a graph of the backward pass."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, grad: Tensor, trace: Trace) -> Tensor:
        return _slope(grad, trace)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> NoReturn:
        raise RuntimeError(
            "a second derivative through a tree layer: only first derivatives exist. Detach its slope, or leave out "
            "what differentiates it, such as a gradient penalty."
        )


def _slope(grad: Tensor, trace: Trace) -> Tensor:
    return as_tensor(trace.vjp(as_floats(grad)), grad)


def as_floats(values: ArrayLike) -> Floats:
    """Return a tensor or array as float64 on the CPU, in memory of its own: tensors may be changed in place."""
    if isinstance(values, torch.Tensor):
        values = _on_cpu(values).numpy()
    return np.array(values, np.float64, order="C")


def as_tensor(values: Floats, like: Tensor) -> Tensor:
    """Return an array as a tensor in the type and on the device of another."""
    return torch.from_numpy(values).to(like.device, like.dtype)


def _on_cpu(values: Tensor) -> Tensor:
    """Return float64 on the CPU, without a graph; the copy comes first, as not every device has float64."""
    return values.detach().to("cpu").to(torch.float64)


def learns_from(x: Tensor, cells: NDArray[np.bool_], *, nan: bool = True) -> bool:
    """Return whether a learning module gets a gradient from some cells of a tensor; `nan`: whether NaN counts as one.

    Leaves with NaN are data, not weights.
    """
    leaves = [leaf for leaf in _leaves(x) if isinstance(leaf, torch.nn.Parameter) or not torch.isnan(leaf).any()]
    if not leaves:
        return False
    grad = torch.from_numpy(cells).to(x.device, x.dtype)
    slopes = torch.autograd.grad(x, leaves, grad, retain_graph=True, allow_unused=True)
    return any(bool(((slope != 0) & (nan | ~torch.isnan(slope))).any()) for slope in slopes if slope is not None)


def _leaves(x: Tensor) -> list[Tensor]:
    """Return the leaves of a tensor's graph that require a gradient."""
    leaves: list[Tensor] = []
    nodes: list[Any] = [x.grad_fn]
    visited = {x.grad_fn, None}
    while nodes:
        node = nodes.pop()
        if hasattr(node, "variable"):
            leaves.append(node.variable)
        following = {child for child, _ in node.next_functions} - visited
        visited |= following
        nodes.extend(following)
    return leaves
