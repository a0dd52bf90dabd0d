"""
Monotone constraints with linear leaves
=======================================

**Question:** I know that the target rises with a feature. Can the model keep to that without turning into steps?

Yes. With LightGBM's ``linear_tree`` splits keep to a monotone constraint, but the regressions in the leaves do not. In
boostbp they do, so the curve always rises, and it is not a staircase.
"""

import matplotlib.pyplot as plt
import numpy as np
from lightgbm import LGBMRegressor

from boostbp import BoostBPRegressor

rng = np.random.default_rng(1)
area = rng.uniform(30, 200, 150)  # of flats, in square metres


def truth(area):
    """Return a price that always rises with area, steeply at first."""
    return 400 * (1 - np.exp(-area / 80))


price = truth(area) + 35 * rng.normal(size=len(area))
X = area[:, None]

# %%
# ``monotone_constraints`` takes a sign for each column, or names and signs, ``{"area": 1}``. Each model has 100 rounds.

single = {"hidden_layer_sizes": (), "early_stopping": False, "max_depth": 3, "random_state": 0}
models = {
    "LightGBM, monotone": LGBMRegressor(monotone_constraints=[1], n_jobs=1, verbose=-1),
    "boostbp, free": BoostBPRegressor(**single),
    "boostbp, monotone": BoostBPRegressor(**single, output={"monotone_constraints": [1]}),
}
grid = np.linspace(30, 200, 500)[:, None]
fig, axes = plt.subplots(1, 3, figsize=(7, 3.4), layout="constrained", sharey=True)
for ax, (name, model) in zip(axes, models.items(), strict=True):
    curve = model.fit(X, price).predict(grid)
    falls = np.mean(np.diff(curve) < 0)
    error = np.sqrt(np.mean((curve - truth(grid[:, 0])) ** 2))
    ax.plot(area, price, ".", color="tab:gray", markersize=4, alpha=0.6)
    ax.plot(grid[:, 0], truth(grid[:, 0]), color="black", linestyle=":", label="truth")
    ax.plot(grid[:, 0], curve, color="tab:blue", label="model")
    ax.set_title(f"{name}\nfalls on {falls:.0%}, error {error:.0f}", fontsize=10)
    ax.set_xlabel("area (m²)")
axes[0].set_ylabel("price (thousands)")
axes[0].legend(loc="lower right")
plt.show()
