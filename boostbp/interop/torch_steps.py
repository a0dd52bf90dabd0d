"""GBDTStep: steps all tree layers of a torch model."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from boostbp.extras import require
from boostbp.interop.gathered import in_order
from boostbp.interop.torch_layer import GBDTModule

if TYPE_CHECKING:
    import torch
    from torch import nn
else:
    torch = require("torch", extra="torch", what="boostbp.interop.torch_bridge")
    nn = torch.nn

__all__ = ["GBDTStep"]


class GBDTStep:
    """Steps all tree layers of a model, beside the torch optimizer of its other parameters.

    The rules are in `boostbp.interop.torch_bridge`.

    Parameters
    ----------
    model : nn.Module
        Any model with at least one `GBDTModule` in it.

    Attributes
    ----------
    layers : list of GBDTModule
    """

    def __init__(self, model: nn.Module) -> None:
        self.layers = [module for module in model.modules() if isinstance(module, GBDTModule)]
        if not self.layers:
            raise ValueError(f"model={type(model).__name__} has no GBDTModule in it: there is nothing to step.")

    def zero_grad(self) -> None:
        """Drop the gathered rows and gradients, as of passes that only the neural layers learn from."""
        for layer in self.layers:
            layer.zero_grad()

    def rows(self, numbers: Any) -> None:
        """Announce which training rows the next forward calls see, (rows,); None: the order of the calls.

        With it mini-batches may be shuffled, and each row keeps its momentum. A step, its weights and
        the targets of `GBDTModule.boost` then go by ascending number.
        """
        announced = None
        if numbers is not None:
            found = np.asarray(numbers.cpu() if isinstance(numbers, torch.Tensor) else numbers)
            if found.ndim != 1 or found.dtype.kind not in "iu":
                raise ValueError(f"numbers has shape {found.shape}, dtype {found.dtype}: give whole numbers, (rows,).")
            announced = found.astype(np.int64)
        for layer in self.layers:
            layer._announced = announced

    def step(self, forward: Callable[[], object] | None = None, *, sample_weight: Any = None) -> None:
        """Move and fit again every tree layer that got a gradient.

        Parameters
        ----------
        forward : callable, optional
            Runs the model over the same rows again, such as ``lambda: model(x)``. With it layers are
            fitted from the input up, each on the new output of those below: steadier. It is called
            without gradients, once for each tree layer but the first. Without it each layer is
            fitted on its old input, as in the paper.
        sample_weight : (rows,) array-like, optional
            See `GBDTModule.step`.

        Raises
        ------
        RuntimeError
            If no gradient reached any tree layer.
        """
        moved = [(layer, layer.move(sample_weight=sample_weight)) for layer in self.layers if layer._gathered]
        if not moved:
            raise RuntimeError(
                "no gradient reached a tree layer: in train mode call the model and loss.backward() first."
            )
        moved.sort(key=lambda pair: pair[1].first)
        for place, (layer, target) in enumerate(moved):
            if forward is not None and place > 0:
                target = target._replace(X=_input_of(layer, forward, len(target.X)))
            layer.fit_moved(target)


def _input_of(layer: GBDTModule, forward: Callable[[], object], n_rows: int) -> NDArray[np.float64]:
    """What comes to a layer when the model runs over its rows again."""
    seen: list[Any] = []
    layer._watched = seen
    try:
        with torch.no_grad():
            forward()
    finally:
        layer._watched = None
    n_seen = sum(len(X) for X, _ in seen)
    if n_seen != n_rows:
        raise ValueError(f"forward() brought {n_seen} rows to a tree layer whose step has {n_rows}: run the same rows.")
    inputs: NDArray[np.float64] = np.concatenate([X for X, _ in seen])[in_order([rows for _, rows in seen])[0]]
    return inputs
