"""BoostBP+: the estimators of boostbp as a system, which holds rows out and averages models by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from tabarena.benchmark.exec_models import ExternalSystemModel

if TYPE_CHECKING:
    from tabarena.benchmark.task.metadata import ValidationMetadata

# Of the time limit: rounds end here. Those that have begun, the weights of the average, its scores and its summary took
# up to .22 of it more, with five classes.
_ROUNDS = 0.7


class BoostBPSystemModel(ExternalSystemModel):
    """The average of multi-layered networks and single layers of boosted trees, chosen on rows that it holds out.

    Init hyperparameters (each a per-config knob for the system generator):

    * ``quality`` — 1 (one to three layers) to 5 (the mean of four averages, each with held-out rows of its own).

    Paper: Learning Multi-Layered GBDT Via Back Propagation
    Authors: Zhendong Zhang
    Codebase: https://pypi.org/project/boostbp
    License: MIT
    """

    def __init__(self, *, quality: int = 3, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.quality = quality

    def _fit_system(
        self,
        X: pd.DataFrame,
        y: pd.Series,
        *,
        problem_type: str,
        validation_metadata: ValidationMetadata,
        num_cpus: int | None,
        time_limit: float | None,
        random_state: int | None,
        **kwargs: Any,
    ) -> BoostBPSystemModel:
        from boostbp import BoostBPClassifier, BoostBPRegressor

        time_on, group_on = validation_metadata.time_on, validation_metadata.group_on
        if time_on is not None:  # the latest rows are held out
            order = X[time_on].reset_index(drop=True).sort_values(kind="stable", na_position="first").index
            X, y = X.iloc[order], y.iloc[order]
        rows = _with_numbers_for_dates(X)
        grouped = group_on is not None and time_on is None
        kind = BoostBPRegressor if problem_type == "regression" else BoostBPClassifier
        self._estimator = kind(
            quality=self.quality,
            validation="last" if time_on is not None else 0.1,
            categorical_features=[str(name) for name in rows.select_dtypes(exclude=["number", "bool"])],
            max_time=None if time_limit is None else _ROUNDS * time_limit,
            n_jobs=-1 if num_cpus is None else num_cpus,
            random_state=0 if random_state is None else random_state,
        ).fit(rows, y, groups=X.groupby(group_on, dropna=False, observed=True).ngroup() if grouped else None)
        return self

    def _predict(self, X: pd.DataFrame) -> pd.Series:
        return pd.Series(self._estimator.predict(_with_numbers_for_dates(X)), index=X.index)

    def _predict_proba(self, X: pd.DataFrame) -> pd.DataFrame:
        probabilities = self._estimator.predict_proba(_with_numbers_for_dates(X))
        return pd.DataFrame(probabilities, index=X.index, columns=self._estimator.classes_)


def _with_numbers_for_dates(X: pd.DataFrame) -> pd.DataFrame:
    """Dates as days since 1970, missing ones as NaN; columns are called by strings."""
    dates = X.select_dtypes(include=["datetime", "datetimetz"])
    days = {
        name: (column.dt.tz_localize(None) if column.dt.tz is not None else column)
        .sub(pd.Timestamp(0))
        .dt.total_seconds()
        / 86400.0
        for name, column in dates.items()
    }
    return X.assign(**days).rename(columns=str)
