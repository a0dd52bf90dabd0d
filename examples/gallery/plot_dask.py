"""
Rows on several machines: Dask
==============================

**Question:** my rows lie on the workers of a Dask cluster. Can one model be fitted to all of them?

Yes. :class:`boostbp.dask.DaskBoostBPRegressor` leaves the rows on the workers that hold them. The workers grow the same
trees together and add up the sums of the leaf regressions. The result is an ordinary model.
Here the cluster has two processes of this machine; with the address of a scheduler, ``Client("tcp://...")``, nothing
else changes.
"""

import logging
import tempfile
from pathlib import Path

import dask.dataframe as dd
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from dask.distributed import Client, LocalCluster

from boostbp import plots
from boostbp.dask import DaskBoostBPRegressor


def write_parts(folder):
    """Write four Parquet files, as another program may have left them."""
    rng = np.random.default_rng(0)
    for number in range(4):
        rows = pd.DataFrame(rng.uniform(-2, 2, size=(1000, 3)), columns=["a", "b", "c"])
        rows["city"] = rng.choice(["Bonn", "Hof", "Kiel", "Ulm"], len(rows))
        rows["price"] = np.sin(2 * rows["a"]) + rows["b"] * rows["c"] + (rows["city"] == "Ulm")
        rows.to_parquet(Path(folder) / f"part{number}.parquet")


# %%
# Workers are processes that import this file, so a script needs the line ``if __name__ == "__main__"``.
# Predictions are lazy: ``compute`` gathers them.

if __name__ == "__main__":
    local = {
        "n_workers": 2,
        "threads_per_worker": 1,
        "host": "127.0.0.1",
        "dashboard_address": None,
        "silence_logs": logging.ERROR,
    }
    with tempfile.TemporaryDirectory() as folder, LocalCluster(**local) as cluster, Client(cluster):
        write_parts(folder)
        rows = dd.read_parquet(folder)
        X, y = rows.drop(columns="price"), rows["price"]
        model = DaskBoostBPRegressor((8,), deep=True, backend="xgboost", epochs=5, n_estimators=30, random_state=0)
        model.fit(X, y)
        price, predicted = y.compute(), model.predict(X).compute()
        alone = model.to_local()  # an estimator without Dask, to save or export

    fig, axes = plt.subplots(1, 2, figsize=(7, 3.6), layout="constrained")
    axes[0].plot(price, predicted, ".", markersize=2, alpha=0.5)
    axes[0].axline((0, 0), slope=1, color="black", linewidth=0.8, linestyle=":")
    axes[0].set(xlabel="price", ylabel="predicted price", title="4,000 rows on two workers")
    plots.importances(alone, axes[1])
    plt.show()
