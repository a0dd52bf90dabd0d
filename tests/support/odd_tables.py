"""Tables whose signal is in cells that look wrong: a model that replaces or clips such cells cannot see it.

Each function takes the number of rows and a seed, and returns features and target.
"""

from __future__ import annotations

import numpy as np


def sensors(rows, seed, count=2, share=0.005):
    """Sensors of one quantity; the class is that one of them is far off."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 1)) + 0.05 * rng.normal(size=(rows, count))
    off = rng.choice(rows, round(share * rows), replace=False)
    X[off, rng.integers(0, count, len(off))] += rng.uniform(15.0, 40.0, len(off))
    return X, np.isin(np.arange(rows), off).astype(int)


def amounts(rows, seed, share=0.007):
    """Usual amount of a client, amount of a payment, hour, age; the class is an amount 15 to 60 times the usual."""
    rng = np.random.default_rng(seed)
    usual = np.exp(rng.normal(3.0, 0.6, rows))
    amount = usual * np.exp(0.2 * rng.normal(size=rows))
    fraud = rng.random(rows) < share
    amount[fraud] *= rng.uniform(15.0, 60.0, fraud.sum())
    return np.column_stack([usual, amount, rng.integers(0, 24, rows), rng.uniform(18, 80, rows)]), fraud.astype(int)


def candles(rows, seed, share=0.006):
    """Open, high, low and close of a day; the target is log(high / low), which a crash makes large."""
    rng = np.random.default_rng(seed)
    opened = np.exp(rng.normal(4.0, 0.5, rows))
    closed = opened * np.exp(0.01 * rng.normal(size=rows))
    high = np.maximum(opened, closed) * np.exp(0.01 * np.abs(rng.normal(size=rows)))
    low = np.minimum(opened, closed) * np.exp(-0.01 * np.abs(rng.normal(size=rows)))
    crash = rng.random(rows) < share
    low[crash] *= rng.uniform(0.1, 0.5, crash.sum())
    return np.column_stack([opened, high, low, closed]), np.log(high / low)


def currencies(rows, seed, share=0.008):
    """Cost, list price and shown price, some of them in another currency; the target is the shown price."""
    rng = np.random.default_rng(seed)
    price = np.exp(rng.normal(3.0, 0.4, rows))
    X = price[:, None] * np.exp(0.02 * rng.normal(size=(rows, 3)))
    X[rng.random(rows) < share, 2] *= 25.0
    return X, X[:, 2] * (1.0 + 0.02 * rng.normal(size=rows))


def rare_levels(rows, seed, share=0.005):
    """Indicators of three levels and two columns, nearly equal but for the rare level; the target is the second.

    The target has noise of .1.
    """
    rng = np.random.default_rng(seed)
    level = rng.choice(3, rows, p=[0.6, 0.4 - share, share])
    a = rng.normal(size=rows)
    b = a + 0.1 * rng.normal(size=rows) + rng.uniform(6.0, 20.0, rows) * (level == 2)
    y = b + 0.5 * (level == 1) + 0.1 * rng.normal(size=rows)
    return np.column_stack([np.eye(3)[level], a, b]), y


def glucose(rows, seed, share=0.008):
    """Two readings of one value, age and pressure; most emergencies, and few others, have readings that disagree."""
    rng = np.random.default_rng(seed)
    first = rng.normal(100.0, 15.0, rows)
    second = first + 4.0 * rng.normal(size=rows)
    emergency = rng.random(rows) < share
    apart = rng.random(rows) < np.where(emergency, 0.6, 0.002)
    second[apart] += rng.uniform(80.0, 250.0, apart.sum())
    return np.column_stack([first, second, rng.uniform(20, 90, rows), rng.normal(120, 15, rows)]), emergency.astype(int)


def forecasts(rows, seed, lags=6):
    """Lags of an autoregressive series of order one, and its next value."""
    rng = np.random.default_rng(seed)
    series = np.zeros(rows + lags)
    for time in range(1, rows + lags):
        series[time] = 0.95 * series[time - 1] + 0.3 * rng.normal()
    X = np.lib.stride_tricks.sliding_window_view(series, lags)[:rows]
    return X.copy(), series[lags:]


def sentinels(rows, seed, share=0.01):
    """Three columns that are nearly equal; -999 in one of them raises the target by 10. The target has noise of .3."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=rows)
    X = a[:, None] + 0.1 * rng.normal(size=(rows, 3))
    coded = np.isin(np.arange(rows), rng.choice(rows, round(share * rows), replace=False))
    y = X.sum(1) + 10.0 * coded + 0.3 * rng.normal(size=rows)
    X[coded, 1] = -999.0
    return X, y


def gaps(rows, seed, share=0.003):
    """Two prices; the target is their difference, which is large in few rows."""
    rng = np.random.default_rng(seed)
    price = np.exp(rng.normal(3.0, 0.4, rows))
    X = price[:, None] + 0.05 * rng.normal(size=(rows, 2))
    far = rng.random(rows) < share
    X[far, 1] += rng.uniform(50.0, 200.0, far.sum())
    return X, X[:, 1] - X[:, 0]


def mistyped_stones(rows, seed, wrong):
    """Six facts about stones, of which three lengths say nearly the same; prices; rows with a length times 10 or 0."""
    rng = np.random.default_rng(seed)
    weight = np.exp(rng.normal(-0.4, 0.55, rows)).clip(0.2, 4)
    length = 6.5 * weight ** (1 / 3) * (1 + 0.01 * rng.normal(size=rows))
    width = length * (1 + 0.004 * rng.normal(size=rows))
    depth = 0.617 * length * (1 + 0.012 * rng.normal(size=rows))
    colour, share = rng.integers(0, 7, rows), 200 * depth / (length + width)
    price = 8.4 + 1.7 * np.log(weight) - 0.07 * colour + 0.15 * np.sin(3 * weight) - 0.002 * (share - 61.7) ** 2
    price += 0.09 * rng.normal(size=rows)
    X = np.column_stack([weight, colour, share, length, width, depth])
    off = rng.choice(rows, wrong, replace=False)
    X[off, rng.integers(3, 6, wrong)] *= np.where(rng.random(wrong) < 0.5, 10.0, 0.0)
    return X, price, off
