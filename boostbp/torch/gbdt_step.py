"""GBDTStep: training steps of all tree layers of a torch model."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from boostbp.network.steps import pace_after
from boostbp.runtime import checks, interrupts
from boostbp.runtime.arrays import Floats, errstate_in_methods
from boostbp.torch.gathered import Numbers, StepTarget, check_known, in_order
from boostbp.torch.module import GBDTModule
from boostbp.torch.states import progress_of, progress_record
from boostbp.torch.tensors import Tensor, torch

FORMAT, STEP_VERSION = "boostbp.GBDTStep", 4


@errstate_in_methods
class GBDTStep:
    """Training steps of all tree layers of a model, in addition to a torch optimizer for its other parameters.

    `boostbp.torch` has the rules.

    Parameters
    ----------
    model : nn.Module
        Any model with at least one `GBDTModule`.
    n_rows : int, optional
        Number of rows of every tree layer in a step: that of the training data, or twice that for a layer that is used
        at two places. It is required if modules that learn are below all tree layers. Without it, rows of data must be
        the same in each step. With it they may be other rows, as by augmentation, but not the same rows in another
        order that was not announced.

    Attributes
    ----------
    layers : list of GBDTModule
    losses : list of float
        The losses that `step` received.
    """

    def __init__(self, model: torch.nn.Module, *, n_rows: int | None = None) -> None:
        self.layers = [module for module in model.modules() if isinstance(module, GBDTModule)]
        if not self.layers:
            raise ValueError(f"model={type(model).__name__} has no GBDTModule in it: there is nothing to step.")
        self.losses: list[float] = []
        if n_rows is not None:
            for layer in self.layers:
                layer.expected_rows = checks.whole("n_rows", n_rows, 1)

    def zero_grad(self) -> None:
        """Drop the gathered rows and gradients, for example of passes that train only neural layers."""
        for layer in self.layers:
            layer.zero_grad()

    def rows(self, numbers: ArrayLike | None) -> None:
        """Announce the numbers of the training rows of the next forward calls, (rows,); None: the order of the calls.

        Announced mini-batches may be shuffled and lack a few rows, and each row keeps its momentum. A step, its
        weights and the targets of `GBDTModule.boost` are then in ascending order of the numbers.
        """
        announced = None
        if numbers is not None:
            row_numbers = np.asarray(numbers.cpu() if isinstance(numbers, torch.Tensor) else numbers)
            if row_numbers.ndim != 1 or row_numbers.dtype.kind not in "iu":
                kind = f"shape {row_numbers.shape}, dtype {row_numbers.dtype}"
                raise ValueError(f"numbers has {kind}: give whole numbers, (rows,).")
            announced = row_numbers.astype(np.int64)
        for layer in self.layers:
            layer._announced = announced

    def step(
        self,
        forward: Callable[[], object] | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        loss: float | Tensor | None = None,
    ) -> None:
        """Move the outputs of every tree layer that got a gradient, and fit its trees again.

        Parameters
        ----------
        forward : callable, optional
            Function that runs the model on the same rows again, such as ``lambda: model(x)``. Layers are then fitted
            from the input up, each on the new output of those below, which is more stable. It is called without
            gradients, once for each tree layer but the first, in the mode of the model; batch normalisation counts its
            rows each time. Without it, each layer is fitted on its old input, as in the paper. Rows must have the order
            of the calls of the step; announced rows are in ascending order of number, or announced in `forward` again.
        sample_weight : (rows,) array-like, optional
            See `GBDTModule.step`.
        loss : float or tensor of one number, optional
            The training loss of the rows. If each step gets it, steps are multiplied by the `decay` of a layer's rule
            (one half) after every 16 steps without a lower loss, without which trees would not converge.

        Raises
        ------
        RuntimeError
            If no gradient reached any tree layer.
        ValueError
            As `GBDTModule.step`; if `forward` passes other rows, or the loss is not finite. After an error all layers
            are as they were before the step.
        """
        active = [layer for layer in self.layers if layer._gathered]
        if not active:
            raise RuntimeError("no gradient reached a tree layer: call the model in train mode, then loss.backward().")
        expected = next((layer.expected_rows for layer in active if layer.expected_rows is not None), None)
        check_known(expected, *(layer._gathered for layer in active))
        losses = self.losses
        if loss is not None:
            losses = [*losses, float(loss.detach() if isinstance(loss, torch.Tensor) else loss)]
            if not np.isfinite(losses[-1]):
                raise ValueError(f"loss={losses[-1]}: it must be finite. Take smaller steps, or check other modules.")
        with _all_or_none(active):
            moved = []
            for layer in active:
                pace = pace_after(losses, getattr(layer.rule, "decay", 1.0))
                moved.append((layer, layer.move(sample_weight=sample_weight, pace=pace)))
            moved.sort(key=lambda pair: pair[1].first)
            for place, (layer, target) in enumerate(moved):
                if forward is not None and place > 0:
                    target = target._replace(X=self._inputs(forward, moved, place))
                layer.fit_moved(target)
        self.losses = losses

    def state_dict(self) -> dict[str, Any]:
        """Return the state of training except the trees: momentum, rows, random numbers and losses.

        Save it with the states of the model and of the optimizer.
        """
        records = [progress_record(layer) for layer in self.layers]
        return {"format": FORMAT, "version": STEP_VERSION, "losses": list(self.losses), "layers": records}

    @interrupts.deferred()  # an exception of a signal handler must not look like a fault of the state
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state. Load the state of the model before, as this resets the training of its trees.

        Raises
        ------
        ValueError
            If it is not such a state, or is one of other tree layers or of another moment than that of the model. All
            layers stay as they are.
        """
        if not isinstance(state, Mapping) or state.get("format") != FORMAT:
            raise ValueError("this is not the state of a GBDTStep: load what its state_dict() gave.")
        if state.get("version") != STEP_VERSION:
            known = f"version {state.get('version')}, not {STEP_VERSION}"
            raise ValueError(f"the state has {known}: update boostbp, or save it anew.")
        try:
            losses = [float(loss) for loss in state["losses"]]
            records = list(state["layers"])
            if len(records) != len(self.layers):
                raise ValueError(f"the state is of {len(records)} tree layers, and the model has {len(self.layers)}.")
            progress = [progress_of(layer, record) for layer, record in zip(self.layers, records, strict=True)]
        except Exception as error:  # a foreign state may cause any error
            raise ValueError(f"the state is damaged, or not of this model: {error or type(error).__name__}") from error
        for layer, of_layer in zip(self.layers, progress, strict=True):
            layer._gathered.start_anew()
            layer._last, layer._momentum, layer._random, layer.expected_rows = of_layer
        self.losses = losses

    def _inputs(self, forward: Callable[[], object], moved: list[tuple[GBDTModule, StepTarget]], place: int) -> Floats:
        """Return the input of a layer in another run of the model on its rows."""
        announced = [layer._announced for layer in self.layers]
        watched: list[list[tuple[Floats, Numbers]]] = [[] for _ in moved]
        for (layer, _), calls in zip(moved, watched, strict=True):
            layer._watched = calls
        self.rows(None)
        try:
            with torch.no_grad():
                forward()
        finally:
            for layer, numbers in zip(self.layers, announced, strict=True):
                layer._announced, layer._watched = numbers, None
        inputs = _input_of(watched[place])
        n_rows = len(moved[place][1].X)
        if len(inputs) != n_rows:
            raise ValueError(f"forward() brought {len(inputs)} rows where the step has {n_rows}: run the same rows.")
        for (_, target), calls in zip(moved, watched, strict=True):
            if target.hashes is not None and not np.array_equal(_input_of(calls), target.X, equal_nan=True):
                raise ValueError(
                    "forward() brought other rows than the step has, or in another order: run them in that of the "
                    "calls, or of announced numbers. Where modules draw at random, as dropout does, call step() "
                    "without forward."
                )
        return inputs


@contextmanager
def _all_or_none(layers: list[GBDTModule]) -> Iterator[None]:
    """Restore all layers, including gathered gradients, if the step of one fails."""
    names = ("layer", "baseline", "in_features", "_momentum", "_last")
    states = [{name: getattr(layer, name) for name in names} for layer in layers]
    for layer, state in zip(layers, states, strict=True):
        state["_random"] = copy.deepcopy(layer._random)
    pending = [(layer._gathered.calls.copy(), layer._gathered.fit) for layer in layers]
    try:
        yield
    except BaseException:
        for layer, state, calls in zip(layers, states, pending, strict=True):
            layer.__dict__.update(state)
            layer._gathered.calls, layer._gathered.fit = calls
        raise


def _input_of(calls: list[tuple[Floats, Numbers]]) -> Floats:
    """Return the rows of all calls, in the order of their numbers if these are known."""
    inputs = [X for X, _ in calls] or [np.empty((0, 0))]
    return np.concatenate(inputs)[in_order([rows for _, rows in calls])[0]]
