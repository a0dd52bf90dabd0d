"""Estimators on Spark: data frames in, the same data frames with a column of predictions out.

`fit` runs one barrier task for each worker; ``docs/guide/distributed.md`` has the guarantees and limits.

>>> from boostbp.spark import SparkBoostBPRegressor                                   # doctest: +SKIP
>>> frame = session.read.parquet("rows/")                                             # doctest: +SKIP
>>> model = SparkBoostBPRegressor().fit(frame, ["area", "city"], "price")             # doctest: +SKIP
>>> model.predict(frame).select("id", "prediction").show()                            # doctest: +SKIP
>>> model.to_local().predict(rows_of_this_process)                                    # doctest: +SKIP
"""

from __future__ import annotations

import pickle
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from boostbp.distributed import Address, WorkersLostError, fit_worker, tracked
from boostbp.distributed.on_cluster import OnCluster, no_rows_of
from boostbp.distributed.worker import refuse_unsupported
from boostbp.estimators import BoostBPClassifier, BoostBPRegressor
from boostbp.runtime.messages import require

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["SparkBoostBPClassifier", "SparkBoostBPRegressor"]

_TYPES = {"f": "double", "i": "bigint", "u": "bigint", "b": "boolean"}  # of Spark, by kind of NumPy; others are strings


def _spark(module: str) -> Any:
    return require(module, extra="spark", what="training on Spark")


