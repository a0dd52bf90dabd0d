"""In a pipeline on a raw table with categories and missing values: grid search, clone, out-of-fold predictions.

python examples/pipeline.py [--quick] [--backend xgboost]
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_diabetes
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from boostbp import BoostBPRegressor


def table() -> tuple[pd.DataFrame, pd.Series]:
    """Diabetes patients as a clinic would hold them: sex and weight class as words, some results missing."""
    frame, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    frame["sex"] = frame["sex"].map({1.0: "female", 2.0: "male"}).astype("category")
    frame["weight"] = pd.cut(frame.pop("bmi"), [0, 25, 30, 99], labels=["normal", "over", "obese"])
    rng = np.random.default_rng(0)
    for column in ("bp", "s5", "weight"):
        frame.loc[rng.random(len(frame)) < 0.1, column] = None
    return frame, y


def main() -> None:
    """Search, then compare out-of-fold predictions of what was found with those of the defaults."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer epochs and folds")
    parser.add_argument("--backend", default="lightgbm")
    args = parser.parse_args()
    X, y = table()
    print(X.dtypes.to_frame("dtype").assign(missing=X.isna().sum()).to_string(), end="\n\n")

    # Categories and missing values go in as they are; what else a column needs is said by its name.
    logs = ColumnTransformer(
        [("log", FunctionTransformer(np.log, feature_names_out="one-to-one"), ["s1", "s2", "s3", "s4"])],
        remainder="passthrough",
        verbose_feature_names_out=False,
    ).set_output(transform="pandas")
    # What the grid varies are hidden layers: deep=True trains the network that they are of.
    how = {"deep": True, "epochs": 2 if args.quick else 15, "early_stopping": False, "random_state": 0}
    model = BoostBPRegressor(backend=args.backend, **how)
    pipeline = Pipeline([("columns", logs), ("model", model)])
    folds = KFold(3 if args.quick else 5, shuffle=True, random_state=0)

    grid = {"model__hidden_layer_sizes": [(4,), (8,)], "model__output__reg_lambda": [1.0, 10.0]}
    search = GridSearchCV(pipeline, grid, cv=folds, n_jobs=2).fit(X, y)
    print(f"best of {len(search.cv_results_['params'])}: {search.best_params_}, R2 {search.best_score_:.3f}")

    # The search has seen these rows, so its figure flatters; nested folds would not.
    for name, candidate in {"defaults": pipeline, "found": clone(search.best_estimator_)}.items():
        predicted = cross_val_predict(candidate, X, y, cv=folds, n_jobs=2)
        print(f"{name:<9} out-of-fold R2 {r2_score(y, predicted):.3f}")

    found = search.best_estimator_
    hidden = found[:-1].transform(X.head(3))
    print(f"\nhidden representation of three rows, from the columns {list(hidden.columns)}:")
    print(found[-1].set_output(transform="pandas").transform(hidden).round(2).to_string())


if __name__ == "__main__":
    main()
