"""Refits beside fits after a drift of the target: test errors and CPU seconds.

    python -m benchmarks.drift --data-dir FOLDER

A model of old rows gets new rows of another relation, on which all are tested: houses of Ames that were sold in 2009
after those of the years before, tested on 2010; blocks of southern California after those of the north; two drifts of
numbers that NumPy makes. Errors are root mean squares in standard deviations of the test target, means over draws.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from lightgbm import LGBMRegressor

from benchmarks.accuracy.data import SETS
from boostbp import BoostBPRegressor

__all__ = ["drifts", "outcomes", "report"]

Part = tuple[pd.DataFrame, np.ndarray]
DRAWS, N_OLD, N_NEW, N_TEST = 5, 2000, 300, 4000
ROWS = ["old model", "refit, new rows, .9", "refit, new rows, .5", "refit, new rows, 0", "refit, all rows, 0"]
ROWS += ["fit, new rows", "fit, all rows", "init_model, new rows", "LightGBM", "LightGBM, refit, new rows, .9"]


def drifts(data_dir: Path | None) -> dict[str, Callable[[int], list[Part]]]:
    """Return functions from a seed to old, new and test rows, by the name of the drift."""
    found: dict[str, Callable[[int], list[Part]]] = {"other effects": _made("effects"), "turned": _made("turned")}
    for name, split in (("ames", _by_year), ("california", _by_latitude)):
        if data_dir is not None and not SETS[name].missing(data_dir):
            table = SETS[name].load(data_dir)
            found[name] = partial(split, pd.DataFrame(table.X), table.y)
    return found


def _made(kind: str) -> Callable[[int], list[Part]]:
    """Return rows of a sum of smooth terms, whose effects or whose directions are others in new rows."""

    def parts(seed: int) -> list[Part]:
        rng = np.random.default_rng(seed)
        old, other = rng.normal(size=(2, 8, 3)) / np.sqrt(8)

        def draw(n: int, drifted: bool) -> Part:
            X = rng.normal(size=(n, 8))
            H = X @ ((old + 0.5 * other) if drifted and kind == "turned" else old)
            effect = -0.5 if drifted and kind == "effects" else 1.0
            y = np.sin(2 * H[:, 0]) + effect * np.cos(2 * H[:, 1]) * H[:, 2] + 0.1 * rng.normal(size=n)
            return pd.DataFrame(X), y + (1.0 - effect) * H[:, 0]

        return [draw(N_OLD, drifted=False), draw(N_NEW, drifted=True), draw(N_TEST, drifted=True)]

    return parts


def _by_year(X: pd.DataFrame, y: np.ndarray, seed: int) -> list[Part]:
    rng, year = np.random.default_rng(seed), X["Yr Sold"].to_numpy()
    # Bootstrap samples of the houses of each period, as there is one history alone.
    rows = [np.flatnonzero(of_part) for of_part in (year < 2009, year == 2009, year == 2010)]
    drawn = [np.unique(rng.choice(part, len(part))) for part in rows[:2]]
    return [(X.iloc[part].drop(columns="Yr Sold"), y[part]) for part in (*drawn, rows[2])]


def _by_latitude(X: pd.DataFrame, y: np.ndarray, seed: int) -> list[Part]:
    rng, north = np.random.default_rng(seed), X.iloc[:, 1].to_numpy() > 36
    south = rng.permutation(np.flatnonzero(~north))
    rows = rng.permutation(np.flatnonzero(north))[:N_OLD], south[:N_NEW], south[N_NEW : N_NEW + N_TEST]
    return [(X.iloc[part], y[part]) for part in rows]


def outcomes(old: Part, new: Part, test: Part) -> Iterator[tuple[str, float, float]]:
    """Yield the name, test error and CPU seconds of each way to a model."""
    both = pd.concat([old[0], new[0]], ignore_index=True), np.concatenate([old[1], new[1]])

    def timed(name: str, make: Callable[[], Any]) -> tuple[Any, tuple[str, float, float]]:
        begun = time.process_time()
        model = make()
        seconds = time.process_time() - begun
        error = float(np.sqrt(np.mean((model.predict(test[0]) - test[1]) ** 2)) / np.std(test[1]))
        return model, (name, error, seconds)

    ours = BoostBPRegressor(random_state=0, n_jobs=1)
    model, outcome = timed(ROWS[0], lambda: ours.fit(*old))
    yield outcome
    for name, rows, rate in zip(ROWS[1:5], (new, new, new, both), (0.9, 0.5, 0.0, 0.0), strict=True):
        yield timed(name, lambda rows=rows, rate=rate: model.refit(*rows, decay_rate=rate))[1]
    for name, rows, earlier in zip(ROWS[5:8], (new, both, new), (None, None, model), strict=True):
        fresh = BoostBPRegressor(random_state=0, n_jobs=1)
        yield timed(name, lambda rows=rows, earlier=earlier, fresh=fresh: fresh.fit(*rows, init_model=earlier))[1]
    theirs, outcome = timed(ROWS[8], lambda: LGBMRegressor(n_jobs=1, verbose=-1).fit(*old).booster_)
    yield outcome
    yield timed(ROWS[9], lambda: theirs.refit(*new, decay_rate=0.9, verbose=-1))[1]


def report(data_dir: Path | None, draws: int) -> None:
    """Print a table of the errors and one of the seconds, with a column for each drift."""
    columns = {}
    for name, parts in drifts(data_dir).items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            columns[name] = np.mean([[row[1:] for row in outcomes(*parts(seed))] for seed in range(draws)], axis=0)
    for title, place, digits in (("error", 0, 3), ("CPU seconds", 1, 2)):
        print(f"| {title} | {' | '.join(columns)} |\n| --- |{' --- |' * len(columns)}")
        for number, row in enumerate(ROWS):
            cells = " | ".join(f"{column[number, place]:.{digits}f}" for column in columns.values())
            print(f"| {row} | {cells} |")


def main(argv: Sequence[str] | None = None) -> None:
    """Parse the arguments and report."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.drift")
    parser.add_argument("--data-dir", type=Path, help="folder of the files of docs/data.md")
    parser.add_argument("--draws", type=int, default=DRAWS)
    options = parser.parse_args(argv)
    report(options.data_dir, options.draws)


if __name__ == "__main__":
    main()
