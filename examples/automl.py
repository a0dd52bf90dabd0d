"""Let others choose: a search of scikit-learn over a space of the package, and AutoGluon with BoostBP among its models.

python examples/automl.py [--quick] [--seconds 120]

AutoGluon wants an environment of its own: pip install 'boostbp[autogluon]'. Without it, the search runs alone.
"""

from __future__ import annotations

import argparse
import importlib.util
import tempfile

import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import RandomizedSearchCV, train_test_split

from boostbp import BoostBPClassifier
from boostbp.search import SPACES

LABEL = "diagnosis"


def search(train: pd.DataFrame, test: pd.DataFrame, *, quick: bool) -> None:
    """Draw settings of single layers, and compare them by cross-validation."""
    fixed = {"hidden_layer_sizes": (), "random_state": 0}
    space = SPACES["single"] | ({"n_estimators": [20]} if quick else {})
    drawn = RandomizedSearchCV(
        BoostBPClassifier(**fixed), space, n_iter=2 if quick else 20, cv=3, scoring="roc_auc", random_state=0
    )
    drawn.fit(train.drop(columns=LABEL), train[LABEL])
    score = roc_auc_score(test[LABEL], drawn.predict_proba(test.drop(columns=LABEL))[:, 1])
    print(f"scikit-learn: AUC {drawn.best_score_:.4f} on folds, {score:.4f} on the test rows; {drawn.best_params_}")


def autogluon(train: pd.DataFrame, test: pd.DataFrame, *, quick: bool, seconds: float) -> None:
    """Fit BoostBP, LightGBM and their weighted ensemble, on folds that AutoGluon draws."""
    from autogluon.tabular import TabularPredictor

    from boostbp.interop.autogluon import BoostBPModel

    ours = {"quality": 1} if quick else {}
    with tempfile.TemporaryDirectory() as folder:
        predictor = TabularPredictor(label=LABEL, eval_metric="roc_auc", path=folder, verbosity=0)
        predictor.fit(
            train,
            hyperparameters={BoostBPModel: ours, "GBM": {}},
            num_bag_folds=2 if quick else 5,
            ag_args_ensemble={"fold_fitting_strategy": "sequential_local"},
            time_limit=seconds,
        )
        columns = ["model", "score_val", "score_test", "fit_time"]
        print("AutoGluon, AUC on its folds and on the test rows:")
        print(predictor.leaderboard(test)[columns].to_string(index=False))


def main(argv: list[str] | None = None) -> None:
    """Search, and fit AutoGluon where it is installed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few and small models")
    parser.add_argument("--seconds", type=float, default=120.0, help="time limit of AutoGluon")
    args = parser.parse_args(argv)
    cancer = load_breast_cancer(as_frame=True).frame.rename(columns={"target": LABEL})
    train, test = train_test_split(cancer, random_state=0, stratify=cancer[LABEL])
    search(train, test, quick=args.quick)
    if importlib.util.find_spec("autogluon") is None:
        print("AutoGluon is not installed: pip install 'boostbp[autogluon]', in an environment of its own.")
        return
    autogluon(train, test, quick=args.quick, seconds=args.seconds)


if __name__ == "__main__":
    main()
