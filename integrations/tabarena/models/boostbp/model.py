"""BoostBP as a model: one layer of boosted trees with linear regressions in their leaves."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from autogluon.core.models import AbstractModel
from autogluon.core.utils.exceptions import TimeLimitExceeded
from pandas import concat

if TYPE_CHECKING:
    from pandas import DataFrame, Series

# Share of the time limit after which no round begins. With running rounds, weights, scores and the summary, fits end at
# .73 to .82 of 5 and 15 s on an idle core (seven tables of 900 to 90,000 rows), and at .81 to .90 of 15 s on a tenth of
# a core.
_ROUNDS = 0.7
# AutoGluon's metrics of numbers that choose the number of rounds; others have the order of `loss`. For classes, the
# log-loss chooses it, which is more stable than accuracy.
_METRICS = ("mean_absolute_error", "mean_absolute_percentage_error")


class BoostBPModel(AbstractModel):
    """A layer of boosted trees with linear regressions in their leaves.

    Two layers are begun, with constants and with regressions in the leaves, and the one with less error on the
    validation rows is kept; if neither is clearly better, both are, as one sum. A third, on sums of features, joins
    them if its first rounds promise much. It is one model, without the average with networks that is the default of the
    package (see ``tabarena.systems.boostbp``). Categories and missing values go to it as they are.

    Paper: Learning Multi-Layered GBDT Via Back Propagation
    Authors: Zhendong Zhang
    Codebase: https://pypi.org/project/boostbp
    License: MIT
    """

    ag_key = "BOOSTBP"
    ag_name = "BoostBP"
    ag_priority = 65
    seed_name = "random_state"
    default_resources_physical_cores_only = True
    _supported_problem_types: ClassVar[list[str]] = ["binary", "multiclass", "regression"]
    _default_auxiliary_params_extra: ClassVar[dict[str, Any]] = {
        "valid_raw_types": ["bool", "int", "float", "category"]
    }

    def _fit(
        self,
        X: DataFrame,
        y: Series,
        X_val: DataFrame | None = None,
        y_val: Series | None = None,
        time_limit: float | None = None,
        sample_weight: Series | None = None,
        sample_weight_val: Series | None = None,
        num_cpus: int = 1,
        **kwargs: object,
    ) -> None:
        from boostbp import BoostBPClassifier, BoostBPRegressor

        begun = time.monotonic()
        regression = self.problem_type == "regression"
        params: dict[str, Any] = {"n_jobs": num_cpus, "verbose": 0}
        if regression and self.stopping_metric.name in _METRICS:
            params["eval_metric"] = self.stopping_metric.name
        params |= self._get_model_params()
        X = self.preprocess(X)
        if not regression:
            X, y, sample_weight = _with_all_classes(X, y, sample_weight, self.num_classes)
        eval_set = None if X_val is None else [(self.preprocess(X_val), y_val, sample_weight_val)]
        if time_limit is not None:
            left = _ROUNDS * time_limit - (time.monotonic() - begun)
            if left <= 0:
                raise TimeLimitExceeded
            params["max_time"] = min(left, params.get("max_time") or left)
        estimator = BoostBPRegressor() if regression else BoostBPClassifier()
        self.model = estimator.set_params(**params).fit(X, y, sample_weight, eval_set=eval_set)

    def _preprocess(self, X: DataFrame, **kwargs: object) -> DataFrame:
        """Return the table with missing values in place of infinite ones."""
        X = super()._preprocess(X, **kwargs)
        floats = X.select_dtypes(np.floating)
        finite = np.isfinite(floats) | floats.isna()
        if finite.to_numpy().all():
            return X
        X = X.copy()
        X[floats.columns] = floats.where(finite)
        return X

    def _set_default_params(self) -> None:
        self._set_default_param_value("quality", 1)

    @classmethod
    def _estimate_memory_usage_static(
        cls,
        *,
        X: DataFrame,
        hyperparameters: dict[str, Any] | None = None,
        num_classes: int | None = 1,
        num_cpus: int = 1,
        time_limit: float | None = None,
        **kwargs: object,
    ) -> int:
        """Return an estimate of the memory of a fit: .66 to 1.6 times that of 24 fits of 300 to 50,000 rows.

        On a busy machine, a fit that the time limit ends takes less.
        """
        outputs = num_classes if num_classes and num_classes > 2 else 1
        settings = hyperparameters or {}
        sizes = settings.get("hidden_layer_sizes", (16,))
        rows, columns = X.shape
        table = rows * 10 * columns  # float64 and bins
        if settings.get("quality") == 1 or not sizes:
            return int(15e6 + table + 400 * rows * outputs)
        if settings.get("deep") is True:
            units = sum(sizes) if isinstance(sizes, tuple | list) else sizes
            # Up to 10,000 rows units are grown together; with more, each has histograms of its own leaves.
            histograms = 0 if rows <= 10_000 else num_cpus * units * columns * 255 * 16 * 8
            return int(42e6 + table + rows * (50 * units + 400 * outputs) + histograms)
        chosen, growth = (rows, 15e6) if rows < 50_000 else (20_000, 7e6)  # with many rows, a sample chooses the model
        # Leaf numbers of all trees of all candidates, histograms and leaf regressions.
        of_candidates = 2_500 * chosen * outputs + (7e5 + 2e5 * outputs) * columns
        # The first candidates, and the increase per second on an idle core, as trees of few columns grow fast.
        seconds = min(time_limit or math.inf, settings.get("max_time") or math.inf)
        in_time = 3.5e5 * columns + growth * (outputs / columns) ** 0.6 * num_cpus * seconds
        return int(15e6 + table + 50 * rows * outputs + min(of_candidates, in_time))

    def _more_tags(self) -> dict[str, bool]:
        return {"can_refit_full": True}


def _with_all_classes(
    X: DataFrame, y: Series, weight: Series | None, num_classes: int
) -> tuple[DataFrame, Series, Series | None]:
    """Add a row of weight 0 for each class without rows, so that probabilities have a column for it."""
    absent = sorted(set(range(num_classes)) - set(y))
    if not absent:
        return X, y, weight
    weight = type(y)(1.0, y.index) if weight is None else weight
    rows = X.iloc[[0] * len(absent)]
    of_rows = [type(y)(values, rows.index) for values in (absent, 0.0)]
    return concat([X, rows]), concat([y, of_rows[0]]), concat([weight, of_rows[1]])
