"""Estimators on a Dask cluster: Dask arrays and data frames in, lazy predictions out.

`fit` does not move rows between workers; ``docs/guide/distributed.md`` has the guarantees and limits.

>>> from boostbp.dask import DaskBoostBPRegressor                                     # doctest: +SKIP
>>> client = distributed.Client()                                                     # doctest: +SKIP
>>> frame = dask.dataframe.read_parquet("rows/")                                      # doctest: +SKIP
>>> model = DaskBoostBPRegressor()                                                    # doctest: +SKIP
>>> model.fit(frame.drop(columns="y"), frame["y"])                                    # doctest: +SKIP
>>> model.predict(frame.drop(columns="y")).mean().compute()                           # doctest: +SKIP
>>> model.to_local().predict(rows_of_this_process)                                    # doctest: +SKIP
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence, Sized
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias, cast

from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import accuracy_score

from boostbp.distributed.cluster import Collection, computed, fit_cluster, is_collection, parts_of
from boostbp.distributed.on_cluster import OnCluster, no_rows_of
from boostbp.estimators import BoostBPClassifier, BoostBPRanker, BoostBPRegressor, BoostBPSurvival
from boostbp.estimators.ranker import PLACES
from boostbp.estimators.supervised import Supervised
from boostbp.metrics.scores import concordance
from boostbp.network.monitor import Progress

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["DaskBoostBPClassifier", "DaskBoostBPRanker", "DaskBoostBPRegressor", "DaskBoostBPSurvival"]

Table: TypeAlias = "Collection | ArrayLike"


class _OnDask(OnCluster):
    """Methods of a Dask estimator: it fits on the cluster, and predicts partition by partition."""

    _score: ClassVar[Callable[..., float]]

    def fit(
        self,
        X: Table,
        y: Table,
        sample_weight: Table | None = None,
        *,
        eval_set: Sequence[tuple[Table, ...]] | None = None,
        eval_names: Sequence[str] | None = None,
        eval_X: Table | Sequence[Table] | None = None,
        eval_y: Table | Sequence[Table] | None = None,
        eval_sample_weight: Table | Sequence[Table] | None = None,
        callbacks: Sequence[Callable[[Progress], object]] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        client: Client | None = None,
        timeout: float = 60.0,
    ) -> Self:
        """Train on the workers that hold the rows.

        Parameters
        ----------
        X : dask.array.Array or dask.dataframe.DataFrame, (rows, features)
            Partitions may be empty. Each worker concatenates its partitions.
        y, sample_weight : dask.array.Array or dask.dataframe.Series, (rows,), or (rows, outputs)
            With the partitions of `X`.
        eval_set, eval_names, eval_X, eval_y, eval_sample_weight : optional
            As in the estimator for one machine: Dask collections or tables in memory. Each worker gets all of them, so
            they must fit into its memory.
        callbacks : sequence of callable, optional
            Called on one of the workers.
        checkpoint : str or path, optional
            As in the estimator for one machine, in a folder that all workers share. A fit may continue from it on other
            workers, or another number of them. Partitions are moved if those of a worker are not successive.
        client : distributed.Client, optional
            The default is the latest client.
        timeout : float
            Seconds that workers wait for each other. A worker that dies or fails ends the fit at once, a frozen one
            after this time.

        Raises
        ------
        ValueError
            If the input or a parameter is not usable, or not supported on several workers.
        WorkersLostError
            If a worker died, or did not answer in time; the message names it.
        """
        columns = {"X": X, "y": y} | ({} if sample_weight is None else {"sample_weight": sample_weight})
        extra: dict[str, object] = {"eval_set": eval_set, "eval_names": eval_names, "eval_X": eval_X, "eval_y": eval_y}
        extra |= {"eval_sample_weight": eval_sample_weight, "callbacks": callbacks, "checkpoint": checkpoint}
        return self._fit_cluster(columns, extra, client, timeout)

    def _fit_cluster(
        self, columns: dict[str, Table], extra: dict[str, object], client: Client | None, timeout: float
    ) -> Self:
        extra = {name: value for name, value in extra.items() if value is not None}
        local = self._local(**self.get_params(deep=False))
        self._take(fit_cluster(local, columns, client=client, timeout=timeout, **extra))
        return self

    def _by_part(self, method: str, X: Table, *arguments: float) -> Any:
        """Apply a method of the local estimator, to a Dask collection lazily and by partition."""
        local = self.to_local()
        if not is_collection(X):
            return getattr(local, method)(X, *arguments)
        from dask import array
        from dask.delayed import delayed

        like = no_rows_of(local, method, *arguments)
        apply, model, parts = delayed(_applied, pure=False), delayed(local), parts_of(X)
        lengths = cast(Any, X).chunks[0] if hasattr(X, "chunks") else [math.nan] * len(parts)
        predicted = [
            array.from_delayed(apply(model, method, part, arguments, like), (length, *like.shape[1:]), meta=like)
            for part, length in zip(parts, lengths, strict=True)
        ]
        return array.concatenate(predicted, allow_unknown_chunksizes=True)

    def predict(self, X: Table) -> Any:
        """As the local estimator; for a Dask collection, a lazy dask.array.Array."""
        return self._by_part("predict", X)

    def transform(self, X: Table, layer: int = -1) -> Any:
        """As the local estimator; for a Dask collection, a lazy dask.array.Array."""
        return self._by_part("transform", X, layer)

    def score(self, X: Table, y: Table, sample_weight: Table | None = None) -> float:
        """Return the score like the local estimator; this collects the predictions of all rows."""
        return float(self._score(computed(y), computed(self.predict(X)), sample_weight=computed(sample_weight)))


def _applied(
    local: Supervised, method: str, part: Sized, arguments: tuple[float, ...], like: NDArray[Any]
) -> NDArray[Any]:
    return getattr(local, method)(part, *arguments) if len(part) else like


class DaskBoostBPRanker(_OnDask, BoostBPRanker):  # type: ignore[misc]  # its fit takes Dask collections
    """`BoostBPRanker` on a Dask cluster, with the same parameters; those that are not supported are refused.

    All rows of a query must be on one worker, which is certain if they are in one partition.
    """

    _local = BoostBPRanker

    def fit(  # type: ignore[override]
        self,
        X: Table,
        y: Table,
        sample_weight: Table | None = None,
        *,
        qid: Table,
        eval_set: Sequence[tuple[Table, ...]] | None = None,
        eval_names: Sequence[str] | None = None,
        eval_group: Sequence[Table] | None = None,
        eval_qid: Sequence[Table] | None = None,
        eval_at: int | Sequence[int] = PLACES,
        callbacks: Sequence[Callable[[Progress], object]] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        client: Client | None = None,
        timeout: float = 60.0,
    ) -> Self:
        """Train on the workers that hold the rows.

        Parameters
        ----------
        X, y, sample_weight, callbacks, checkpoint, client, timeout :
            As in `DaskBoostBPRegressor.fit`; weights are of rows.
        qid : dask.array.Array or dask.dataframe.Series, (rows,)
            Query of each row, with the partitions of `X`.
        eval_set, eval_names, eval_group, eval_qid, eval_at : optional
            As in `BoostBPRanker.fit`; without an `eval_set`, ``early_stopping`` must be False.
        """
        columns = {"X": X, "y": y, "qid": qid} | ({} if sample_weight is None else {"sample_weight": sample_weight})
        extra: dict[str, object] = {"eval_set": eval_set, "eval_names": eval_names, "eval_group": eval_group}
        extra |= {"eval_qid": eval_qid, "eval_at": eval_at, "callbacks": callbacks, "checkpoint": checkpoint}
        return self._fit_cluster(columns, extra, client, timeout)

    def score(  # type: ignore[override]
        self, X: Table, y: Table, sample_weight: Table | None = None, *, qid: Table
    ) -> float:
        """Return the score like the local estimator; this collects all rows."""
        return float(self.to_local().score(computed(X), computed(y), computed(sample_weight), qid=computed(qid)))


class DaskBoostBPRegressor(_OnDask, BoostBPRegressor):  # type: ignore[misc]  # its fit takes Dask collections
    """`BoostBPRegressor` on a Dask cluster, with the same parameters; those that are not supported are refused."""

    _local = BoostBPRegressor

    def predict_interval(self, X: Table, coverage: float = 0.9) -> Any:  # type: ignore[override]  # it has no offset
        """As the local estimator; for a Dask collection, a lazy dask.array.Array."""
        return self._by_part("predict_interval", X, coverage)


class DaskBoostBPClassifier(_OnDask, BoostBPClassifier):  # type: ignore[misc]  # its fit takes Dask collections
    """`BoostBPClassifier` on a Dask cluster, with the same parameters; those that are not supported are refused."""

    _local = BoostBPClassifier
    _score = staticmethod(accuracy_score)

    def predict_set(self, X: Table, coverage: float = 0.9) -> Any:  # type: ignore[override]  # it has no offset
        """As the local estimator; for a Dask collection, a lazy dask.array.Array."""
        return self._by_part("predict_set", X, coverage)

    def predict_proba(self, X: Table) -> Any:  # type: ignore[override]  # it has no offset
        """As the local estimator; for a Dask collection, a lazy dask.array.Array."""
        return self._by_part("predict_proba", X)

    def decision_function(self, X: Table) -> Any:  # type: ignore[override]
        """As the local estimator; for a Dask collection, a lazy dask.array.Array."""
        return self._by_part("decision_function", X)


class DaskBoostBPSurvival(_OnDask, BoostBPSurvival):  # type: ignore[misc]  # its fit takes Dask collections
    """`BoostBPSurvival` on a Dask cluster, with ``loss="aft"``: proportional hazards need all rows in one process."""

    _local = BoostBPSurvival

    def predict_survival_function(self, X: Table) -> Any:  # type: ignore[override]  # arrays, not step functions
        """Return values at `unique_times_`, (rows, times); for a Dask collection, a lazy dask.array.Array."""
        return self._by_part("predict_survival_function", X, True)

    def predict_quantile(self, X: Table, q: float = 0.5) -> Any:  # type: ignore[override]  # it has no offset
        """As the local estimator; for a Dask collection, a lazy dask.array.Array."""
        return self._by_part("predict_quantile", X, q)

    def score(self, X: Table, y: Table, sample_weight: Table | None = None) -> float:  # type: ignore[override]
        """Return Harrell's concordance; this collects the predictions of all rows."""
        times, targets = computed(self.predict(X)), self.model_.targets
        return concordance(targets.loss, times[:, None], targets.read(computed(y), len(times)), computed(sample_weight))
