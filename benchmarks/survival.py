"""Survival times: discrimination and calibration beside XGBoost and scikit-survival, all with default settings.

``python -m benchmarks.survival`` fits all models to the tables that scikit-survival and, where it is installed,
lifelines ship, and prints means over splits and tables: Harrell's concordance, that of Uno (IPCW), the mean AUC over
time, the integrated Brier score, and the error of quantiles. The latter is the mean distance of a share, 10% to 50%,
from the share of test rows that had the event by the predicted quantile (Kaplan-Meier estimate). Splits are of 70% and
30%, stratified by event. ``--data-dir FOLDER`` reads other tables, files NAME.parquet with the columns ``time``,
``event`` and features. Rivals get categories as columns of 0 and 1, and medians for missing numbers. Curves of
XGBoost's survival:cox are Breslow's of the training rows, those of survival:aft of its normal noise of scale 1.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr
from sklearn.model_selection import train_test_split

from boostbp import BoostBPSurvival
from boostbp.metrics import breslow

Floats = NDArray[np.float64]
TEST = 0.3
SHARES = np.array([0.1, 0.2, 0.3, 0.4, 0.5])
COLUMNS = ("concordance", "IPCW", "AUC", "Brier", "quantiles", "seconds")
SKSURV = {
    "gbsg2": "load_gbsg2",
    "veterans": "load_veterans_lung_cancer",
    "whas500": "load_whas500",
    "aids": "load_aids",
    "breast_cancer": "load_breast_cancer",
}
LIFELINES = {
    "rossi": ("load_rossi", "week", "arrest"),
    "lung": ("load_lung", "time", "status"),
    "kidney_transplant": ("load_kidney_transplant", "time", "death"),
}


class Predicted(NamedTuple):
    """Risks of test rows, (rows,), and a function of times, (times,), to their probabilities of survival."""

    risk: Floats
    survival: Callable[[Floats], Floats]


def tables(folder: Path | None) -> dict[str, tuple[pd.DataFrame, NDArray[Any]]]:
    """Features and outcomes, with the fields event and time, by name."""
    found = {}
    if folder is not None:
        for path in sorted(folder.glob("*.parquet")):
            frame = pd.read_parquet(path)
            if {"time", "event"} <= set(frame.columns):
                found[path.stem] = (frame.drop(columns=["time", "event"]), outcomes(frame["event"], frame["time"]))
        return found
    datasets = import_module("sksurv.datasets")
    for name, load in SKSURV.items():
        X, y = getattr(datasets, load)()
        found[name] = (X, outcomes(*(y[field] for field in y.dtype.names)))
    try:
        datasets = import_module("lifelines.datasets")
    except ImportError:
        return found
    for name, (load, when, what) in LIFELINES.items():
        frame = getattr(datasets, load)()
        found[name] = (frame.drop(columns=[when, what]), outcomes(frame[what], frame[when]))
    return found


def outcomes(event: Any, when: Any) -> NDArray[Any]:
    """A structured array of events and times."""
    y = np.empty(len(event), [("event", bool), ("time", float)])
    y["event"], y["time"] = np.asarray(event).astype(bool), np.asarray(when, float)
    return y


def encoded(X: pd.DataFrame, X_test: pd.DataFrame) -> tuple[Floats, Floats]:
    """Columns of 0 and 1 for categories, and medians of the training rows for missing numbers."""
    both = pd.get_dummies(pd.concat([X, X_test]), dtype=float).astype(float)
    train, test = both.iloc[: len(X)], both.iloc[len(X) :]
    return train.fillna(train.median()).to_numpy(), test.fillna(train.median()).to_numpy()


def ours(loss: str, X: pd.DataFrame, y: NDArray[Any], X_test: pd.DataFrame) -> Predicted:
    """BoostBPSurvival."""
    model = BoostBPSurvival(loss=loss, random_state=0, n_jobs=1).fit(X, y)
    risk = model.predict(X_test) if loss == "cox" else -model.predict(X_test)
    return Predicted(risk, lambda times: model.predict_survival_function(X_test, times=times))


def xgboost_cox(X: pd.DataFrame, y: NDArray[Any], X_test: pd.DataFrame) -> Predicted:
    """XGBRegressor with survival:cox, and Breslow's baseline."""
    train, test = encoded(X, X_test)
    model = import_module("xgboost").XGBRegressor(objective="survival:cox", n_jobs=1)
    model.fit(train, np.where(y["event"], y["time"], -y["time"]))
    risk, risk_test = (model.predict(table, output_margin=True).astype(float) for table in (train, test))
    hazard = breslow(risk, y["time"], y["event"])
    return Predicted(risk_test, lambda times: np.exp(-hazard(times) * np.exp(risk_test)[:, None]))


