"""
How long will it run?
=====================

**Question:** when will a machine fail, if most machines still run?

Rows that have not failed yet are *censored*: their time is only known to be longer. Leaving them out would make all
machines look short-lived. ``BoostBPSurvival`` learns from both kinds of rows.
"""

import matplotlib.pyplot as plt
import numpy as np

from boostbp import BoostBPSurvival
from boostbp.losses import AFT


def machines(rows, seed):
    """Return load and temperature, times of failure, and times until which the machines were watched."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 1, size=(rows, 2))
    scale = np.exp(3.0 - 2.0 * X[:, 0] - 1.5 * np.maximum(X[:, 1] - 0.5, 0) * 2)
    return X, scale * rng.weibull(2.0, size=rows), rng.uniform(0, 15, size=rows)


X, failure, watched = machines(1500, 0)
X_test, failure_test, _ = machines(4000, 1)
failed = failure <= watched
y = np.column_stack([np.minimum(failure, watched), np.where(failed, failure, np.inf)])  # bounds of the time
print(f"{failed.mean():.0%} of the machines failed while they were watched")

# %%
# Two models: hazards that are proportional to each other, with a baseline of any form, and times that are stretched by
# the features, with noise of a known distribution. Both have curves of survival.

models = {
    'loss="cox"': BoostBPSurvival(random_state=0, quality=2, deep=False),
    'loss=AFT("extreme")': BoostBPSurvival(loss=AFT("extreme"), random_state=0, quality=2, deep=False),
}
times = np.linspace(0, 14, 200)
fig, axes = plt.subplots(1, 2, figsize=(7, 4), layout="constrained", sharey=True)
for ax, (name, model) in zip(axes, models.items(), strict=True):
    model.fit(X, y)
    for load, colour in ((0.1, "tab:blue"), (0.5, "tab:orange"), (0.9, "tab:red")):
        row = np.array([[load, 0.3]])
        curve = model.predict_survival_function(row, times=times)[0]
        ax.plot(times, curve, color=colour, label=f"load {load}")
        ax.plot(times, np.exp(-((times / np.exp(3.0 - 2.0 * load)) ** 2)), "--", color=colour, linewidth=0.8)
    ax.set_title(f"{name}\nconcordance {model.score(X, y):.3f}", fontsize=9.5)
    ax.set_xlabel("time")
axes[0].set_ylabel("share that still runs (dashed: the truth)")
axes[0].legend()
plt.show()

# %%
# A quantile is the time by which a share of such machines has failed: the date of an inspection, say. On new machines,
# whose times of failure are all known here, the shares are as promised.

for name, model in models.items():
    for share in (0.1, 0.25, 0.5):
        by_then = np.mean(failure_test <= model.predict_quantile(X_test, share))
        print(f"{name}: {by_then:.1%} failed by the quantile of level {share:.0%}")