class _OnSpark(OnCluster):
    """Methods of a Spark estimator: it fits in barrier tasks, and predicts lazily."""

    features_: list[str] | str

    def fit(
        self,
        df: DataFrame,
        features: Sequence[str] | str,
        label: Sequence[str] | str,
        sample_weight: str | None = None,
        *,
        n_workers: int | None = None,
        timeout: float = 60.0,
        **fit: Any,
    ) -> Self:
        """Train in barrier tasks, among which Spark divides the rows in their order.

        Parameters
        ----------
        df : pyspark.sql.DataFrame
            The rows. It is evaluated twice, first to divide them: let it be cached if it is costly.
        features : sequence of str, or str
            Names of columns; strings are categories. Or the name of one column of vectors or arrays.
        label : str, or sequence of str
            Name of the target's column, or of several for several outputs.
        sample_weight : str, optional
            Name of a column.
        n_workers : int, optional
            Number of tasks. The default is the number that can run at once; a larger one is refused by Spark.
        timeout : float
            Seconds that workers wait for each other.
        **fit :
            Other arguments of `fit` of the estimator for one machine. Tables of an `eval_set` are in memory, with the
            columns of `features` in this order. `callbacks` are called on an executor. The path `checkpoint` must be in
            a folder that all executors share.

        Raises
        ------
        ValueError
            If the input or a parameter is not usable, or not supported on several workers.
        WorkersLostError
            If a worker died, or did not answer in time.
        """
        local = self._local(**self.get_params(deep=False))
        refuse_unsupported(local, fit=fit)
        _spark("pyspark")
        if not hasattr(df, "sparkSession"):
            raise TypeError(f"df is a {type(df).__name__} of {type(df).__module__}: give a Spark data frame.")
        if n_workers is None:
            context = df.sparkSession.sparkContext
            n_workers = max(1, context.defaultParallelism // int(context.getConf().get("spark.task.cpus", "1")))
        features = features if isinstance(features, str) else list(features)
        labels = [label] if isinstance(label, str) else list(label)
        others = map(_column, labels if sample_weight is None else [*labels, sample_weight])
        place = _spark("pyspark.sql.functions").monotonically_increasing_id()
        columns = [*_columns(df, features), *others, place]
        named = df.select(*columns).toDF(*map(str, range(len(columns))))  # names may repeat
        order = str(len(columns) - 1)
        rows = named.repartitionByRange(n_workers, order).sortWithinPartitions(order)
        task = _task(local, features, len(labels), sample_weight is not None, timeout, fit)
        try:
            collected = rows.mapInPandas(task, "result binary", barrier=True).collect()
        except Exception as error:  # of classes that differ between versions of Spark
            if "barrier" not in str(error):
                raise
            raise WorkersLostError("A barrier task ended without an answer: Spark's error, above, says why.") from error
        results = [pickle.loads(row[0]) for row in collected]
        errors = [result for result in results if isinstance(result, Exception)]
        if errors:  # that of the cause, rather than of a worker that only lost it
            raise min(errors, key=lambda error: isinstance(error, WorkersLostError))
        if not results:
            raise ValueError("df has no rows: give at least one.")
        self._take(results[0])
        self.features_ = features
        return self

    def to_local(self) -> Any:
        """Return the fitted estimator for one machine, which does not need Spark."""
        local = super().to_local()
        del local.features_
        return local

    def _with_column(self, name: str, method: str, X: Any, *arguments: float) -> Any:
        """Add to a Spark data frame what a method of the local estimator returns, or return it for other tables."""
        local = self.to_local()
        if not hasattr(X, "sparkSession"):
            return getattr(local, method)(X, *arguments)
        like, pandas = no_rows_of(local, method, *arguments), _spark("pandas")
        features, functions = self.features_, _spark("pyspark.sql.functions")

        def added(parts: Iterable[Any]) -> Iterator[Any]:
            local.n_jobs = local.n_jobs or _spark("pyspark").TaskContext.get().cpus()
            for part in parts:
                yield pandas.Series(getattr(local, method)(_table(part, features), *arguments).tolist())

        hints: Any = Iterator
        added.__annotations__ = {"parts": hints[pandas.DataFrame], "return": hints[pandas.Series]}
        kind = _TYPES.get(like.dtype.kind, "string")
        for _ in like.shape[1:]:
            kind = f"array<{kind}>"
        return X.withColumn(name, functions.pandas_udf(added, kind)(functions.struct(*_columns(X, features))))

    def predict(self, X: Any) -> Any:
        """As the local estimator; a Spark data frame gets the column ``prediction``."""
        return self._with_column("prediction", "predict", X)

    def transform(self, X: Any, layer: int = -1) -> Any:
        """As the local estimator; a Spark data frame gets the column ``units``, of arrays."""
        return self._with_column("units", "transform", X, layer)


def _column(name: str) -> Column:
    return _spark("pyspark.sql.functions").col(f"`{name.replace('`', '``')}`")  # dots are part of a name


def _columns(df: DataFrame, features: Sequence[str] | str) -> list[Column]:
    """Return the columns of the features: numbers in float64, strings, or one of arrays."""
    types, column = _spark("pyspark.sql.types"), _column(features) if isinstance(features, str) else None
    if column is not None:
        is_array = isinstance(df.schema[features].dataType, types.ArrayType)
        return [column if is_array else _spark("pyspark.ml.functions").vector_to_array(column)]
    numbers = (types.NumericType, types.BooleanType)
    return [
        _column(name).cast("double") if isinstance(df.schema[name].dataType, numbers) else _column(name)
        for name in features
    ]


def _table(part: Any, features: list[str] | str) -> Any:
    """Return rows of Spark as a data frame with the names of the features, or the arrays of one column as a matrix."""
    return np.stack(part.iloc[:, 0].to_numpy()) if isinstance(features, str) else part.set_axis(features, axis=1)


def _task(
    estimator: Any, features: list[str] | str, n_labels: int, weighted: bool, timeout: float, fit: dict[str, Any]
) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Return the work of a barrier task: rows as data frames in, the pickled model or error out."""

    def work(parts: Iterable[Any]) -> Iterator[Any]:
        pandas, barrier = _spark("pandas"), _spark("pyspark").BarrierTaskContext.get()
        frames = list(parts)
        rows = pandas.concat(frames, ignore_index=True) if frames else pandas.DataFrame()
        counts = [int(count) for count in barrier.allGather(str(len(rows)))]
        members, task = np.flatnonzero(counts).tolist(), barrier.partitionId()  # a task may have no rows
        if not members:
            return
        host = barrier.getTaskInfos()[members[0]].address.rpartition(":")[0].strip("[]")
        stack, port = ExitStack(), 0
        if task == members[0]:
            host = str(socket.getaddrinfo(host, None)[0][4][0])
            port = stack.enter_context(tracked(len(members), host=host, timeout=timeout)).port
        host, port = barrier.allGather(f"{host} {port}")[members[0]].split()
        if task not in members:
            return
        address, rank = Address(host, int(port), len(members), timeout), members.index(task)
        n_features = 1 if isinstance(features, str) else len(features)
        y = rows.iloc[:, n_features if n_labels == 1 else slice(n_features, n_features + n_labels)].to_numpy()
        weight = rows.iloc[:, -2].to_numpy() if weighted else None
        estimator.n_jobs = estimator.n_jobs or barrier.cpus()
        try:
            with stack:
                X = _table(rows.iloc[:, :n_features], features)
                result = fit_worker(estimator, X, y, weight, address=address, rank=rank, **fit)
        except Exception as error:  # returned, so that the driver raises it, and not an error of Spark
            error.add_note(f"In the barrier task {task} of Spark.")
            result = error
        if rank == 0 or isinstance(result, Exception):
            yield pandas.DataFrame({"result": [_spark("pyspark.cloudpickle").dumps(result)]})

    return work


class SparkBoostBPRegressor(_OnSpark, BoostBPRegressor):  # type: ignore[misc]  # its fit takes Spark data frames
    """`BoostBPRegressor` on Spark, with the same parameters; those that are not supported are refused."""

    _local = BoostBPRegressor

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Any:  # type: ignore[override]  # it has no offset
        """As the local estimator; a Spark data frame gets the column ``interval``, of arrays."""
        return self._with_column("interval", "predict_interval", X, coverage)


class SparkBoostBPClassifier(_OnSpark, BoostBPClassifier):  # type: ignore[misc]  # its fit takes Spark data frames
    """`BoostBPClassifier` on Spark, with the same parameters; those that are not supported are refused."""

    _local = BoostBPClassifier

    def predict_proba(self, X: Any) -> Any:  # type: ignore[override]  # it has no offset
        """As the local estimator; a Spark data frame gets the column ``probability``, of arrays by `classes_`."""
        return self._with_column("probability", "predict_proba", X)

    def predict_set(self, X: Any, coverage: float = 0.9) -> Any:  # type: ignore[override]  # it has no offset
        """As the local estimator; a Spark data frame gets the column ``set``, of arrays by `classes_`."""
        return self._with_column("set", "predict_set", X, coverage)

    def decision_function(self, X: Any) -> Any:  # type: ignore[override]
        """As the local estimator; a Spark data frame gets the column ``decision``."""
        return self._with_column("decision", "decision_function", X)
