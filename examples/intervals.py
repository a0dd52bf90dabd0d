"""Intervals and sets of classes that hold as many targets as is asked for.

python examples/intervals.py [--quick] [--backend xgboost]
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.datasets import load_diabetes, load_digits
from sklearn.model_selection import train_test_split

from boostbp import BoostBPClassifier, BoostBPRegressor


def main(argv: list[str] | None = None) -> None:
    """Fit models of numbers and of classes; print how often intervals and sets are right, and how large they are."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="single layers")
    parser.add_argument("--backend", default="lightgbm")
    args = parser.parse_args(argv)
    how = {"backend": args.backend, "quality": 1 if args.quick else 3, "random_state": 0}

    X, y = load_diabetes(return_X_y=True, as_frame=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, random_state=0)
    quantiles = BoostBPRegressor(loss="quantile", alpha=[0.05, 0.1, 0.5, 0.9, 0.95], calibration=0.25, **how)
    low, _, median, _, high = quantiles.fit(X, y).predict(X_test).T  # one model, and no level crosses another
    print(f"one patient: median {median[0]:.0f}, nine of ten between {low[0]:.0f} and {high[0]:.0f}")
    mean = BoostBPRegressor(calibration=0.25, **how).fit(X, y)  # a quarter of the rows is kept out of all of the fit
    for name, model in (("quantiles", quantiles), ("residuals", mean)):
        for coverage in (0.8, 0.9):  # as many as you like, of the same model
            below, above = model.predict_interval(X_test, coverage).T
            inside = np.mean((below <= y_test) & (y_test <= above))
            print(f"{name}: {inside:.2f} within intervals for {coverage}, width {np.mean(above - below):.0f}")

    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)
    X, X_rest, y, y_rest = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
    classifier = BoostBPClassifier(**how | {"quality": 1}).fit(X, y)
    classifier.calibrate(X_rest, y_rest)  # rows of your own, such as newer ones, at any time
    for coverage in (0.9, 0.99):
        sets = classifier.predict_set(X_test, coverage)  # a column for each class
        inside = sets[y_test[:, None] == classifier.classes_].mean()
        sizes = np.bincount(sets.sum(axis=1), minlength=3)
        print(
            f"digits: {inside:.3f} within sets for {coverage}; empty, one, two, more: {[*sizes[:3], sizes[3:].sum()]}"
        )


if __name__ == "__main__":
    main()
