"""
Categories with many levels
===========================

**Question:** a column holds shops, postcodes or products, with few rows for each. Must I encode it first?

No. Columns of dtype ``category`` (or text) are read as they are. The example has sales of many shops. Each shop has its
own level, and demand falls with the price. We compare with LightGBM, once with the column as it is and once after the
usual remedy, a target encoder, while the shops become more and the rows of each shop fewer.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from lightgbm import LGBMRegressor
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import TargetEncoder

from boostbp import BoostBPRegressor

rng = np.random.default_rng(0)


def sales(shops, rows=3000):
    """Return a table of shops and prices, and the units sold."""
    level = rng.normal(size=shops)
    shop, price = rng.integers(shops, size=rows), rng.uniform(1, 3, rows)
    names = pd.Categorical.from_codes(shop, [f"shop {k}" for k in range(shops)])
    return pd.DataFrame({"shop": names, "price": price}), level[shop] - price + 0.5 * rng.normal(size=rows)


# %%
# Every model gets half of the rows. Errors are measured on the other half.

trees = {"n_estimators": 200, "num_leaves": 15, "learning_rate": 0.05, "n_jobs": 1, "verbose": -1}
encoder = make_column_transformer(
    (TargetEncoder(target_type="continuous"), ["shop"]), remainder="passthrough"
).set_output(transform="pandas")
models = {
    "LightGBM": LGBMRegressor(**trees),
    "LightGBM after a target encoder": make_pipeline(encoder, LGBMRegressor(**trees)),
    "boostbp": BoostBPRegressor(quality=1, random_state=0),
}
counts = [15, 50, 150, 500]
errors = {name: [] for name in models}
for count in counts:
    X, y = sales(count)
    for name, model in models.items():
        model.fit(X[:1500], y[:1500])
        errors[name].append(np.sqrt(np.mean((model.predict(X[1500:]) - y[1500:]) ** 2)))

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for (name, values), marker, color in zip(errors.items(), "s^o", ["tab:gray", "tab:orange", "tab:blue"], strict=True):
    ax.plot(counts, values, marker=marker, color=color, label=name)
ax.axhline(0.5, color="black", linewidth=0.8, linestyle=":", label="noise: no model can be better")
ax.set_xscale("log")
ax.set_xticks(counts, [f"{count}\n({1500 / count:.0f})" for count in counts])
ax.minorticks_off()
ax.set(xlabel="shops\n(training rows of each)", ylabel="test RMSE (units sold)", ylim=(0.45, None))
ax.legend()
plt.show()

# %%
# With few rows for each shop, boostbp needs no encoder to do as well as one. LightGBM can do better than here, too, if
# you tune its settings of categories (``min_data_per_group``, ``cat_smooth``, ``cat_l2``, ``max_cat_threshold``).
