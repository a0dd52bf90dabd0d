"""Forward and backward of fitted trees under autograd, and tensors as arrays."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boostbp.extras import require
from boostbp.interop.gathered import Call, Gathered
from boostbp.learning.layers import Layer, Trace

if TYPE_CHECKING:
    import torch
    from torch import Tensor
    from torch.autograd.function import once_differentiable
else:
    torch = require("torch", extra="torch", what="boostbp.interop.torch_bridge")
    once_differentiable = torch.autograd.function.once_differentiable

__all__ = ["Trees", "TreesPass", "as_floats", "as_input", "as_targets", "as_tensor"]

Floats = NDArray[np.float64]
_numbers = itertools.count()


class Trees(NamedTuple):
    """What a pass needs of a module.

    Attributes
    ----------
    layer : Layer
    baseline : (outputs,) float64
    n_threads : int
    gathered : Gathered or None
        Where dL/doutput goes; None in eval mode.
    mean : bool
        Whether the loss is a mean over the rows of a call, so that gradients are to be multiplied by their number.
    rows : (rows,) int64 or None
        Row numbers of the call.
    """

    layer: Layer
    baseline: Floats
    n_threads: int
    gathered: Gathered | None
    mean: bool
    rows: NDArray[np.int64] | None


class TreesPass(torch.autograd.Function):
    """(rows, features) -> (rows, outputs) with dL/dinput by `Trace.vjp`.

    The second argument has no values. It requires a gradient in train mode, so that autograd calls
    backward even where the input is data, which require none.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, anchor: Tensor, trees: Trees, X: Floats) -> Tensor:
        """Output in the type and on the device of `x`; `X` are the same numbers as float64."""
        h, trace = trees.layer.forward(X, n_jobs=trees.n_threads)
        h += trees.baseline
        ctx.like, ctx.trace, ctx.trees, ctx.call = x.new_empty(0), trace, trees, None
        if trees.gathered is not None:
            ctx.call = Call(next(_numbers), trees.gathered.fit, X, h, trees.rows)
            h = h.copy()  # a float64 output shares its memory, and may be changed in place
        return as_tensor(h, x)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, None, None, None]:
        """dL/dinput; dL/doutput is left with the module."""
        trace: Trace = ctx.trace
        trees: Trees = ctx.trees
        G = as_floats(grad)
        if trees.gathered is not None:
            trees.gathered.add(ctx.call, G * len(G) if trees.mean else G)
        grad_x = as_tensor(trace.vjp(G), ctx.like) if ctx.needs_input_grad[0] else None
        return grad_x, None, None, None


def as_floats(values: Any) -> Floats:
    """A tensor or array as float64 on the CPU, in memory of its own: tensors may be changed in place."""
    if isinstance(values, torch.Tensor):
        values = values.detach().to("cpu", torch.float64).numpy()
    return np.array(values, np.float64, order="C")


def as_tensor(values: Floats, like: Tensor) -> Tensor:
    """An array as a tensor in the type and on the device of another."""
    return torch.from_numpy(values).to(like.device, like.dtype)


def as_input(x: Any, in_features: int | None) -> Floats:
    """The input of a module as float64 in memory of its own, (rows, features), checked."""
    if isinstance(x, torch.Tensor) and not x.is_floating_point():
        raise ValueError(f"x has dtype {x.dtype}: a tree layer takes floating types. Use x.float().")
    X = as_floats(x)
    if X.ndim != 2:
        raise ValueError(f"x has shape {X.shape}: a tree layer takes (rows, features). Reshape it, as by x.flatten(1).")
    if in_features is not None and X.shape[1] != in_features:
        raise ValueError(f"x has {X.shape[1]} features, and this module in_features={in_features}.")
    if np.isinf(X).any():
        raise ValueError("x has infinite values: clip them, or replace them by NaN, which means missing.")
    return X


def as_targets(y: Any, n_outputs: int) -> Floats:
    """Targets as (rows, outputs); class numbers, (rows,), become one-hot rows."""
    target = as_floats(y)
    if target.ndim == 1 and n_outputs > 1:
        if not np.isin(target, np.arange(n_outputs)).all():
            raise ValueError(
                f"y has shape {target.shape} and values that are no class numbers 0 to {n_outputs - 1}: "
                f"give (rows, {n_outputs})."
            )
        return np.eye(n_outputs)[target.astype(int)]
    target = target.reshape(len(target), -1)
    if target.shape[1] != n_outputs or not np.isfinite(target).all():
        raise ValueError(f"y has shape {target.shape}: give finite numbers, (rows, {n_outputs}).")
    return target
