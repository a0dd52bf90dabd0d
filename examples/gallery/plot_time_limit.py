"""
What does a time limit buy?
===========================

**Question:** I cannot wait for the whole fit. What do I get if I stop it early?

``max_time`` is a limit in seconds. A fit tries the most efficient candidates first and keeps the best model so far. We
fit once without a limit, and then with a half, a quarter and less of that time.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from lightgbm import LGBMRegressor

from boostbp import BoostBPRegressor

rng = np.random.default_rng(0)
angles = rng.uniform(-np.pi / 4, np.pi / 4, (2000, 5))  # the joints of a robot arm
direction = np.cumsum(angles, axis=1)
reach = np.hypot(np.cos(direction).sum(axis=1), np.sin(direction).sum(axis=1))
X, X_test, y, y_test = angles[:1000], angles[1000:], reach[:1000], reach[1000:]


def error(model):
    """Return the test error as a share of the target's standard deviation."""
    return np.std(model.predict(X_test) - y_test) / y_test.std()


begun = time.perf_counter()
full = BoostBPRegressor(random_state=0).fit(X, y)
seconds = time.perf_counter() - begun
shares = [1 / 16, 1 / 8, 1 / 4, 1 / 2]
models = [BoostBPRegressor(max_time=share * seconds, random_state=0).fit(X, y) for share in shares]

# %%
# Labels give the weight that networks have in the model.

fig, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
shares, models = [*shares, 1], [*models, full]
errors = [error(model) for model in models]
ax.plot(shares, errors, "o-", color="tab:blue", label="boostbp")
for share, value, model in zip(shares, errors, models, strict=True):
    ax.annotate(f"{model.history_.weight():.0%} networks", (share, value), xytext=(5, 7), textcoords="offset points")
lightgbm = LGBMRegressor(n_estimators=1000, num_leaves=7, n_jobs=1, verbose=-1).fit(X, y)
ax.axhline(error(lightgbm), color="tab:gray", linestyle=":", label="LightGBM, 1,000 rounds")
ax.set_xscale("log")
ax.set_xticks(shares, ["1/16", "1/8", "1/4", "1/2", "no limit"])
ax.minorticks_off()
ax.yaxis.set_major_formatter("{x:.0%}")
ax.set(xlabel="limit, as a share of the time of the whole fit", ylabel="test error (share of the target's std. dev.)")
ax.set_xlim(right=2)
ax.set_ylim(0, 1.15 * max(errors))
ax.legend(loc="lower left")
plt.show()

# %%
# Early time goes to single layers, later time to networks, which pay on this smooth target. Where networks do not pay,
# the fit ends early by itself. Ctrl-C has the same effect as a limit: the estimator keeps its best state.
