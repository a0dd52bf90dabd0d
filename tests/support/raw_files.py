"""Files as teams export them: three tables of 2,000 rows whose cells no reader takes by default."""

from __future__ import annotations

import gzip

import numpy as np
import pandas as pd

ROWS = 2000
_GERMAN = str.maketrans(",.", ".,")


def european(path, rows=ROWS, seed=0):
    """Houses: ``;``, decimal commas, Latin-1, days before months, and an id that counts up."""
    rng = np.random.default_rng(seed)
    area, day = (
        rng.uniform(30, 2500, rows),
        pd.Timestamp("2019-01-01") + pd.to_timedelta(rng.integers(0, 1500, rows), "D"),
    )
    town = rng.choice(["Köln", "München", "Zürich"], rows)
    rent = 12 * area + 300 * (town == "Zürich") + 0.5 * (day - day.min()).days.to_numpy() + rng.normal(size=rows)
    table = pd.DataFrame({"Nr": 1000 + np.arange(rows), "Fläche": [f"{x:,.2f}".translate(_GERMAN) for x in area]})
    table["Ort"], table["Datum"] = town, day.strftime("%d.%m.%Y")
    table["Miete"] = [f"{x:.2f}".replace(".", ",") for x in rent]
    table.to_csv(path, sep=";", index=False, encoding="latin-1")
    return table


def american(path, rows=ROWS, seed=0):
    """Sales, gzipped: ``$1,234,567``, quoted thousands, truth in several spellings, times with a zone."""
    rng = np.random.default_rng(seed)
    size, paid = rng.integers(300, 9000, rows), rng.choice(["True", "true", "T", "yes", "False", "no"], rows)
    sold = pd.Timestamp("2022-05-01T09:30:00", tz="-05:00") + pd.to_timedelta(rng.integers(0, 500_000, rows), "min")
    tax = rng.normal(10_000, 1000, rows)
    price = 200_000 + 150 * size + 20_000 * np.isin(paid, ["True", "true", "T", "yes"]) + 5 * tax
    table = pd.DataFrame({"sqft": [f"{x:,}" for x in size], "tax": [f"${x:,.2f}" for x in tax], "paid": paid})
    table["sold_at"] = [moment.isoformat() for moment in sold]
    table["price"] = [f"${x:,.0f}" for x in price]
    with gzip.open(path, "wt", encoding="utf-8", newline="") as file:
        table.to_csv(file, index=False)
    return table


def rare_log(path, rows=ROWS, seed=0):
    """Transactions, of which 1.5 % are fraud: an integer id that counts up, ISO dates, ``?`` for missing."""
    rng = np.random.default_rng(seed)
    amount = rng.lognormal(3, 1, rows).round(2)
    fraud = (amount > np.quantile(amount, 0.985)).astype(int)
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.sort(rng.integers(0, 300, rows)), "D")
    table = pd.DataFrame({"tx_id": 500_000 + np.arange(rows), "day": day.strftime("%Y-%m-%d")})
    table["amount"] = np.where(rng.random(rows) < 0.05, "?", amount.astype(str))
    table["age"] = np.where(rng.random(rows) < 0.05, "?", rng.integers(18, 90, rows).astype(str))
    table["fraud"] = fraud
    table.to_csv(path, index=False)
    return table
