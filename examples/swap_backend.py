"""One flag swaps the library under a classifier of handwritten digits.

python examples/swap_backend.py [--quick] [--picture digits.png]
"""

from __future__ import annotations

import argparse
import time

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from boostbp import BoostBPClassifier
from boostbp.backends import available


def main() -> None:
    """Train the same model on every library that is installed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer epochs")
    parser.add_argument("--picture", metavar="FILE")
    args = parser.parse_args()
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, stratify=y, random_state=0)
    X, X_valid, y, y_valid = train_test_split(X, y, test_size=0.15, stratify=y, random_state=0)
    models = {}
    for backend in available():
        begun = time.perf_counter()
        model = BoostBPClassifier(
            (16,),
            backend=backend,
            n_estimators=30,
            hidden={"n_estimators": 10},
            max_depth=3,
            epochs=3 if args.quick else 8,
            deep=True,  # one network
            random_state=0,
            n_jobs=-1,
        )
        models[backend] = model.fit(X, y, eval_set=[(X_valid, y_valid)])
        history = model.history_
        print(
            f"{backend:<9} test accuracy {model.score(X_test, y_test):.3f}, best epoch {history.best_epoch}, "
            f"{time.perf_counter() - begun:.1f} s"
        )
    if args.picture:
        from matplotlib.figure import Figure
        from sklearn.decomposition import PCA

        figure = Figure(figsize=(4 * len(models), 4), layout="constrained")
        for ax, (name, model) in zip(figure.subplots(1, len(models), squeeze=False)[0], models.items(), strict=True):
            plane = PCA(2, random_state=0).fit_transform(model.transform(X_test))
            ax.scatter(*plane.T, c=y_test, s=4, cmap="tab10")
            ax.set_title(f"hidden representation, {name}")
        figure.savefig(args.picture)


if __name__ == "__main__":
    main()
