"""BoostBPClassifier, the classes of its targets, and their weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_expit, log_softmax
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.class_weight import compute_sample_weight

from boostbp import losses
from boostbp.estimators.base import public_methods
from boostbp.estimators.conformal import predict_set
from boostbp.estimators.constructor import ClassifierParameters, takes
from boostbp.estimators.data import ColumnNames, Learnt
from boostbp.estimators.nested_parameters import documented_as
from boostbp.estimators.regressor import BoostBPRegressor
from boostbp.estimators.supervised import OFFSET_IS_ROUTED, Supervised, check_offset, staged_raw
from boostbp.inputs.categories import EACH, FEW, refuse_numbers_as_text, warn_of_spellings
from boostbp.losses import Loss
from boostbp.model.model import Model, Targets
from boostbp.runtime import checks, messages
from boostbp.runtime.arrays import Floats, TableLike
from boostbp.runtime.group import workers

NAMES_CURE = "if the labels are names, make them text: [f'class {label}' for label in y]"
MAX_NUMERIC_CLASSES = 50  # more numeric labels other than 0, 1, 2, ... are probably an amount; arbitrary


@documented_as(BoostBPRegressor)
@public_methods
class BoostBPClassifier(ClassifierMixin, Supervised):
    """Multi-layered gradient boosted trees for classification, trained by back-propagation.

    Parameters
    ----------
    others : as in `BoostBPRegressor`
    loss : str or Loss
        ``"log_loss"`` is logistic for two classes and for each of several labels, and softmax for more classes. A
        custom loss has ``task = "classification"`` and a `link` that returns probabilities.
    class_weight : dict, "balanced" or None
        Weight of each class, multiplied by `sample_weight`. It also applies to rows that `fit` holds out, but not to an
        `eval_set`, which has its own weights.
    calibration : float or None
        Share of the rows, below 0.5, that `fit` reserves for `predict_set`; a share of the groups if `fit` gets
        `groups`. None reserves none; `calibrate` accepts other rows.

    Attributes
    ----------
    classes_ : (classes,) ndarray
        Labels in `y`. A class whose rows all have weight 0 counts too; its probability is a millionth or less. Of
        several labels, the names of the columns of a data frame, otherwise 0, 1, 2, ...
    n_classes_ : int
    n_outputs_ : int
        Number of raw outputs: 1 for two classes, otherwise that of the classes or labels.
    multilabel_ : bool
        Whether a row may have several labels: `y` was (rows, labels).
    others : as in `BoostBPRegressor`

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from boostbp import BoostBPClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BoostBPClassifier(quality=1, random_state=0).fit(X, y)
    >>> model.predict(X[:2]), model.predict_proba(X[:2]).shape
    (array([0, 0]), (2, 3))
    """

    class_weight: Any

    __metadata_request__predict_proba = __metadata_request__predict_log_proba = OFFSET_IS_ROUTED
    __metadata_request__decision_function = OFFSET_IS_ROUTED

    @takes(ClassifierParameters)
    def __init__(self) -> None: ...

    @property
    def classes_(self) -> NDArray[Any]:
        """Labels of the classes in ascending order, (classes,)."""
        return cast("NDArray[Any]", self.model_.targets.classes)

    @property
    def n_classes_(self) -> int:
        """Number of classes, or of labels."""
        return len(self.classes_)

    @property
    def n_outputs_(self) -> int:
        """Number of raw outputs: 1 for two classes, otherwise that of the classes or labels."""
        return self.model_.targets.n_outputs

    @property
    def multilabel_(self) -> bool:
        """Whether a row may have several labels."""
        return self.model_.targets.multilabel

    def decision_function(self, X: TableLike, *, offset: ArrayLike | None = None) -> Floats:
        """Return raw outputs: log-odds, (rows,), for two classes; (rows, classes) for more; (rows, labels).

        `offset` is that of `predict_proba`.
        """
        raw = self._raw(X, offset)
        return raw.ravel() if raw.shape[1] == 1 else raw

    def predict_proba(self, X: TableLike, *, offset: ArrayLike | None = None) -> Floats:
        """Return the probability of each class, or of each of several labels.

        Parameters
        ----------
        X : array-like, (rows, features); path, or iterator of blocks of features
        offset : array-like, (rows,) for two classes, (rows, classes) for more, or 0, optional
            As in `fit`; the default is 0. A model that was fitted with an offset warns without one; pass ``offset=0``
            to confirm.

        Returns
        -------
        (rows, classes) float64
            (rows, labels) for several labels, as of `sklearn.neural_network.MLPClassifier`: column k is the probability
            of label k, whatever the others are. For other thresholds than 0.5: ``predict_proba(X) > thresholds``.
        """
        raw = self._raw(X, offset)
        return self.model_.targets.probabilities(raw)

    def predict_log_proba(self, X: TableLike, *, offset: ArrayLike | None = None) -> Floats:
        """Return the logarithm of the probability of each class, (rows, classes), or label, (rows, labels).

        It is accurate even where a probability rounds to 0 or 1. `offset` is that of `predict_proba`.
        """
        raw = self._raw(X, offset)
        targets = self.model_.targets
        if targets.link_name == "logit":
            return np.asarray(log_expit(np.hstack([-raw, raw]) if raw.shape[1] == 1 else raw))
        if targets.link_name == "softmax":
            return log_softmax(raw, axis=1)
        with np.errstate(divide="ignore"):
            return np.log(targets.probabilities(raw))

    def staged_predict_proba(self, X: TableLike, *, offset: ArrayLike | None = None) -> Iterator[Floats]:
        """Yield probabilities, (rows, classes), after each round; see `BoostBPRegressor.staged_predict`."""
        probabilities = self.model_.targets.probabilities
        return (probabilities(raw) for raw in staged_raw(self, X, offset))

    def staged_predict(self, X: TableLike, *, offset: ArrayLike | None = None) -> Iterator[NDArray[Any]]:
        """Yield the most probable classes, (rows,), after each round; see `BoostBPRegressor.staged_predict`."""
        labels = self.model_.targets.labels
        return (labels(raw) for raw in staged_raw(self, X, offset))

    def predict(self, X: TableLike, *, offset: ArrayLike | None = None) -> NDArray[Any]:
        """Return the most probable class of each row, (rows,). `offset` is that of `predict_proba`.

        For several labels, (rows, labels): 1 where the probability is above 0.5 and otherwise 0, in the dtype of `y`.
        """
        raw = self._raw(X, offset)
        return self.model_.targets.labels(raw)

    predict_set = predict_set

    def score(
        self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None, *, offset: ArrayLike | None = None
    ) -> float:
        """Return the accuracy: for several labels, the share of rows with all of them right.

        `offset` is that of `BoostBPRegressor.score`.
        """
        from sklearn.metrics import accuracy_score  # imported here, as it slows the import of the package

        check_offset(self.model_, offset, "score")
        predicted = self.predict(X, offset=offset)
        y = self.model_.targets.read(y, len(predicted)) if self.multilabel_ else y  # a frame of any library
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))

    def _read_target(self, values: Any, weight: Floats, earlier: Model | None, names: ColumnNames) -> Learnt:
        if earlier is not None:
            earlier.targets.check_labels(values, names)
        if values.ndim == 2:
            known = names if earlier is None else earlier.targets.classes
            targets = targets_of_labels(values, known, self.loss, self.class_weight)
            return targets, targets.one_hot(values), weight
        if self.class_weight is not None:
            weight = weight * weights_of_classes(self.class_weight, values)
            if not workers().max(weight.max(initial=0.0))[0] > 0:
                raise ValueError(f"class_weight={self.class_weight!r} gives all rows weight 0: weight a class of y.")
        if earlier is None:
            classes = classes_of(values)  # rows without weight count too: users expect a column for each label
        else:
            assert earlier.targets.classes is not None
            classes = earlier.targets.classes
            if len(unknown := np.setdiff1d(values, classes)):
                raise ValueError(f"y has classes unknown to the old model, {unknown.tolist()!r}: leave their rows out.")
        if len(classes) < 2:
            raise ValueError(f"y has only one class, {classes.tolist()[0]!r}: a classifier needs at least two.")
        check_classes(classes, int(workers().sum(float(len(values)))[0]))
        n_outputs = 1 if len(classes) == 2 else len(classes)
        targets = Targets(loss_for_classes(self.loss, n_outputs), np.zeros(n_outputs), np.ones(n_outputs), classes)
        return targets, targets.one_hot(values), weight

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


def targets_of_labels(
    values: NDArray[Any], names: ColumnNames | NDArray[Any], loss: str | Loss, class_weight: object
) -> Targets:
    """Return the targets for several labels of each row, (rows, labels), which have `names` or are 0, 1, 2, ..."""
    n_labels = values.shape[1]
    if class_weight is not None:
        cure = "a row has no one class: pass sample_weight, or set thresholds of predict_proba"
        raise ValueError(f"class_weight={class_weight!r} with several labels is not supported: {cure}.")
    classes = np.arange(n_labels) if names is None else np.array(names)
    if any(other != classes.tolist() for other in workers().gather(classes.tolist())):
        raise ValueError(f"y has the labels {classes.tolist()} on one worker, and others on another: give the same.")
    if not workers().max(float((values.sum(axis=1) != 1).any()))[0]:
        cure = "if they exclude each other, pass classes, whose probabilities sum to 1: numpy.argmax(y, axis=1)"
        messages.warn(
            f"Each row of y has one of the {n_labels} labels, which are learnt as independent of each other; {cure}."
        )
    loaded = loss_for_classes(loss, n_labels, multilabel=True)
    zero_one = np.array([0, 1], values.dtype.newbyteorder("="))
    return Targets(loaded, np.zeros(n_labels), np.ones(n_labels), classes, zero_one=zero_one)


def loss_for_classes(loss: str | Loss, n_outputs: int, *, multilabel: bool = False) -> Loss:
    """Return the loss; raise ValueError unless it supports classes, or several labels."""
    if multilabel and loss in (losses.Logistic.name, *losses.Logistic.aliases):
        loss = losses.Multilabel.name
    loaded = losses.load_loss(loss, n_outputs=n_outputs, task="classification")
    traits = losses.traits_of(loaded)
    if traits.task == "regression":
        raise ValueError(f"loss={loss!r} is for regression: use loss='log_loss', or BoostBPRegressor.")
    if traits.multilabel != multilabel:
        kinds = ("classes that exclude each other", "several labels")
        fault = f"loss={loss!r} is for {kinds[not multilabel]}, and y has {kinds[multilabel]}"
        raise ValueError(f"{fault}: use loss='log_loss', or set multilabel = {multilabel} in a loss of your own.")
    if not traits.takes(n_outputs):
        raise ValueError(f"loss={loss!r} does not support {max(n_outputs, 2)} classes: use loss='log_loss'.")
    return loaded


def classes_of(labels: NDArray[Any]) -> NDArray[Any]:
    """Return the distinct labels of all workers in ascending order; ValueError if some are text and others numbers."""
    parts = workers().gather(np.unique(labels))
    if len({part.dtype.kind in "fiub" for part in parts}) > 1:
        kinds = " and ".join(sorted({str(part.dtype) for part in parts}))
        raise ValueError(f"y holds labels of dtype {kinds} on different workers: make all of them text, or numbers.")
    return np.unique(np.concatenate(parts))


def weights_of_classes(class_weight: Mapping[Any, float] | str, labels: NDArray[Any]) -> NDArray[np.float64]:
    """Return the weight of each row by its class, (rows,); raise ValueError if one is negative or not finite."""
    if not isinstance(class_weight, str):
        if not isinstance(class_weight, Mapping):
            cure = "'balanced', or a dict of classes and weights, such as series.to_dict()"
            raise checks.not_allowed("class_weight", class_weight, cure)
        class_weight = dict(class_weight)
    balanced = class_weight == "balanced" and not workers().is_single
    weight = compute_sample_weight(_balanced(labels) if balanced else class_weight, labels)
    wrong = ~(np.isfinite(weight) & (weight >= 0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"class_weight={class_weight!r} gives class {labels[row]} the weight {weight[row]}: give 0 or more."
        )
    return weight


def _balanced(labels: NDArray[Any]) -> dict[Any, float]:
    """Return scikit-learn's "balanced" class weights, ``rows / (classes * rows of the class)``, over all workers."""
    counts: Counter[Any] = Counter()
    for classes, numbers in workers().gather(np.unique(labels, return_counts=True)):
        counts.update(dict(zip(classes.tolist(), numbers.tolist(), strict=True)))
    return {label: counts.total() / (len(counts) * count) for label, count in counts.items()}


def check_classes(classes: NDArray[Any], n_rows: int) -> None:
    """Refuse classes, (classes,) in ascending order, whose text spells an amount; warn of many numbers with gaps.

    Up to 10 texts may spell anything, and so may up to 50 that come five times each on average, and whole numbers that
    do.
    """
    if classes.dtype.kind in "SUTO" and len(classes) > max(FEW, min(MAX_NUMERIC_CLASSES, n_rows / EACH)):
        counts = [n_rows / len(classes)] * len(classes)
        refuse_numbers_as_text(
            classes.tolist(), counts, "y", code_name="y", otherwise=f"for BoostBPRegressor; {NAMES_CURE}"
        )
    warn_of_spellings(classes.tolist(), "y", "", "y")
    numbers = classes.dtype.kind in "fiu" and len(classes) > MAX_NUMERIC_CLASSES
    if numbers and not (classes[0] in (0, 1) and classes[-1] - classes[0] == len(classes) - 1):
        what = f"y has {len(classes)} classes, which are numbers from {classes[0]} to {classes[-1]}"
        cost = f"their order is not used, and a fit takes about {len(classes)} times as long as a regression"
        messages.warn(f"{what}: {cost}. Use BoostBPRegressor to predict an amount; {NAMES_CURE}.")
