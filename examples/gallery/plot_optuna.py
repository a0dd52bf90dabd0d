"""
Tuning with Optuna
==================

**Question:** how do I search the settings of a network without training every bad one to its end?

:mod:`boostbp.search` has a search space, and :func:`boostbp.callbacks.optuna_pruning` reports the score of each epoch
to Optuna, which stops trials that fall behind. The search starts with the default settings, so its result on the
validation rows is never worse than they are.
"""

import matplotlib.pyplot as plt
import optuna
from sklearn.datasets import make_friedman1
from sklearn.metrics import root_mean_squared_error
from sklearn.model_selection import train_test_split

from boostbp import BoostBPRegressor, callbacks
from boostbp.search import SPACES, start, suggest

optuna.logging.set_verbosity(optuna.logging.WARNING)
X, y = make_friedman1(600, noise=1.0, random_state=0)
X, X_valid, y, y_valid = train_test_split(X, y, random_state=0)

# %%
# Parameters in ``fixed`` are not searched. A real search would have hundreds of epochs and more trials.

fixed = {"epochs": 10, "random_state": 0, "hidden__n_estimators": 5, "output__n_estimators": 100}


def objective(trial):
    """Fit one draw of the settings, and return its error on the validation rows."""
    model = BoostBPRegressor(**suggest(trial, SPACES["deep"], fixed))
    model.fit(X, y, eval_set=[(X_valid, y_valid)], callbacks=[callbacks.optuna_pruning(trial)])
    return root_mean_squared_error(y_valid, model.predict(X_valid))


study = optuna.create_study(
    sampler=optuna.samplers.TPESampler(seed=0),
    pruner=optuna.pruners.MedianPruner(n_startup_trials=3, n_warmup_steps=2),
)
study.enqueue_trial(start(SPACES["deep"], fixed))
study.optimize(objective, n_trials=12)

# %%
# Each line is a trial. The dash at its end is the finished model, in which a layer on the features stands beside the
# network. Pruned trials end early and cost little. Twelve short trials gain little over the defaults here.

fig, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
for trial in study.trials:
    epochs, scores = zip(*sorted(trial.intermediate_values.items()), strict=True)
    if trial.number == study.best_trial.number:
        style = {"color": "tab:blue", "linewidth": 3, "label": "best", "zorder": 3}
    elif trial.number == 0:
        style = {"color": "tab:orange", "linewidth": 3, "label": "defaults", "zorder": 2}
    elif trial.state is optuna.trial.TrialState.PRUNED:
        style = {"color": "tab:gray", "linestyle": ":", "marker": "x", "markevery": [-1], "label": "pruned"}
    else:
        style = {"color": "tab:gray", "alpha": 0.6, "label": "complete"}
    ax.plot(epochs, scores, **style)
    if trial.state is optuna.trial.TrialState.COMPLETE:
        ax.plot(epochs[-1] + 0.4, trial.value, "_", color=style["color"], markersize=14, markeredgewidth=2)
handles, labels = ax.get_legend_handles_labels()
ax.legend(*zip(*{label: (handle, label) for handle, label in zip(handles, labels, strict=True)}.values(), strict=True))
ax.set(xlabel="epoch", ylabel="validation RMSE (noise: 1.0)")
plt.show()

# %%
# The settings of the best trial:

for name, value in study.best_params.items():
    print(f"{name:<28} {value:.3g}" if isinstance(value, float) else f"{name:<28} {value}")
