"""Forward and backward of fitted trees under autograd, and tensors as arrays."""

from __future__ import annotations

import itertools
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from boostbp.extras import require
from boostbp.floats import Floats
from boostbp.layers import Layer, Trace
from boostbp.torch.gathered import ForwardCall, PendingCalls

if TYPE_CHECKING:
    import torch
    from torch import Tensor
    from torch.autograd import forward_ad
else:
    torch = require("torch", extra="torch", what="boostbp.torch")
    forward_ad = torch.autograd.forward_ad

NOT_FINITE = "dL/doutput has values that are not finite: look into the loss and the modules above."
_jit: Any = torch.jit
_numbers = itertools.count()


class Trees(NamedTuple):
    """What a pass needs of a module."""

    layer: Layer
    baseline: Floats  # (outputs,) float64
    n_threads: int
    gathered: PendingCalls | None  # where dL/doutput goes; None in eval mode
    # whether the loss is a mean over the rows of a call, so that gradients are to be multiplied by their number
    mean: bool
    rows: NDArray[np.int64] | None  # (rows,) int64 or None: row numbers of the call

    def run(self, x: Tensor, X: Floats) -> Tensor:
        """Output, (rows, outputs), in the type and on the device of `x`; `X` are the same numbers as float64."""
        h, trace = self.layer.forward(X, n_jobs=self.n_threads)
        h += self.baseline
        anchor = torch.empty(0, device="cpu")
        if self.gathered is not None:
            # A leaf in the place of the output: what backward accumulates in it is dL/doutput. It is reached even
            # where the input is data, which require no gradient, and not by torch.autograd.grad, which trains nothing.
            anchor = torch.empty(h.shape, dtype=torch.float64, device="cpu", requires_grad=True)
            call = ForwardCall(next(_numbers), self.gathered.fit, X, h.copy(), self.rows, not x.requires_grad)
            anchor.register_post_accumulate_grad_hook(partial(_leave, self.gathered, call, self.mean))
        output: Tensor = _Pass.apply(x, anchor, h, trace)
        return output


def _leave(gathered: PendingCalls, call: ForwardCall, mean: bool, anchor: Tensor) -> None:
    """Leave dL/doutput of a call with the module."""
    G, anchor.grad = as_floats(anchor.grad), None
    gathered.add(call, G * len(G) if mean else G)


class _Pass(torch.autograd.Function):
    """(rows, features) -> (rows, outputs) with dL/dinput by `Trace.vjp`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, anchor: Tensor, h: Floats, trace: Trace) -> Tensor:
        ctx.save_for_backward(*([x] if x.requires_grad else []))
        ctx.trace = trace
        return as_tensor(h, x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
        slope = left = None
        if torch.isnan(grad).any():
            raise ValueError(NOT_FINITE)
        if ctx.needs_input_grad[0]:
            # a graph of this pass is asked for: that input and gradient are known makes a second derivative raise
            again = torch.is_grad_enabled()
            slope = _Slope.apply(*ctx.saved_tensors, grad, ctx.trace) if again else _slope(grad, ctx.trace)
        if ctx.needs_input_grad[1]:
            left = _on_cpu(grad)
        return slope, left, None, None


class _Slope(torch.autograd.Function):
    """dL/dinput, for a graph of the backward pass."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, grad: Tensor, trace: Trace) -> Tensor:
        return _slope(grad, trace)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> NoReturn:
        raise RuntimeError(
            "a second derivative through a tree layer: there are first ones only. Detach its slope, or leave out what "
            "differentiates it, such as a gradient penalty."
        )


def _slope(grad: Tensor, trace: Trace) -> Tensor:
    return as_tensor(trace.vjp(as_floats(grad)), grad)


def as_floats(values: Any) -> Floats:
    """A tensor or array as float64 on the CPU, in memory of its own: tensors may be changed in place."""
    if isinstance(values, torch.Tensor):
        values = _on_cpu(values).numpy()
    return np.array(values, np.float64, order="C")


def is_tensor(values: Any) -> bool:
    """Whether it is a tensor of torch."""
    return isinstance(values, torch.Tensor)


def _on_cpu(values: Tensor) -> Tensor:
    """As float64 on the CPU, without a graph; copied first, as not every device has float64."""
    return values.detach().to("cpu").to(torch.float64)


