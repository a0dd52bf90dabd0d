"""The paper's mixtures as estimators: GBDT-NN, trees under a neural network, and NN-GBDT, trees on top of one."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from boostbp.estimators import BoostBPClassifier, BoostBPRegressor
from boostbp.estimators.arguments import Arguments
from boostbp.estimators.base import BaseBoostBP
from boostbp.estimators.request import Request
from boostbp.estimators.training import Training
from boostbp.inputs.blocks import blocks_of
from boostbp.inputs.rows import Rows
from boostbp.inputs.sources import is_blocks
from boostbp.network.settings import BackpropSpec
from boostbp.runtime import checks, threads
from boostbp.runtime.arrays import TableLike
from boostbp.runtime.messages import require
from boostbp.trees.sparse import dense

__all__ = ["GBDTNNClassifier", "GBDTNNRegressor", "NNGBDTClassifier", "NNGBDTRegressor"]

Floats = NDArray[np.float64]
_BACKPROP = BackpropSpec(step_size=0.2)  # a network follows the outputs of its trees: it needs smaller steps than trees
_OF_TREES_ALONE = ("structure_epochs", "structure_samples")
_ACTIVATIONS = ("gelu", "identity", "relu", "tanh")
_OPTIMIZERS = ("adam", "adamw", "rmsprop", "sgd")


class _Mixture(BaseBoostBP):
    """Training and representations of a mixture; a `MixtureNetwork` takes the place of the network of trees."""

    _trees: Literal["first", "last"]
    _min_hidden = 1
    activation: str
    optimizer: str | Callable[[Any], Any]
    network_learning_rate: float
    network_steps: int
    batch_size: int | None

    def _set(self, parameters: Mapping[str, Any]) -> None:
        """Set the parameters of a constructor, by its local variables: the signature is the one list of them."""
        of_network = ("activation", "optimizer", "network_learning_rate", "network_steps", "batch_size")
        for name in of_network:
            setattr(self, name, parameters[name])
        super().__init__(**{name: value for name, value in parameters.items() if name not in ("self", *of_network)})

    def _no_trees(self) -> NoReturn:
        kind = type(self).__name__
        raise AttributeError(f"{kind} contains a neural network: use jacobian or hidden_representation.")

    importance = attributions = explain = apply = leaf_report = trees_to_dataframe = property(_no_trees)
    layer_names = hidden_names = staged_predict = staged_predict_proba = refit = property(_no_trees)

    def _raw(self, X: TableLike, offset: Any = None) -> Floats:
        if is_blocks(X):
            raw = np.concatenate([self._raw(block, 0) for block in blocks_of(X, self.schema_)])
        else:
            raw = self.network_.predict(self._read(X).X, n_jobs=threads.count(self.n_jobs))
        return self.model_.add_offset(raw, offset)

    def _plan(self, training: Training) -> Any:
        require("torch", extra="torch", what=type(self).__name__)
        from benchmarks.mixtures.training import MixtureTraining, NetworkPlan

        rows, evaluation = training.problem.rows, training.problem.evaluation
        if rows.offset.ndim:
            raise ValueError(f"offset is not supported by {type(self).__name__}: use BoostBPRegressor or -Classifier.")
        self._check_network(training.request.arguments)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        as_told = copy.copy(self)
        as_told.backprop = self._backprop()
        settings = Request.of(as_told).settings(len(rows), rows.y.shape[1], seed)
        evaluation = replace(
            evaluation, sets=tuple(replace(part, rows=as_dense(part.rows)) for part in evaluation.sets)
        )
        plan = NetworkPlan(
            self._trees,
            self.activation,
            self.optimizer,
            self.network_learning_rate,
            self.network_steps,
            self.batch_size,
        )
        problem = replace(training.problem, rows=as_dense(rows), evaluation=evaluation, settings=settings)
        given = {field.name: getattr(training, field.name) for field in fields(training)} | {"problem": problem}
        return MixtureTraining(**given, mixture=plan, start=self._backprop().start)

    def _backprop(self) -> BackpropSpec:
        given = self.backprop
        if isinstance(given, Mapping):
            return replace(_BACKPROP, **given)
        return BackpropSpec.of(given or _BACKPROP, "backprop")

    def _check_network(self, run: Arguments) -> None:
        backprop = self._backprop()
        refused = {name: (getattr(backprop, name), getattr(_BACKPROP, name)) for name in _OF_TREES_ALONE}
        refused |= {"checkpoint": (run.checkpoint, None), "keep_state": (run.keep_state, False)}
        refused |= {"init_model": (run.init_model, None)}
        for name, (value, default) in refused.items():
            if value != default:
                raise ValueError(
                    f"{name}={value!r} is not supported in a mixture with a neural network: leave it {default!r}."
                )
        for name, known in (("activation", _ACTIVATIONS), ("optimizer", _OPTIMIZERS)):
            value = getattr(self, name)
            if value not in known and not (name == "optimizer" and callable(value)):
                raise ValueError(f"{name}={value!r} is not known: use one of {', '.join(map(repr, known))}.")
        checks.whole("network_steps", self.network_steps, 1)
        if self.batch_size is not None:
            checks.whole("batch_size", self.batch_size, 1)
        checks.at_least("network_learning_rate", self.network_learning_rate, 0)
        if self.network_learning_rate == 0:
            raise ValueError(
                f"network_learning_rate={self.network_learning_rate!r} is not allowed: give a number above 0."
            )

    @property
    def _n_features_out(self) -> int:
        last: Any = self.network_.layers[-2]
        return int(getattr(last, "out_features", 0) or last.linear.out_features)


def as_dense(rows: Rows) -> Rows:
    """The rows with their input as an array."""
    return replace(rows, table=replace(rows.table, X=dense(rows.X)))


class _Classifier(_Mixture, BoostBPClassifier):
    def __init__(
        self,
        hidden_layer_sizes: Sequence[int] = (32,),
        *,
        activation: str = "relu",
        optimizer: Any = "adam",
        network_learning_rate: float = 0.01,
        network_steps: int = 15,
        batch_size: int | None = 256,
        loss: Any = "log_loss",
        class_weight: Any = None,
        backend: Any = "lightgbm",
        n_estimators: Any = None,
        learning_rate: Any = None,
        max_depth: Any = None,
        min_samples_leaf: Any = None,
        colsample_bytree: Any = None,
        hidden: Any = None,
        output: Any = None,
        backprop: Any = None,
        epochs: Any = 300,
        deep: Any = "auto",
        early_stopping: Any = "auto",
        validation: Any = 0.1,
        quality: Any = 3,
        eval_metric: Any = None,
        max_time: Any = None,
        categorical_features: Any = "from_dtype",
        n_jobs: Any = None,
        random_state: Any = None,
        verbose: Any = 0,
        backend_params: Any = None,
    ) -> None:
        self._set(locals())


class _Regressor(_Mixture, BoostBPRegressor):
    def __init__(
        self,
        hidden_layer_sizes: Sequence[int] = (32,),
        *,
        activation: str = "relu",
        optimizer: Any = "adam",
        network_learning_rate: float = 0.01,
        network_steps: int = 15,
        batch_size: int | None = 256,
        loss: Any = "squared_error",
        backend: Any = "lightgbm",
        n_estimators: Any = None,
        learning_rate: Any = None,
        max_depth: Any = None,
        min_samples_leaf: Any = None,
        colsample_bytree: Any = None,
        hidden: Any = None,
        output: Any = None,
        backprop: Any = None,
        epochs: Any = 300,
        deep: Any = "auto",
        early_stopping: Any = "auto",
        validation: Any = 0.1,
        quality: Any = 3,
        eval_metric: Any = None,
        max_time: Any = None,
        categorical_features: Any = "from_dtype",
        n_jobs: Any = None,
        random_state: Any = None,
        verbose: Any = 0,
        backend_params: Any = None,
    ) -> None:
        self._set(locals())


class GBDTNNClassifier(_Classifier):
    """GBDT-NN for classification: see `GBDTNNRegressor`.

    Parameters
    ----------
    loss, class_weight :
        As in `BoostBPClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GBDTNNClassifier((8,), epochs=2, random_state=0).fit(X, y)
    >>> model.transform(X).shape, model.predict_proba(X).shape
    ((150, 8), (150, 3))
    """

    _trees = "first"


class GBDTNNRegressor(_Regressor):
    """GBDT-NN: a hidden layer of boosted trees, and a neural network on its outputs.

    In each epoch the outputs of the trees move along their gradient and the trees are fitted to them
    again; then the network takes its gradient steps. Needs the extra ``torch``. Deterministic for a
    `random_state` and a number of threads, which torch lets show in the last bits.

    Parameters
    ----------
    hidden_layer_sizes : sequence of int
        Units of each hidden layer: the first is of trees, the others are neural.
    activation : {"relu", "tanh", "gelu", "identity"}
        After each neural hidden layer.
    optimizer : {"adam", "adamw", "rmsprop", "sgd"} or callable
        Of the network; a callable gets its parameters and returns a torch optimizer. What that draws from torch's
        own generator is not seeded by `random_state`.
    network_learning_rate : float
        Of an optimizer by name.
    network_steps : int
        Gradient steps of the network in each epoch.
    batch_size : int or None
        Rows of each of these steps; None: all.
    backprop : BackpropSpec, dict or None
        How the trees' outputs move. The network follows them, so they need smaller steps than trees do: `step_size`
        is .2 unless it is given. `structure_epochs` and `structure_samples` are refused, as there is nothing of theirs
        here.
    loss, n_estimators, hidden, epochs, early_stopping, ... :
        As in `BoostBPRegressor`; `hidden` is of the trees. `checkpoint` and `keep_state` of `fit` are refused, and
        so is ``deep=False``, as a mixture is made of its hidden layers. There are no single layers beside a mixture,
        and held-out rows stay held out: ``deep="auto"``, `quality`, and of `backprop` `refit_order` and
        `output_target`, are not looked at.

    Attributes
    ----------
    network_ : torch.nn.Module
        Its output is that of training, before the link, and in units of the standardised target.
    history_ : History
    n_iter_ : int
    """

    _trees = "first"


class NNGBDTClassifier(_Classifier):
    """NN-GBDT for classification: see `NNGBDTRegressor`.

    Parameters
    ----------
    loss, class_weight :
        As in `BoostBPClassifier`.
    """

    _trees = "last"


class NNGBDTRegressor(_Regressor):
    """NN-GBDT: neural hidden layers, and boosted trees as the output layer.

    In each epoch the network takes its gradient steps through the trees as they stand; then the
    trees are fitted again to what it gives, by boosting on the loss or to their moved output
    (`output_target` of `backprop`).
    The network sees numbers at mean 0 and standard deviation 1 and categories as indicators; with `skip`
    the trees see its units and the features as they are. Needs the extra ``torch``.

    Parameters
    ----------
    hidden_layer_sizes : sequence of int
        Units of each hidden layer, all neural.
    activation, optimizer, network_learning_rate, network_steps, batch_size :
        As in `GBDTNNRegressor`.
    loss, n_estimators, output, epochs, early_stopping, ... :
        As in `GBDTNNRegressor`; but `output`, and `output_target` of `backprop`, count, and `start` does not.

    Attributes
    ----------
    network_ : torch.nn.Module
        Its output is that of training, before the link, and in units of the standardised target.
    history_ : History
    n_iter_ : int
    """

    _trees = "last"
