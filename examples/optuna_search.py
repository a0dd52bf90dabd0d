"""Search the settings of a deep model with Optuna; trials that fall behind after some epochs are pruned.

python examples/optuna_search.py [--quick] [--trials 30] [--backend lightgbm]
"""

from __future__ import annotations

import argparse
import importlib.util
from typing import Any

from sklearn.datasets import make_friedman1
from sklearn.metrics import root_mean_squared_error
from sklearn.model_selection import train_test_split

from boostbp import BoostBPRegressor, callbacks
from boostbp.search import SPACES, start, suggest


def main(argv: list[str] | None = None) -> None:
    """Search, and compare the best trial with the first, which has the default values."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few trials on few rows")
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--backend", default="lightgbm")
    args = parser.parse_args(argv)
    if importlib.util.find_spec("optuna") is None:
        print("Skipped: optuna is not installed. pip install 'boostbp[optuna]'")
        return
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    X, y = make_friedman1(600 if args.quick else 3000, noise=1.0, random_state=0)
    X, X_test, y, y_test = train_test_split(X, y, random_state=0)
    X, X_valid, y, y_valid = train_test_split(X, y, random_state=0)
    always = {"backend": args.backend, "epochs": 30, "random_state": 0, "n_jobs": -1}
    always |= {"epochs": 4, "hidden__n_estimators": 5} if args.quick else {}

    def fit(trial: Any) -> float:
        model = BoostBPRegressor(**suggest(trial, SPACES["deep"], always))
        model.fit(X, y, eval_set=[(X_valid, y_valid)], callbacks=[callbacks.optuna_pruning(trial)])
        trial.set_user_attr("test", float(root_mean_squared_error(y_test, model.predict(X_test))))
        return float(root_mean_squared_error(y_valid, model.predict(X_valid)))

    pruner = optuna.pruners.MedianPruner(n_startup_trials=2 if args.quick else 5, n_warmup_steps=2)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0), pruner=pruner)
    study.enqueue_trial(start(SPACES["deep"], always))
    study.optimize(fit, n_trials=6 if args.quick else args.trials)
    pruned = sum(trial.state is optuna.trial.TrialState.PRUNED for trial in study.trials)
    print(f"{len(study.trials)} trials, {pruned} of them pruned")
    for name, trial in (("default", study.trials[0]), ("best", study.best_trial)):
        print(f"{name:<9} validation RMSE {trial.value:.4f}, test RMSE {trial.user_attrs['test']:.4f}")
    for name, value in study.best_params.items():
        print(f"  {name} = {value}")


if __name__ == "__main__":
    main()
