"""BoostBPClassifier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.class_weight import compute_sample_weight

from boostbp import losses
from boostbp.estimators.atomic import all_or_nothing
from boostbp.estimators.eval_sets import listed
from boostbp.estimators.held_out import hold_out
from boostbp.estimators.supervised import Supervised
from boostbp.floats import usual_in_methods
from boostbp.inputs import read_target, read_weight, warn_of_numbers
from boostbp.losses import Loss

__all__ = ["BoostBPClassifier"]

Floats = NDArray[np.float64]


@usual_in_methods
class BoostBPClassifier(ClassifierMixin, Supervised):
    """Multi-layered gradient boosted trees for classification, trained by back-propagation.

    Parameters are those of `BoostBPRegressor`, with another default of `loss`, and:

    Parameters
    ----------
    loss : str or Loss
        ``"log_loss"``: logistic for two classes, softmax for more. One's own gives probabilities by its `link`, and
        says by ``task = "classification"`` that it is one of classes.
    class_weight : dict, "balanced" or None
        Weights of the classes, times `sample_weight`; rows that are held out here have them too, an `eval_set` has the
        weights that it is given.

    Attributes
    ----------
    classes_ : (classes,) ndarray
        Those of `y`; a class whose rows all have weight 0 is one, with a probability of a millionth or less.
    """

    def __init__(
        self,
        hidden_layer_sizes: Sequence[int] = (16,),
        *,
        loss: Any = "log_loss",
        class_weight: Any = None,
        **shared: Any,
    ) -> None:
        self.loss = loss
        self.class_weight = class_weight
        super().__init__(hidden_layer_sizes, **shared)

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        eval_set: Any = None,
        eval_names: Sequence[str] | None = None,
        groups: Any = None,
        eval_X: Any = None,
        eval_y: Any = None,
        eval_sample_weight: Any = None,
    ) -> Self:
        """Train.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix, (rows, features)
        y : array-like of labels, (rows,)
            More than 50 that are numbers other than 0, 1, 2, ... are warned of: they are probably an amount.
        sample_weight : array-like, (rows,), optional
            A weight of 2 is as good as the row twice, but that `min_samples_leaf` counts it once. Weights of less
            than 1 on average are scaled to 1.
        eval_set : (X, y), (X, y, sample_weight) or a list of these, optional
            The first one chooses the epoch and stops training (in XGBoost the last does, in LightGBM any).
        eval_names : list of str, optional
            What the evaluation sets are called in history, log and progress bar; "valid_0", "valid_1", ... if left out.
        groups : array-like, (rows,), optional
            Group of each row; those of a group are held out together (see `BoostBPRegressor.fit`).
        eval_X, eval_y, eval_sample_weight : optional
            The same as `eval_set`, each an argument of its own as in LightGBM: one table and its target, or tuples of
            them. Scikit-learn can route them, and a pipeline with ``transform_input=["eval_X"]`` transform the tables.
        """
        table = self._read(X, reset=True)
        labels = read_target(y, len(table.X), labels=True)
        weight = read_weight(sample_weight, len(table.X))
        if self.class_weight is not None:
            weight = weight * _weights_of_classes(self.class_weight, labels)
            if not weight.any():
                raise ValueError(
                    f"class_weight={self.class_weight!r} leaves no row a weight: give a class of y, "
                    f"{np.unique(labels).tolist()}, a weight above 0."
                )
        self.classes_ = np.unique(labels)  # those without weight, too: others count on a column for each
        if len(self.classes_) < 2:
            raise ValueError(
                f"y has one class only, {self.classes_.tolist()[0]!r}: a classifier needs rows of at least two."
            )
        warn_of_numbers(self.classes_)
        target = self._one_hot(labels)
        table = self._repaired(table, weight)
        sets = self._eval_sets(listed(eval_set, eval_X, eval_y, eval_sample_weight), eval_names)
        loss = losses.load(self.loss, n_outputs=target.shape[1])
        self._check_loss(loss, target.shape[1])
        loss.check(target)
        if not sets:
            table, target, weight, sets = hold_out(self, table, target, weight, labels, groups=groups, X=X)
        self._loss: Loss = loss
        metric = self._metric(loss, sets)
        return self._train(table, target, weight, loss, sets, metric, loss.link)

    def _check_loss(self, loss: Loss, n_outputs: int) -> None:
        """Refuse losses whose link gives no probabilities that sum to 1."""
        traits = losses.traits_of(loss)
        if traits.task == "regression":
            raise ValueError(
                f"loss={self.loss!r} is one of numbers, and its output no probability: use loss='log_loss', or a "
                "regressor."
            )
        if not traits.takes(n_outputs):
            raise ValueError(f"loss={self.loss!r} is not for {max(n_outputs, 2)} classes: use loss='log_loss'.")

    def decision_function(self, X: Any) -> Floats:
        """Raw output: log-odds, (rows,), for two classes; (rows, classes) for more."""
        raw = self._raw(X)
        return raw.ravel() if raw.shape[1] == 1 else raw

    def predict_proba(self, X: Any) -> Floats:
        """Probability of each class, (rows, classes)."""
        raw = self._raw(X)
        link = self._loss.link
        if raw.shape[1] == 1 and self._link_name == "logit":
            return np.column_stack([link(-raw), link(raw)])  # 1 - link(raw) would round small ones away
        p = link(raw)
        return p if p.shape[1] > 1 else np.column_stack([1.0 - p, p])

    def predict(self, X: Any) -> NDArray[Any]:
        """Most probable class, (rows,)."""
        raw = self._raw(X)
        if raw.shape[1] > 1:
            of_classes = raw if self._link_name == "softmax" else self._loss.link(raw)
            return self.classes_[of_classes.argmax(axis=1)]
        of_second = raw > 0 if self._link_name == "logit" else self._loss.link(raw) > 0.5
        return self.classes_[of_second[:, 0].astype(int)]

    @property
    def _link_name(self) -> str | None:
        return losses.traits_of(self._loss).link_name

    def _one_hot(self, labels: NDArray[Any]) -> Floats:
        one_hot = (labels[:, None] == self.classes_).astype(np.float64)
        return one_hot[:, 1:] if len(self.classes_) == 2 else one_hot

    def _encode(self, y: Any, n_rows: int) -> Floats:
        labels = read_target(y, n_rows, labels=True)
        unknown = np.setdiff1d(labels, self.classes_)
        if len(unknown):
            raise ValueError(f"eval_set has classes that y does not have: {unknown.tolist()!r}. Leave those rows out.")
        return self._one_hot(labels)

    def _output_names(self) -> list[str]:
        labels = [str(label) for label in self.classes_]
        return labels[1:] if len(labels) == 2 else labels

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags


def _weights_of_classes(class_weight: Any, labels: NDArray[Any]) -> Floats:
    """Weight of each row by its class, (rows,); one that is no weight would leave out the rows of a class."""
    weight = compute_sample_weight(class_weight, labels)
    wrong = ~(np.isfinite(weight) & (weight >= 0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"class_weight={class_weight!r} gives class {labels[row]} the weight {weight[row]}: weights must be finite "
            "and 0 or more."
        )
    return weight
