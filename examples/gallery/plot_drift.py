"""
The target drifts: fit again, or refit?
=======================================

**Question:** Prices rise month by month, and my model is from January. Must I fit a new one every month?

``refit`` keeps the trees and fits their leaves to the rows of the last month, as LightGBM's ``refit`` does. We compare
it with the model of January, and with a new fit to each month, on the rows of the following month.
"""

import time

import matplotlib.pyplot as plt
import numpy as np

from boostbp import BoostBPRegressor

rng = np.random.default_rng(0)


def month(number):
    """Return flats and their rents: all rise, and the price of size rises most."""
    X = rng.uniform(-1, 1, (4000 if number == 0 else 150, 5))  # January has many rows
    size, age, distance, floor, _ = X.T
    rent = (1 + 0.1 * number) * np.exp(size) + np.cos(3 * age) * np.exp(-distance) + 0.3 * size * floor
    return X, rent + 0.1 * number + rng.normal(0, 0.2, len(X))


def error(model, X, y):
    """Return the root mean square error."""
    return np.sqrt(np.mean((model.predict(X) - y) ** 2))


months = [month(number) for number in range(13)]
january = BoostBPRegressor(deep=False, random_state=0).fit(*months[0])
models = {"January's model": january, "refit": january, "new fit": january}
errors = {name: [] for name in models}
seconds = dict.fromkeys(models, 0.0)
for number in range(1, 13):
    for name, model in models.items():
        errors[name].append(error(model, *months[number]))
    begun = time.perf_counter()
    models["refit"] = models["refit"].refit(*months[number], decay_rate=0.5)
    refitted = time.perf_counter()
    models["new fit"] = BoostBPRegressor(deep=False, random_state=0).fit(*months[number])
    seconds["refit"] += refitted - begun
    seconds["new fit"] += time.perf_counter() - refitted

# %%
# Labels give the seconds of all twelve months together.

fig, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
for name, style in (("January's model", ":"), ("new fit", "--"), ("refit", "-")):
    label = f"{name} ({seconds[name]:.1f} s)" if seconds[name] else name
    ax.plot(range(1, 13), errors[name], style, marker="o", label=label)
ax.axhline(0.2, color="tab:gray", linewidth=0.8, label="noise")
ax.set(xlabel="months after January", ylabel="error in the next month", ylim=(0, None))
ax.legend()
plt.show()

# %%
# The refit follows the drift as closely as new fits, in a fraction of their time. Its trees were grown on the 4,000
# rows of January and still say where the effects bend; a new fit has 150 rows for both. ``decay_rate`` is the share of
# the old leaves: with less the model follows faster, with more it averages over more months.
