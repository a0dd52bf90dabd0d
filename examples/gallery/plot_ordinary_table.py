"""
What do I gain on an ordinary table?
====================================

**Question:** my data are a normal business or medical table with noise. Is it worth replacing LightGBM?

Expect a small gain. We take the diabetes table that scikit-learn ships: 442 patients, ten measurements, and a noisy
target. Five-fold cross-validation gives every model the same rows, and error is relative to LightGBM on the same fold.
"""

import matplotlib.pyplot as plt
import numpy as np
from lightgbm import LGBMRegressor
from sklearn.datasets import load_diabetes
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold, cross_val_score

from boostbp import BoostBPRegressor

X, y = load_diabetes(return_X_y=True)
folds = KFold(5, shuffle=True, random_state=0)
models = {
    "LightGBM, 100 rounds": LGBMRegressor(n_jobs=1, verbose=-1),
    "LightGBM, small trees": LGBMRegressor(num_leaves=4, learning_rate=0.05, n_jobs=1, verbose=-1),
    "ridge regression": RidgeCV(np.logspace(-3, 3, 13)),
    "boostbp, quality=1": BoostBPRegressor(quality=1, random_state=0),
    "boostbp, quality=2": BoostBPRegressor(quality=2, random_state=0),
}
rmse = {
    name: -cross_val_score(model, X, y, cv=folds, scoring="neg_root_mean_squared_error")
    for name, model in models.items()
}

# %%
# One dot is one fold, and the bar is the mean.

reference = rmse["LightGBM, 100 rounds"]
fig, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
for row, (name, values) in enumerate(rmse.items()):
    color = "tab:blue" if name.startswith("boostbp") else "tab:gray"
    ratio = values / reference
    ax.plot(ratio, np.full(len(ratio), row), "o", color=color, alpha=0.5)
    ax.plot([ratio.mean()] * 2, [row - 0.3, row + 0.3], color=color, linewidth=3)
ax.axvline(1, color="black", linewidth=0.8, linestyle=":")
ax.set_yticks(range(len(rmse)), list(rmse))
ax.invert_yaxis()
ax.set_xlabel("test RMSE divided by that of LightGBM with its defaults")
plt.show()

# %%
# Without tuning, boostbp has the lowest mean. But the dots of one model are further apart than the means, and two cheap
# models come close: LightGBM with smaller trees, and ridge regression, because the relations in this table are almost
# linear. The higher quality gains nothing over ``quality=1``. Hidden layers do not help either, as ``summary()`` says.

model = BoostBPRegressor(random_state=0).fit(X, y)
print(model.summary())
