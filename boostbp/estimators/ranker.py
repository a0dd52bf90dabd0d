"""BoostBPRanker, and the queries of its rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NoReturn, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Tags
from sklearn.utils.metadata_routing import UNUSED

from boostbp import losses
from boostbp.estimators import session
from boostbp.estimators.arguments import Arguments, EvalSets, OneOrMore, entries, listed
from boostbp.estimators.base import public_methods
from boostbp.estimators.constructor import RankerParameters, takes
from boostbp.estimators.data import ColumnNames, Learnt
from boostbp.estimators.nested_parameters import documented_as
from boostbp.estimators.regressor import BoostBPRegressor
from boostbp.estimators.supervised import Supervised, check_offset
from boostbp.inputs.sources import is_blocks
from boostbp.inputs.targets import read_groups, read_target, read_weight
from boostbp.losses.query_losses import lacks_gain
from boostbp.metrics import AT_FIRST_ROWS
from boostbp.metrics.ranking import ndcg, query_bounds
from boostbp.model.model import Model, Targets
from boostbp.network.monitor import Progress
from boostbp.runtime import checks
from boostbp.runtime.arrays import Floats, TableLike
from boostbp.runtime.group import workers
from boostbp.runtime.messages import named_in_errors

PLACES = 10  # of the default metric
_QUERIES: dict[str, Any] = {"qid": True}  # metadata that scikit-learn routes by default
_QUERIES_OF_FIT = _QUERIES | {"groups": UNUSED}
_NO_INTERVALS = (
    "BoostBPRanker has no {}: the unit of its scores is arbitrary, and only their order within a query has a meaning. "
    "Use BoostBPRegressor for intervals of the relevance."
)


@documented_as(BoostBPRegressor)
@public_methods
class BoostBPRanker(Supervised):
    """Multi-layered gradient boosted trees for ranking, trained by back-propagation.

    Rows belong to queries, and the model learns scores that order the rows of a query by their relevance.

    Parameters
    ----------
    others : as in `BoostBPRegressor`
    loss : str or Loss
        ``"rank_xendcg"`` (listwise cross-entropy), ``"lambdarank"`` or ``"rank:ndcg"`` (LambdaMART),
        ``"rank:pairwise"`` (logistic loss of pairs), or an object of `boostbp.losses` with other parameters:
        ``LambdaRank(lambdarank_truncation_level=10, label_gain=(0, 1, 3))``.
    validation : float or splitter
        Share of the queries that is held out, drawn at random, or a splitter that takes groups, such as
        `GroupShuffleSplit`.
    eval_metric : str, callable, tuple or None
        ``"ndcg"`` (None) or ``"map"`` at the largest number of ``eval_at``, or with a number, ``"ndcg@5"``. Or a
        function ``f(y_true, y_pred)``, or a tuple, as in `BoostBPRegressor`; the columns of `y_true` are relevance and
        query.

    Attributes
    ----------
    others : as in `BoostBPRegressor`

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).random((400, 3))
    >>> relevance, qid = np.floor(3 * X[:, 0]), np.arange(400) // 10
    >>> model = BoostBPRanker(quality=1, random_state=0).fit(X, relevance, qid=qid)
    >>> round(model.score(X, relevance, qid=qid), 2)
    1.0
    """

    # Rows without their queries would have no meaning.
    __metadata_request__fit, __metadata_request__score = _QUERIES_OF_FIT, _QUERIES

    @takes(RankerParameters)
    def __init__(self) -> None: ...

    def fit(  # type: ignore[override]  # queries in place of groups
        self,
        X: TableLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        group: ArrayLike | None = None,
        qid: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        init_model: BoostBPRanker | None = None,
        eval_set: EvalSets | None = None,
        eval_names: Sequence[str] | None = None,
        eval_group: OneOrMore | None = None,
        eval_qid: OneOrMore | None = None,
        eval_at: int | Sequence[int] = PLACES,
        eval_X: OneOrMore | None = None,
        eval_y: OneOrMore | None = None,
        eval_sample_weight: OneOrMore | None = None,
        eval_offset: OneOrMore | None = None,
        callbacks: Sequence[Callable[[Progress], object]] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        keep_state: bool = False,
    ) -> Self:
        """Train the model.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix, (rows, features); path or dataset
            As in `BoostBPRegressor.fit`. With files, `y`, `qid` and `sample_weight` are column names.
        y : array-like, (rows,)
            Relevance: grades 0, 1, 2, ..., up to 30 with the default gains ``2**grade - 1``. ``"rank:pairwise"`` takes
            any numbers; if they are no such grades, the gain in the NDCG is their distance from the lowest of the
            query. Queries of one row or with equal grades are allowed, and teach nothing; some query must differ.
        sample_weight : array-like, (rows,) or (queries,), optional
            Weights of queries. Weights of rows must be the same in a query, as the loss is of the whole query.
        group : array-like, (queries,), optional
            Number of rows of each query; their rows are together, in this order. Or else `qid`.
        qid : array-like, (rows,), optional
            Query of each row, numbers or text, in any order of the rows.
        eval_group, eval_qid : array-like or tuple of array-like, optional
            `group` or `qid` of each evaluation set.
        eval_at : int or sequence of int
            Number of first rows of a query that count in the metric. Of several numbers, the largest is used.
        others : as in `BoostBPRegressor`

        Raises
        ------
        ValueError
            If the input, the relevance, the queries or a parameter is not usable; the message names it and the cure.
        KeyboardInterrupt
            As in `BoostBPRegressor.fit`.
        """
        if is_blocks(X):
            if not (isinstance(y, str) and isinstance(qid, str) and group is None):
                raise ValueError("X in files needs the names of the columns: y='relevance', qid='query'.")
            target, weight, query = cast("ArrayLike", [y, qid]), sample_weight, cast("ArrayLike", qid)
        else:
            first = sum(workers().gather(0 if group is None else len(np.atleast_1d(group)))[: workers().rank])
            target, weight = _target_of(y, sample_weight, group, qid, first=first)
            query = np.asarray(target)[:, 1]
        sets, passed = [], listed(eval_set, eval_X, eval_y, eval_sample_weight, eval_offset)
        groups, qids = entries("eval_group", eval_group, len(passed)), entries("eval_qid", eval_qid, len(passed))
        for part, sizes, ids in zip(passed, groups, qids, strict=True):
            with named_in_errors(part.source):
                relevance, of_rows = _target_of(part.y, part.weight, sizes, ids, prefix="eval_")
            sets.append(part._replace(y=relevance, weight=of_rows))
        if not sets and self.early_stopping and query is not qid and len(np.unique(query)) == 1:
            raise ValueError("group or qid has one query: give two or more, an eval_set, or early_stopping=False.")
        at = max(checks.whole("eval_at", number, 1) for number in np.atleast_1d(eval_at).tolist())
        metric = f"{self.eval_metric or 'ndcg'}@{at}" if self.eval_metric in (None, *AT_FIRST_ROWS) else None
        arguments = Arguments(
            X, target, weight, offset, query, init_model, sets, eval_names, metric, callbacks, checkpoint, keep_state
        )
        session.run_fit(self, arguments)
        return self

    def score(
        self,
        X: TableLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        group: ArrayLike | None = None,
        qid: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> float:
        """Return the NDCG at 10, in which queries without a relevant row count 1, as in LightGBM.

        Parameters
        ----------
        X, y, sample_weight, group, qid : as in `fit`
        offset : array-like or 0, optional
            As in `predict`; required if the model was fitted with one.
        """
        check_offset(self.model_, offset, "score")
        score = self.predict(X, offset=offset)
        target, weight = _target_of(y, sample_weight, group, qid)
        order = np.argsort(target[:, 1], kind="stable")
        gains = getattr(self.model_.targets.loss, "label_gain", None)
        of_rows = {"qid": target[order, 1], "sample_weight": None if weight is None else weight[order]}
        return float(ndcg(target[order, 0], score[order], k=PLACES, label_gain=gains, **of_rows))

    def refit(  # with the queries of the rows
        self,
        X: TableLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        group: ArrayLike | None = None,
        qid: ArrayLike | None = None,
        decay_rate: float = 0.9,
        offset: ArrayLike | None = None,
    ) -> Self:
        """Return a copy of the model whose leaves are fitted again to other rows; see `BoostBPRegressor.refit`.

        Parameters
        ----------
        X, y, sample_weight, group, qid : as in `fit`
        decay_rate, offset : as in `BoostBPRegressor.refit`
        """
        target, weight = _target_of(y, sample_weight, group, qid)
        return super().refit(X, target, weight, decay_rate=decay_rate, offset=offset)

    def calibrate(self, *args: object, **arguments: object) -> NoReturn:
        """Raise ValueError: a ranking has no intervals."""
        raise ValueError(_NO_INTERVALS.format("calibration"))

    def predict_interval(self, *args: object, **arguments: object) -> NoReturn:
        """Raise ValueError: a ranking has no intervals."""
        raise ValueError(_NO_INTERVALS.format("intervals"))

    def _read_target(self, values: Any, weight: Floats, earlier: Model | None, names: ColumnNames) -> Learnt:
        loss = losses.load_loss(self.loss, n_outputs=1, task="ranking")
        if losses.traits_of(loss).task != "ranking":
            raise ValueError(f"loss={self.loss!r} is not for ranking: use loss='rank_xendcg', or another estimator.")
        _check_weight(values, weight)
        if isinstance(loss, losses.PairwiseRanking) and loss.label_gain is None:
            # Pairs take any relevance, and the NDCG needs gains, which are the same for all sets and later fits.
            known = earlier and getattr(earlier.targets.loss, "label_gain", None) == "relevance"
            if known or workers().max(float(lacks_gain(values[:, 0], None).any()))[0]:
                loss = replace(loss, label_gain="relevance")
        return Targets(loss, np.zeros(1), np.ones(1), None, one_dimensional=True), values, weight

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "ranker"
        return tags


def _target_of(
    y: ArrayLike | None,
    sample_weight: ArrayLike | None,
    group: ArrayLike | None,
    qid: ArrayLike | None,
    *,
    first: int = 0,
    prefix: str = "",
) -> tuple[Floats, Floats | None]:
    """Return the target, (rows, 2), of relevance and query, and the weights of the rows, None without any.

    Queries that `group` divides are numbered from `first`. Messages have the names of the arguments with a `prefix`.
    """
    if (group is None) == (qid is None):
        given = "both given" if group is not None else "missing"
        either = f"{prefix}group, the number of rows of each query, or {prefix}qid, the query of each row"
        raise ValueError(f"{prefix}group and {prefix}qid are {given}: give one of them: {either}.")
    n_rows = 0 if y is None else len(y)  # type: ignore[arg-type]  # what has no length is refused
    relevance = read_target(y, n_rows)
    if relevance.ndim > 1:
        raise ValueError(f"y has {relevance.shape[1]} columns: give the relevance of each row, ({n_rows},).")
    if qid is not None:
        number, n_queries = _numbers_of(qid, n_rows, f"{prefix}qid")
    else:
        bounds = query_bounds(n_rows, group)
        n_queries = len(bounds) - 1
        number = np.repeat(np.arange(first, first + n_queries), np.diff(bounds)).astype(np.float64)
    target = np.column_stack([relevance, number])
    if sample_weight is None:
        return target, None
    by_query = np.ndim(sample_weight) == 1 and np.shape(sample_weight)[0] == n_queries != n_rows
    weight = read_weight(sample_weight, n_queries if by_query else n_rows)
    if by_query:
        weight = weight[np.unique(number, return_inverse=True)[1]]
    _check_weight(target, weight)
    return target, weight


def _numbers_of(qid: ArrayLike, n_rows: int, name: str) -> tuple[Floats, int]:
    """Return the number of the query of each row, (rows,), the same on all workers, and how many queries there are."""
    place = read_groups(qid, n_rows, name)
    values = np.asarray(qid)
    if values.dtype.kind not in "iuf" or np.abs(values).max(initial=0) > 2**53:  # float64 holds whole numbers up to it
        values = values.astype(str)
        known = np.unique(np.concatenate(workers().gather(np.unique(values))))
        values = np.searchsorted(known, values)
    return values.astype(np.float64), len(np.unique(place))


def _check_weight(target: Floats, weight: Floats) -> None:
    """Raise ValueError unless all rows of a query have the same weight."""
    _, first, query = np.unique(target[:, 1], return_index=True, return_inverse=True)
    if (wrong := weight != weight[first][query]).any():
        row = int(np.argmax(wrong))
        both = f"{weight[row]:g} in row {row} and {weight[first[query[row]]]:g} in row {first[query[row]]}"
        raise ValueError(
            f"sample_weight is {both} of one query: give one weight for each query, or the same to its rows."
        )
