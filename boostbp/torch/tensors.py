"""Conversion between tensors and arrays: checks of a tree layer's input and targets, and its passes in autograd."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boostbp.inputs.targets import read_weight, weights_in_rows
from boostbp.network.layers import Trace
from boostbp.runtime.arrays import Floats
from boostbp.runtime.messages import require

if TYPE_CHECKING:
    import torch as torch
    from torch import Tensor as Tensor
else:
    torch = require("torch", extra="torch", what="boostbp.torch")
    Tensor = torch.Tensor

C = TypeVar("C", bound=type)
NOT_FINITE = "dL/doutput has values that are not finite: look into the loss and the modules above."
_CAUSES = "look for a division by 0, a logarithm or infinite weights below this tree layer, or use smaller steps there"
_jit: Any = torch.jit  # untyped
MIN_COMPLETE_ROWS = 20  # with fewer rows, a column without missing values may have many by chance. Arbitrary


def category_columns(categorical: Sequence[int], in_features: int | None) -> tuple[int, ...]:
    """Return the checked columns of category codes."""
    columns: tuple[Any, ...] = tuple(categorical) if isinstance(categorical, Iterable) else (None,)
    if not all(isinstance(j, int | np.integer) and not isinstance(j, bool) for j in columns):
        raise ValueError(f"categorical={categorical!r} is not allowed: give a sequence of column numbers.")
    wrong = [j for j in columns if j < 0 or (in_features is not None and j >= in_features)]
    if wrong:
        allowed = "from 0 on" if in_features is None else f"0 to {in_features - 1}"
        raise ValueError(f"categorical={columns!r}: {wrong[0]} is no column, which are {allowed}.")
    return tuple(map(int, columns))


def weights(sample_weight: ArrayLike | None, n_rows: int) -> Floats:
    """Return the checked weights of rows, (rows,); ones for None."""
    if isinstance(sample_weight, torch.Tensor):
        sample_weight = as_floats(sample_weight)
    return weights_in_rows(read_weight(sample_weight, n_rows))


def as_input(x: ArrayLike, in_features: int | None) -> Floats:
    """Return a checked copy of the input of a module, (rows, features) float64."""
    if isinstance(x, torch.Tensor) and not x.is_floating_point():
        raise ValueError(f"x has dtype {x.dtype}: a tree layer takes floating types. Use x.float().")
    if isinstance(x, torch.Tensor) and x.layout is not torch.strided:
        raise ValueError(f"x has the layout {x.layout}: a tree layer takes dense tensors. Use x.to_dense().")
    if _jit.is_tracing():
        raise RuntimeError("torch.jit.trace and ONNX cannot record trees: they would keep the output of these rows.")
    try:
        X = as_floats(x)
    except RuntimeError as error:  # a tensor without numbers
        where = "inside torch.func, torch.jit or on the device 'meta'"
        raise RuntimeError(f"x has no numbers that could be read, as {where}. Use torch.autograd. ({error})") from error
    if X.ndim != 2:
        raise ValueError(f"x has shape {X.shape}: a tree layer takes (rows, features). Reshape it, as by x.flatten(1).")
    if in_features is not None and X.shape[1] != in_features:
        raise ValueError(f"x has {X.shape[1]} features, and this module in_features={in_features}.")
    if np.isinf(X).any():
        raise ValueError("x has infinite values: clip them, or replace them by NaN, which means missing.")
    return X


def as_targets(y: ArrayLike, n_outputs: int, n_rows: int) -> Floats:
    """Return targets as (rows, outputs); class numbers, (rows,), become one-hot rows."""
    target = as_floats(y)
    rows = len(target) if target.ndim else 0
    if rows != n_rows:
        raise ValueError(f"y has {rows} rows and the input has {n_rows}: give one target for each row.")
    if target.ndim == 1 and n_outputs > 1:
        if not np.isin(target, np.arange(n_outputs)).all():
            cure = f"give 0 to {n_outputs - 1}, or (rows, {n_outputs})"
            raise ValueError(f"y has shape {target.shape} and no class numbers: {cure}.")
        return np.eye(n_outputs)[target.astype(int)]
    target = target.reshape(n_rows, -1) if target.size else target
    if target.ndim != 2 or target.shape[1] != n_outputs or not np.isfinite(target).all():
        raise ValueError(f"y has shape {target.shape}: give finite numbers, (rows, {n_outputs}).")
    return target


def refuse_learnt_nan(x: Tensor, X: Floats) -> None:
    """Refuse NaN from modules that learn; missing cells of data have no gradient to them."""
    missing = np.isnan(X)
    if not missing.any() or not learns_from(x, missing):
        return
    # Name a column with a finite gradient to weights if there is one: a NaN gradient may come from another column.
    columns = np.flatnonzero(missing.any(axis=0))
    learnt = [j for j in columns if learns_from(x, missing & (np.arange(X.shape[1]) == j), nan=False)]
    column = learnt[0] if learnt else columns[0]
    number = np.count_nonzero(missing[:, column])
    raise ValueError(
        f"x is NaN in {'all' if number == len(X) else number} rows of column {column}, which comes from a module that "
        "learns: its weights would become NaN. Give missing cells of data to trees directly, or fill them below such a "
        f"module, as by torch.nan_to_num(x). If there were none, {_CAUSES}."
    )


def refuse_empty_columns(X: Floats, complete: NDArray[np.bool_] | None) -> None:
    """Refuse NaN of modules without a graph: in all rows of a column that was `complete` when trees were fitted."""
    if complete is None or len(X) == 0:
        return
    empty = np.flatnonzero(np.isnan(X).all(axis=0) & complete)
    if len(empty):
        raise ValueError(
            f"x is NaN in all rows of column {empty[0]}, which had no missing value when the trees were fitted, and "
            f"modules stand below: {_CAUSES}."
        )


def uncompiled_forward(cls: C) -> C:
    """Exclude the `forward` of a class from torch.compile, which cannot trace calls of the core."""
    traced: Any = cls.forward  # type: ignore[attr-defined]
    # Disabled once the compiler was imported, which takes as long as importing torch. functools.cache would be traced.
    disabled: list[Any] = []

    @wraps(traced)
    def forward(self: torch.nn.Module, x: Tensor) -> Tensor:
        if "torch._dynamo" in sys.modules and not disabled:
            disabled.append(torch.compiler.disable(traced))
        output: Tensor = (disabled or [traced])[0](self, x)
        return output

    cls.forward = forward  # type: ignore[attr-defined]
    return cls


def differentiable(x: Tensor, h: Floats, trace: Trace, keep_gradient: Callable[[Floats], None] | None) -> Tensor:
    """Return the output `h` of trees, of the kind of `x`; `keep_gradient` gets its gradient in ``backward()``."""
    anchor = torch.empty(0, device="cpu")
    if keep_gradient is not None:
        # A leaf in which backward accumulates dL/doutput, even if the input is data, which require no gradient.
        # torch.autograd.grad, which trains nothing, does not reach it.
        anchor = torch.empty(h.shape, dtype=torch.float64, device="cpu", requires_grad=True)

        def hand_over(anchor: Tensor) -> None:
            assert anchor.grad is not None  # autograd has just accumulated it
            G, anchor.grad = as_floats(anchor.grad), None
            keep_gradient(G)

        anchor.register_post_accumulate_grad_hook(hand_over)
    output: Tensor = _Pass.apply(x, anchor, h, trace)
    return output


class _Pass(torch.autograd.Function):
    """Function (rows, features) -> (rows, outputs), with dL/dinput from `Trace.vjp`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, anchor: Tensor, h: Floats, trace: Trace) -> Tensor:
        ctx.save_for_backward(*([x] if x.requires_grad else []))
        ctx.trace = trace
        return as_tensor(h, x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
        if torch.isnan(grad).any():
            raise ValueError(NOT_FINITE)
        x_grad = None
        if ctx.needs_input_grad[0]:
            # If a graph of this pass is requested, it includes the input, so that a second derivative raises an error.
            inputs = ctx.saved_tensors if torch.is_grad_enabled() else (None,)
            x_grad = _Slope.apply(*inputs, grad, ctx.trace)
        return x_grad, _on_cpu(grad) if ctx.needs_input_grad[1] else None, None, None


class _Slope(torch.autograd.Function):
    """Function that returns dL/dinput, in a graph of the backward pass."""

    @staticmethod
    def forward(ctx: Any, x: Tensor | None, grad: Tensor, trace: Trace) -> Tensor:
        return as_tensor(trace.vjp(as_floats(grad)), grad)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> NoReturn:
        raise RuntimeError("second derivatives through a tree layer are not supported. Detach its gradient.")


def as_floats(values: ArrayLike) -> Floats:
    """Return a copy of a tensor or array as float64 on the CPU, as tensors may be changed in place."""
    if isinstance(values, torch.Tensor):
        values = _on_cpu(values).numpy()
    return np.array(values, np.float64, order="C")


def as_tensor(values: Floats, like: Tensor) -> Tensor:
    """Return an array as a tensor with the type and device of another."""
    return torch.from_numpy(values).to(like.device, like.dtype)


def _on_cpu(values: Tensor) -> Tensor:
    """Return float64 on the CPU, without a graph; moved first, as not every device supports float64."""
    return values.detach().to("cpu").to(torch.float64)


def learns_from(x: Tensor, cells: NDArray[np.bool_], *, nan: bool = True) -> bool:
    """Return whether a module that learns gets a gradient, with `nan` also NaN, from some cells of a tensor."""
    # Leaves with NaN are data, not weights.
    leaves = [leaf for leaf in _leaves(x) if isinstance(leaf, torch.nn.Parameter) or not torch.isnan(leaf).any()]
    if not leaves:
        return False
    grad = torch.from_numpy(cells).to(x.device, x.dtype)
    slopes = torch.autograd.grad(x, leaves, grad, retain_graph=True, allow_unused=True)
    return any(bool(((slope != 0) & (nan | ~torch.isnan(slope))).any()) for slope in slopes if slope is not None)


def _leaves(x: Tensor) -> list[Tensor]:
    """Return the leaves of a tensor's graph that require a gradient."""
    nodes, visited = list[Any]([x.grad_fn]), {x.grad_fn, None}
    for node in nodes:  # the list grows
        following = {child for child, _ in node.next_functions} - visited
        visited |= following
        nodes += following
    return [node.variable for node in nodes if hasattr(node, "variable")]
