"""Look into a fitted model: what matters, what each feature adds to a row, what leaves compute, how layers fared.

python examples/inspect_model.py [--quick] [--backend xgboost]
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.datasets import load_diabetes

from boostbp import BoostBPRegressor


def main(argv: list[str] | None = None) -> None:
    """Fit, and print importances, attributions of one row, its largest leaf values and the health of the layers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small model")
    parser.add_argument("--backend", default="lightgbm")
    args = parser.parse_args(argv)
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    model = BoostBPRegressor((8,), backend=args.backend, epochs=2 if args.quick else 20, random_state=0).fit(X, y)

    attributions = model.attributions(X[:1])
    print(f"prediction {model.predict(X[:1])[0]:.1f}, of an average row {attributions.base_values[0, 0]:.1f}")
    print(f"{'feature':<8} {'importance':>10} {'adds to row 0':>14}")
    for j in np.argsort(-model.feature_importances_):
        print(f"{X.columns[j]:<8} {model.feature_importances_[j]:>10.3f} {attributions.values[0, 0, j]:>14.2f}")
    total = attributions.base_values[0, 0] + attributions.values.sum()
    print(f"{'sum':<8} {'':>10} {total:>14.2f}  (off by {attributions.error:.0e})")

    leaves = [record for record in model.leaf_report(X[:1]) if record["layer"] == 1 and record["path"]]
    for record in sorted(leaves, key=lambda record: -abs(record["value"]))[:3]:
        print(f"tree {record['tree']}, {' and '.join(record['path'])}: {record['value']:+.2f}")
    print(model.health())


if __name__ == "__main__":
    main()