def drawn_seed() -> int:
    """A seed from the generator of torch."""
    return int(torch.randint(2**31 - 1, (), device="cpu"))


def has_tangent(x: Tensor) -> bool:
    """Whether it carries a tangent of forward-mode differentiation."""
    return forward_ad.unpack_dual(x).tangent is not None


def learns_from(x: Tensor, cells: NDArray[np.bool_], *, nan: bool = True) -> bool:
    """Whether a learning module gets a gradient from some cells of a tensor; a gradient of NaN counts.

    Leaves with NaN are data, not weights.
    """
    leaves = [leaf for leaf in _leaves(x) if isinstance(leaf, torch.nn.Parameter) or not torch.isnan(leaf).any()]
    if not leaves:
        return False
    slope = torch.from_numpy(cells).to(x.device, x.dtype)
    slopes = torch.autograd.grad(x, leaves, slope, retain_graph=True, allow_unused=True)
    return any(bool(((slope != 0) & (nan | ~torch.isnan(slope))).any()) for slope in slopes if slope is not None)


def _leaves(x: Tensor) -> list[Tensor]:
    """Return the leaves of a tensor's graph that require a gradient."""
    leaves: list[Tensor] = []
    nodes: list[Any] = [x.grad_fn]
    known = {x.grad_fn}
    while nodes:
        node = nodes.pop()
        if hasattr(node, "variable"):
            leaves.append(node.variable)
        for following, _ in node.next_functions:
            if following is not None and following not in known:
                known.add(following)
                nodes.append(following)
    return leaves


def as_tensor(values: Floats, like: Tensor) -> Tensor:
    """An array as a tensor in the type and on the device of another."""
    return torch.from_numpy(values).to(like.device, like.dtype)


def as_input(x: Any, in_features: int | None) -> Floats:
    """The input of a module as float64 in memory of its own, (rows, features), checked."""
    if isinstance(x, torch.Tensor) and not x.is_floating_point():
        raise ValueError(f"x has dtype {x.dtype}: a tree layer takes floating types. Use x.float().")
    if isinstance(x, torch.Tensor) and x.layout is not torch.strided:
        raise ValueError(f"x has the layout {x.layout}: a tree layer takes dense tensors. Use x.to_dense().")
    if _jit.is_tracing():
        raise RuntimeError("torch.jit.trace and ONNX do not see into trees: they would keep the output of these rows.")
    try:
        X = as_floats(x)
    except RuntimeError as error:  # a tensor without numbers
        raise RuntimeError(
            "x has no numbers that could be read, as inside torch.func, torch.jit or on the device 'meta': a tree "
            f"layer computes outside of torch. Use torch.autograd for its gradients. ({error})"
        ) from error
    if X.ndim != 2:
        raise ValueError(f"x has shape {X.shape}: a tree layer takes (rows, features). Reshape it, as by x.flatten(1).")
    if in_features is not None and X.shape[1] != in_features:
        raise ValueError(f"x has {X.shape[1]} features, and this module in_features={in_features}.")
    if np.isinf(X).any():
        raise ValueError("x has infinite values: clip them, or replace them by NaN, which means missing.")
    return X


def as_targets(y: Any, n_outputs: int, n_rows: int) -> Floats:
    """Targets as (rows, outputs); class numbers, (rows,), become one-hot rows."""
    target = as_floats(y)
    rows = len(target) if target.ndim else 0
    if rows != n_rows:
        raise ValueError(f"y has {rows} rows and the input has {n_rows}: give one target for each row.")
    if target.ndim == 1 and n_outputs > 1:
        if not np.isin(target, np.arange(n_outputs)).all():
            raise ValueError(
                f"y has shape {target.shape} and values that are no class numbers 0 to {n_outputs - 1}: "
                f"give (rows, {n_outputs})."
            )
        return np.eye(n_outputs)[target.astype(int)]
    target = target.reshape(n_rows, -1) if target.size else target
    if target.ndim != 2 or target.shape[1] != n_outputs or not np.isfinite(target).all():
        raise ValueError(f"y has shape {target.shape}: give finite numbers, (rows, {n_outputs}).")
    return target
