"""
Intervals that hold what they promise
=====================================

**Question:** how far may the truth be from the prediction?

``calibration=0.2`` keeps a fifth of the rows out of the fit. From its errors on them the model learns how wide an
interval must be to contain, say, nine of ten targets. There are two kinds: around a model of the mean, all intervals
have the same width; a model of quantiles makes them wide where the target is uncertain.
"""

import matplotlib.pyplot as plt
import numpy as np

from boostbp import BoostBPRegressor


def sample(rows, seed):
    """Return a wave whose noise grows from left to right."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 10, rows)
    return x[:, None], np.sin(x) + (0.05 + 0.08 * x) * rng.normal(size=rows)


X, y = sample(2000, 0)
X_test, y_test = sample(4000, 1)
models = {
    "model of the mean": BoostBPRegressor(quality=1, calibration=0.2, random_state=0),
    "model of quantiles": BoostBPRegressor(
        loss="quantile", alpha=[0.05, 0.5, 0.95], quality=1, calibration=0.2, random_state=0
    ),
}

# %%
# Over all rows, both are right as often as asked. Only the model of quantiles is also right as often on the left as on
# the right. Its ``predict`` returns a column for each level of ``alpha``, and levels never cross.

grid = np.linspace(0, 10, 400)[:, None]
fig, axes = plt.subplots(1, 2, figsize=(7, 4), layout="constrained", sharey=True)
for ax, (name, model) in zip(axes, models.items(), strict=True):
    low, high = model.fit(X, y).predict_interval(grid, coverage=0.9).T
    ax.plot(X_test[:800, 0], y_test[:800], ".", color="tab:gray", markersize=3, alpha=0.6)
    ax.fill_between(grid[:, 0], low, high, color="tab:blue", alpha=0.35, linewidth=0)
    below, above = model.predict_interval(X_test, coverage=0.9).T
    inside = (below <= y_test) & (y_test <= above)
    shares = [inside[part].mean() for part in (slice(None), X_test[:, 0] < 3, X_test[:, 0] > 7)]
    ax.set_title("{}\ninside: {:.0%} (x < 3: {:.0%}; x > 7: {:.0%})".format(name, *shares), fontsize=9.5)
    ax.set_xlabel("feature x")
axes[0].set_ylabel("target, and its interval for 90 %")
plt.show()

# %%
# Sets of classes
# ---------------
# A classifier has sets of classes in place of intervals. Where it is sure, the set has one class. Here rows that the
# fit did not have calibrate a fitted model, as newer rows could do at any time.

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from boostbp import BoostBPClassifier

X, digit = load_digits(return_X_y=True)
X, X_test, digit, digit_test = train_test_split(X, digit, test_size=0.5, random_state=0, stratify=digit)
X, X_rest, digit, digit_rest = train_test_split(X, digit, test_size=0.3, random_state=0, stratify=digit)
classifier = BoostBPClassifier(quality=1, deep=False, n_estimators=60, random_state=0).fit(X, digit)
classifier.calibrate(X_rest, digit_rest)
for coverage in (0.9, 0.99):
    sets = classifier.predict_set(X_test, coverage)  # bool, (rows, classes)
    inside = sets[np.arange(len(sets)), digit_test].mean()
    size = sets.sum(axis=1).mean()
    print(f"coverage {coverage:.0%}: {inside:.1%} of the sets hold the true class; mean size {size:.2f}")
