"""A model of a folder of Parquet files, trained by a Dask cluster: here, of two processes of this machine."""

from __future__ import annotations

import tempfile
from pathlib import Path

import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask.distributed import Client, LocalCluster

from boostbp import load, save
from boostbp.dask import DaskBoostBPRegressor


def write(folder: Path) -> None:
    """Four files, as another program may have left them."""
    rng = np.random.default_rng(0)
    for number in range(4):
        rows = pd.DataFrame(rng.uniform(-2, 2, size=(1000, 4)), columns=["a", "b", "c", "d"])
        rows["city"] = rng.choice(["Bonn", "Hof", "Kiel", "Ulm"], len(rows))
        rows.loc[rng.random(len(rows)) < 0.05, "b"] = np.nan
        rows["price"] = np.sin(2 * rows["a"]) + rows["b"].fillna(0.0) * rows["c"] + (rows["city"] == "Ulm")
        rows.to_parquet(folder / f"part{number}.parquet")


def main() -> None:
    local = {"n_workers": 2, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with tempfile.TemporaryDirectory() as name, LocalCluster(**local) as cluster, Client(cluster):
        write(Path(name))
        rows = dd.read_parquet(name)
        model = DaskBoostBPRegressor((8,), deep=True, backend="xgboost", epochs=5, n_estimators=30, random_state=0)
        model.fit(rows.drop(columns="price"), rows["price"])
        print(model.summary())
        predicted = model.predict(rows.drop(columns="price"))  # lazy: nothing is computed yet
        print(f"mean prediction {predicted.mean().compute():.3f}, mean price {rows['price'].mean().compute():.3f}")
        print(f"R2 {model.score(rows.drop(columns='price'), rows['price']):.3f}")
        save(model.to_local(), Path(name) / "model.boostbp")
        of_file = load(Path(name) / "model.boostbp")
        print(of_file.predict(rows.drop(columns="price").head(3)))


if __name__ == "__main__":
    main()
