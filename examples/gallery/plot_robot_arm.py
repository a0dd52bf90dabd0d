"""
When does depth pay: a robot arm
================================

**Question:** my target is a smooth function of many features that act on each other. What do hidden layers gain?

The reach of a robot arm is such a target. The position of its hand is a sum of sines and cosines of *sums* of joint
angles, so no joint matters by itself. We compare LightGBM with two models of boostbp while the arm gets more joints.
"""

import matplotlib.pyplot as plt
import numpy as np
from lightgbm import LGBMRegressor

from boostbp import BoostBPRegressor

rng = np.random.default_rng(0)


def arm(rows, joints):
    """Return joint angles, and the distance of the hand from the shoulder."""
    angles = rng.uniform(-np.pi / 4, np.pi / 4, (rows, joints))
    direction = np.cumsum(angles, axis=1)
    return angles, np.hypot(np.cos(direction).sum(axis=1), np.sin(direction).sum(axis=1))


# %%
# Three models
# ------------
# LightGBM has constant leaves. ``deep=False`` is boostbp without hidden layers: single layers whose leaves hold small
# regressions. ``deep=True`` trains one network of two layers by back-propagation.

models = {
    "LightGBM": LGBMRegressor(n_estimators=1000, num_leaves=7, n_jobs=1, verbose=-1),
    "boostbp, single layers": BoostBPRegressor(deep=False, quality=1, random_state=0),
    "boostbp, network": BoostBPRegressor(deep=True, epochs=10, random_state=0),
}
joints = [2, 4, 8]
errors = {name: [] for name in models}
for count in joints:
    X, y = arm(1000, count)
    X_test, y_test = arm(1000, count)
    for name, model in models.items():
        residuals = model.fit(X, y).predict(X_test) - y_test
        errors[name].append(residuals.std() / y_test.std())

# %%
# The result
# ----------
# The vertical axis is logarithmic: equal distances are equal factors.

fig, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
for (name, values), color in zip(errors.items(), ["tab:gray", "tab:orange", "tab:blue"], strict=True):
    ax.semilogy(joints, values, "o-", color=color, label=name)
ax.set(xticks=joints, xlabel="joints of the arm", ylabel="test error (share of the target's std. dev.)")
ax.set_yticks(
    [0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5], ["0.2 %", "0.5 %", "1 %", "2 %", "5 %", "10 %", "20 %", "50 %"]
)
ax.minorticks_off()
ax.grid(alpha=0.3)
ax.legend()
plt.show()

# %%
# Leaves with regressions already help, because the target is smooth. The network helps more, because its hidden units
# can hold sums of angles, which trees on single angles must build from many splits.
