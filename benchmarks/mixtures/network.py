"""MixtureNetwork: neural layers and one tree layer in a row, with the interface of `Network`."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from threading import Event, RLock, Thread
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from boostbp.runtime.arrays import errstate_in_methods
from boostbp.runtime.interrupts import fork_safe
from boostbp.runtime.messages import require
from boostbp.torch import GBDTModule
from boostbp.trees.sparse import Table
from boostbp.trees.sparse import dense as numbers

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn
else:
    torch = require("torch", extra="torch", what="benchmarks.mixtures")
    nn = torch.nn

__all__ = ["ACTIVATIONS", "Columns", "Dense", "MixtureNetwork", "dense", "torch_threads"]

Floats = NDArray[np.float64]
ACTIVATIONS: dict[str, Any] = {"gelu": nn.GELU, "identity": nn.Identity, "relu": nn.ReLU, "tanh": nn.Tanh}


class Columns(nn.Module):
    """The input of neural layers: numbers at mean 0 and standard deviation 1, categories as indicators.

    A missing number counts as the mean; a category that is missing or was not seen has no indicator.
    """

    def __init__(self, table: Table, weight: Floats) -> None:
        super().__init__()
        self.categorical = list(table.categorical)
        self.numeric = [j for j in range(table.X.shape[1]) if j not in table.categorical]
        self.codes = [1 + int(np.fmax.reduce(table.X[:, j], initial=-1.0)) for j in self.categorical]
        X = table.X[:, self.numeric]
        present = np.where(np.isnan(X), 0.0, weight[:, None])
        with np.errstate(all="ignore"):
            mean = np.nan_to_num((present * np.nan_to_num(X)).sum(0) / present.sum(0))
            std = np.sqrt((present * np.square(np.nan_to_num(X - mean))).sum(0) / present.sum(0))
            varies = np.isfinite(std) & (std > 1e-12 * np.abs(mean))
            scale = np.where(varies, 1.0 / std, 0.0)
        self.mean: Tensor
        self.scale: Tensor
        self.register_buffer("mean", torch.from_numpy(mean))
        self.register_buffer("scale", torch.from_numpy(scale))

    @property
    def width(self) -> int:
        """Number of columns that come out."""
        return len(self.numeric) + sum(self.codes)

    def forward(self, x: Tensor) -> Tensor:
        """(rows, features) float64 -> (rows, columns) float32."""
        parts = [torch.nan_to_num((x[:, self.numeric] - self.mean) * self.scale)]
        parts += [
            (x[:, [j]] == torch.arange(codes, device=x.device)).to(x.dtype)
            for j, codes in zip(self.categorical, self.codes, strict=True)
        ]
        return torch.cat(parts, dim=1).float()


class Dense(nn.Module):
    """A linear map and an activation, in float32 whatever comes: trees give float64.

    It starts with what `nn.Linear` would draw from a generator, which could be none but that of the whole process.
    """

    def __init__(
        self, n_inputs: int, n_outputs: int, activation: str = "identity", *, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.linear = nn.Linear(n_inputs, n_outputs, device="meta")  # where nothing is drawn
        bound = n_inputs**-0.5 if n_inputs else 0.0
        for name, shape in (("weight", (n_outputs, n_inputs)), ("bias", (n_outputs,))):
            start = torch.empty(shape, dtype=torch.float32, device="cpu").uniform_(-bound, bound, generator=generator)
            setattr(self.linear, name, nn.Parameter(start))
        self.activation = ACTIVATIONS[activation]()

    def forward(self, h: Tensor) -> Tensor:
        """(rows, inputs) -> (rows, outputs)."""
        out: Tensor = self.activation(self.linear(h.float()))
        return out


def dense(widths: Sequence[int], activation: str, besides: int = 0, *, generator: torch.Generator) -> list[nn.Module]:
    """One `Dense` for each step in `widths`; each sees so many columns besides the hidden variable."""
    return [Dense(a + besides, b, activation, generator=generator) for a, b in pairwise(widths)]


@errstate_in_methods
class MixtureNetwork(nn.Module):
    """Hidden layers and an output layer, of which one is a `GBDTModule`.

    Parameters
    ----------
    columns : Columns
        How neural layers see the features; trees see them as they are.
    hidden : sequence of nn.Module
    output : nn.Module
    n_outputs : int
    skip : bool
        Layers above the first see the features besides the hidden variable before them, which comes first.
    """

    def __init__(
        self, columns: Columns, hidden: Sequence[nn.Module], output: nn.Module, n_outputs: int, skip: bool = False
    ) -> None:
        super().__init__()
        self.columns, self.skip = columns, skip
        self.hidden = nn.ModuleList(hidden)
        self.output = output
        self.baseline = np.zeros(n_outputs)  # the output layer holds its own

    @property
    def trees(self) -> GBDTModule:
        """The tree layer."""
        return next(module for module in self.modules() if isinstance(module, GBDTModule))

    @property
    def layers(self) -> list[nn.Module]:
        """Hidden layers and the output layer."""
        return [*self.hidden, self.output]

    def layer_input(self, number: int, h: Tensor, x: Tensor) -> Tensor:
        """What a layer sees of the hidden variable before it, h, and of the features, (rows, features) float64."""
        if number > 0 and not self.skip:
            return h
        features = x if isinstance(self.layers[number], GBDTModule) else self.columns(x)
        return torch.cat([h.to(features.dtype), features], dim=1) if number > 0 else features

    def through(self, h: Tensor, x: Tensor, first: int, last: int) -> Tensor:
        """What layers `first` to `last - 1` make of the hidden variable before them."""
        for number in range(first, last):
            h = self.layers[number](self.layer_input(number, h, x))
        return h

    def body(self, x: Tensor) -> Tensor:
        """The last hidden variable, (rows, units)."""
        return self.through(x, x, 0, len(self.hidden))

    def head(self, h: Tensor, x: Tensor) -> Tensor:
        """Raw output, (rows, outputs), from the first hidden variable: what comes after the first hidden layer."""
        return self.through(h, x, 1, len(self.layers))

    def top(self, h: Tensor, x: Tensor) -> Tensor:
        """Raw output, (rows, outputs), from the last hidden variable: the output layer."""
        return self.through(h, x, len(self.hidden), len(self.layers))

    def forward(self, x: Tensor) -> Tensor:
        """Raw output, (rows, outputs), of (rows, features) float64."""
        return self.through(x, x, 0, len(self.layers))

    def snapshot(self) -> Self:
        """A copy in eval mode that remembers no training rows."""
        taken = copy.deepcopy(self).eval()
        taken.trees.forget().expected_rows = None
        return taken

    def predict(self, X: Floats, *, n_jobs: int = 1) -> Floats:
        """Raw output, (rows, outputs) float64."""
        return self.representation(X, -1, n_jobs=n_jobs)

    def representation(self, X: Floats, layer: int, *, n_jobs: int = 1) -> Floats:
        """Hidden variable h_layer, (rows, units); h_0 is the input, and negative numbers count from the output."""
        X, depth = numbers(X), len(self.layers)  # a neural network reads all numbers
        if layer in (0, -depth - 1):
            return X
        self.trees.n_threads = n_jobs
        with torch.no_grad(), torch_threads(n_jobs):
            x = torch.tensor(X, device="cpu")
            h = self.through(x, x, 0, layer % (depth + 1))
        values: Floats = h.double().numpy()
        return values

    def jacobian(self, X: Floats, *, scale: Floats | float = 1.0, sort: bool = False, n_jobs: int = 1) -> Floats:
        """Jacobian of the raw output, or of the sorted one, times `scale` in the input, (rows, outputs, features)."""
        self.trees.n_threads = n_jobs
        with torch.inference_mode(False), torch.enable_grad(), torch_threads(n_jobs):
            x = torch.tensor(numbers(X), device="cpu", requires_grad=True)
            raw = self(x).sort(dim=1).values if sort else self(x)
            columns = [torch.autograd.grad(raw[:, k].sum(), x, retain_graph=True)[0] for k in range(raw.shape[1])]
        slopes: Floats = torch.stack(columns, dim=1).nan_to_num().numpy()
        return slopes * np.reshape(scale, (-1, 1))


_lock = fork_safe(RLock())


@contextmanager
def torch_threads(n_threads: int) -> Iterator[None]:
    """So many threads for torch in this thread, as long as it lasts; all others keep their number."""
    with _lock:  # a new thread is given the number that was set last
        before = torch.get_num_threads()
    try:
        _set_threads(n_threads)
        yield
    finally:
        _set_threads(before)


def _set_threads(n_threads: int) -> None:
    """Set the number of this thread alone.

    Torch has one for each thread, and gives the number that was set last, wherever, to new threads when they first ask.
    So a new one asks before, and sets it again.
    """
    read, changed = Event(), Event()

    def keep() -> None:
        number = torch.get_num_threads()
        read.set()
        changed.wait()
        torch.set_num_threads(number)

    keeper = Thread(target=keep)
    with _lock:
        try:
            with suppress(RuntimeError):  # no thread starts any more when the interpreter ends
                keeper.start()
                read.wait()
            torch.set_num_threads(n_threads)
        finally:
            changed.set()
            if keeper.is_alive():
                keeper.join()
