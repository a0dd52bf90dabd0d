"""Multi-layer perceptrons of torch as estimators: standardised numbers, categories as indicators, early stopping."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from boostbp.inputs.schema import learn_schema, read_input
from boostbp.runtime.messages import require

__all__ = ["MLPClassifier", "MLPRegressor"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Course:
    """How a training went: the loss of the validation rows by epoch, from 1, and the best one's number."""

    losses: list[float]
    best_epoch: int


class _MLP(BaseEstimator):
    """Linear layers with ReLU and dropout, trained by AdamW in batches; the best epoch is kept.

    Parameters
    ----------
    hidden_layer_sizes : sequence of int
    dropout : float
        Share of the hidden units that are silenced in each step.
    learning_rate, weight_decay : float
    batch_size : int
    epochs : int
        Largest number of passes over the rows.
    n_iter_no_change : int
        Passes without a smaller validation loss after which training stops.
    n_jobs : int
    random_state : int

    Attributes
    ----------
    history_ : Course
    """

    _kind: ClassVar[str]

    def __init__(
        self,
        hidden_layer_sizes: Sequence[int] = (128, 128),
        *,
        dropout: float = 0.0,
        learning_rate: float = 1e-3,
        weight_decay: float = 1e-4,
        batch_size: int = 128,
        epochs: int = 300,
        n_iter_no_change: int = 20,
        n_jobs: int = 1,
        random_state: int = 0,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.dropout = dropout
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.epochs = epochs
        self.n_iter_no_change = n_iter_no_change
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: NDArray[Any], *, eval_set: Any = None) -> Self:
        """Train.

        Parameters
        ----------
        X : array-like or data frame, (rows, features)
        y : (rows,)
            Numbers, or labels 0 .. classes - 1.
        eval_set : list of one pair (X, y), optional
            Chooses the epoch. Without it, all `epochs` are trained.
        """
        torch = require("torch", extra="torch", what=type(self).__name__)
        from benchmarks.mixtures.network import Columns, torch_threads

        self.schema_, table = learn_schema(self, X)
        n_outputs = self._prepare(np.asarray(y))
        with torch.random.fork_rng(devices=[]), torch_threads(self.n_jobs):
            torch.manual_seed(self.random_state)
            columns = Columns(table, np.ones(len(table.X)))
            x, target = columns(torch.from_numpy(table.X)), self._target(torch, y)
            held = [(columns(torch.from_numpy(self._read(U))), self._target(torch, v)) for U, v in eval_set or ()]
            network = _network(torch, [columns.width, *self.hidden_layer_sizes, n_outputs], self.dropout)
            self.history_ = self._train(torch, network, x, target, *held)
        self._columns, self._network = columns, network.eval()
        return self

    def _train(self, torch: Any, network: Any, x: Any, target: Any, held: tuple[Any, Any] | None = None) -> Course:
        """Train a network, and leave it as it was in its best epoch; in its last one without rows to tell."""
        loss_of = torch.nn.functional.mse_loss if self._kind == "numbers" else torch.nn.functional.cross_entropy
        optimizer = torch.optim.AdamW(network.parameters(), self.learning_rate, weight_decay=self.weight_decay)
        losses: list[float] = []
        best, state = 0, copy.deepcopy(network.state_dict())
        while len(losses) < self.epochs and len(losses) - best < self.n_iter_no_change:
            network.train()
            for rows in torch.randperm(len(x)).split(self.batch_size):
                optimizer.zero_grad()
                loss_of(network(x[rows]), target[rows]).backward()
                optimizer.step()
            network.eval()
            with torch.no_grad():
                losses.append(float(loss_of(network(held[0]), held[1])) if held else np.nan)
            if held is None:
                best = len(losses)
            elif losses[-1] <= min(losses):
                best, state = len(losses), copy.deepcopy(network.state_dict())
        if held is not None:
            network.load_state_dict(state)
        return Course(losses, best)

    def transform(self, X: Any) -> Floats:
        """The last hidden layer, (rows, units), after ReLU."""
        return self._through(self._network[:-1], X)

    def _raw(self, X: Any) -> Floats:
        """Raw output, (rows, outputs)."""
        return self._through(self._network, X)

    def _through(self, layers: Any, X: Any) -> Floats:
        torch = require("torch", extra="torch", what=type(self).__name__)
        from benchmarks.mixtures.network import torch_threads

        with torch.no_grad(), torch_threads(self.n_jobs):
            found: Floats = layers(self._columns(torch.from_numpy(self._read(X)))).double().numpy()
        return found

    def _read(self, X: Any) -> Floats:
        return read_input(self, X, self.schema_).X

    def _prepare(self, y: NDArray[Any]) -> int:
        """Look at the target; number of outputs."""
        raise NotImplementedError

    def _target(self, torch: Any, y: Any) -> Any:
        raise NotImplementedError


class MLPRegressor(RegressorMixin, _MLP):
    """A multi-layer perceptron for regression, on the standardised target."""

    _kind = "numbers"

    def predict(self, X: Any) -> Floats:
        """Predicted target, (rows,)."""
        return self._raw(X)[:, 0] * self._scale + self._shift

    def _prepare(self, y: NDArray[Any]) -> int:
        self._shift, self._scale = float(y.mean()), float(y.std()) or 1.0
        return 1

    def _target(self, torch: Any, y: Any) -> Any:
        return torch.tensor((np.asarray(y)[:, None] - self._shift) / self._scale, dtype=torch.float32)


class MLPClassifier(ClassifierMixin, _MLP):
    """A multi-layer perceptron for classification, labels 0 .. classes - 1."""

    _kind = "labels"

    def predict_proba(self, X: Any) -> Floats:
        """Probability of each class, (rows, classes)."""
        raw = self._raw(X)
        proba = np.exp(raw - raw.max(axis=1, keepdims=True))
        return proba / proba.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> NDArray[Any]:
        """Most probable class, (rows,)."""
        return self.classes_[self._raw(X).argmax(axis=1)]

    def _prepare(self, y: NDArray[Any]) -> int:
        self.classes_ = np.unique(y)
        return len(self.classes_)

    def _target(self, torch: Any, y: Any) -> Any:
        return torch.tensor(np.searchsorted(self.classes_, y), dtype=torch.int64)


def _network(torch: Any, widths: Sequence[int], dropout: float) -> Any:
    nn, layers = torch.nn, []
    for n_inputs, n_outputs in pairwise(widths[:-1]):
        layers += [nn.Linear(n_inputs, n_outputs), nn.ReLU(), nn.Dropout(dropout)]
    return nn.Sequential(*layers, nn.Linear(widths[-2], widths[-1]))