def xgboost_aft(X: pd.DataFrame, y: NDArray[Any], X_test: pd.DataFrame) -> Predicted:
    """XGBoost with survival:aft, 100 rounds as in its scikit-learn interface."""
    xgboost = import_module("xgboost")
    train, test = encoded(X, X_test)
    upper = np.where(y["event"], y["time"], np.inf)
    data = xgboost.DMatrix(train, label_lower_bound=y["time"], label_upper_bound=upper)
    booster = xgboost.train({"objective": "survival:aft", "nthread": 1}, data, 100)
    margin = booster.predict(xgboost.DMatrix(test), output_margin=True).astype(float)
    return Predicted(-margin, lambda times: ndtr(margin[:, None] - np.log(times)))


def sksurv(kind: str, X: pd.DataFrame, y: NDArray[Any], X_test: pd.DataFrame) -> Predicted:
    """An estimator of scikit-survival's ensembles."""
    train, test = encoded(X, X_test)
    model = getattr(import_module("sksurv.ensemble"), kind)(random_state=0).fit(train, y)
    curves = model.predict_survival_function(test, return_array=True)
    with_start = np.hstack([np.ones((len(test), 1)), curves])
    steps = model.unique_times_
    return Predicted(model.predict(test), lambda times: with_start[:, np.searchsorted(steps, times, side="right")])


MODELS: dict[str, Callable[[pd.DataFrame, NDArray[Any], pd.DataFrame], Predicted]] = {
    "boostbp, cox": partial(ours, "cox"),
    "boostbp, aft": partial(ours, "aft"),
    "xgboost, survival:cox": xgboost_cox,
    "xgboost, survival:aft": xgboost_aft,
    "sksurv, GradientBoosting": partial(sksurv, "GradientBoostingSurvivalAnalysis"),
    "sksurv, RandomSurvivalForest": partial(sksurv, "RandomSurvivalForest"),
}


def error_of_quantiles(survival: Callable[[Floats], Floats], y: NDArray[Any]) -> float:
    """Mean distance of shares from the shares of rows with the event when the model expects them."""
    at_own_time = np.diag(survival(y["time"]))
    times, remaining = import_module("sksurv.nonparametric").kaplan_meier_estimator(y["event"], 1.0 - at_own_time)
    place = np.searchsorted(times, SHARES, side="right")
    known = times.max() >= SHARES  # later ones are beyond all rows
    return float(np.abs(1.0 - np.append(1.0, remaining)[place] - SHARES)[known].mean())


def measured(model: str, X: pd.DataFrame, y: NDArray[Any], seed: int) -> list[float]:
    """Scores of a model on the test rows of a split, and processor seconds of fit and prediction."""
    rows = train_test_split(np.arange(len(y)), test_size=TEST, random_state=seed, stratify=y["event"])
    train, test = (part[y["time"][part] > 0] for part in rows)
    truth, last = y[test], np.nextafter(y["time"][train].max(), 0.0)
    truth["event"] &= truth["time"] <= last  # curves and weights for censoring end with the training rows
    truth["time"] = np.minimum(truth["time"], last)
    begun = time.process_time()
    risk, survival = MODELS[model](X.iloc[train], y[train], X.iloc[test])
    seconds = time.process_time() - begun
    times = np.unique(np.quantile(truth["time"][truth["event"]], np.linspace(0.1, 0.8, 20)))
    times = times[times < truth["time"].max()]
    metrics = import_module("sksurv.metrics")
    concordance = metrics.concordance_index_censored(truth["event"], truth["time"], risk)[0]
    ipcw = metrics.concordance_index_ipcw(y[train], truth, risk, tau=times[-1])[0]
    _, auc = metrics.cumulative_dynamic_auc(y[train], truth, risk, times)
    brier = metrics.integrated_brier_score(y[train], truth, survival(times), times)
    return [concordance, ipcw, auc, brier, error_of_quantiles(survival, truth), seconds]


def main() -> None:
    """Measure all models on all tables, and print a row for each, and the means."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.survival", description=__doc__)
    parser.add_argument("--data-dir", type=Path, help="folder of NAME.parquet")
    parser.add_argument("--tables", nargs="+", help="names; all by default")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--splits", type=int, default=5)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    known = tables(options.data_dir)
    means: dict[str, list[Floats]] = {model: [] for model in options.models}
    print(f"{'table':18} {'model':30} {'  '.join(f'{name:>11}' for name in COLUMNS)}", flush=True)
    for name in options.tables or known:
        X, y = known[name]
        for model in options.models:
            scores = np.mean([measured(model, X, y, seed) for seed in range(options.splits)], axis=0)
            means[model].append(scores)
            print(f"{name:18} {model:30} {'  '.join(f'{score:11.4f}' for score in scores)}", flush=True)
    for model, rows in means.items():
        print(f"{'mean':18} {model:30} {'  '.join(f'{score:11.4f}' for score in np.mean(rows, axis=0))}", flush=True)


if __name__ == "__main__":
    main()
