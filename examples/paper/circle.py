"""Circle: two rings, a network 2-2-1; at the end one threshold on a hidden unit separates them.

python examples/circle.py [--quick] [--seeds 4] [--backend lightgbm] [--picture circle.png]
"""

from __future__ import annotations

import argparse

import numpy as np

from boostbp import BoostBPClassifier, paper_settings


def circle(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two rings with radii in [0.4, 0.6] and [0.8, 1.0]."""
    rng = np.random.default_rng(seed)
    angle, y = rng.uniform(0, 2 * np.pi, rows), rng.integers(0, 2, rows)
    radius = np.where(y == 1, rng.uniform(0.8, 1.0, rows), rng.uniform(0.4, 0.6, rows))
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), y


def one_threshold(h: np.ndarray, y: np.ndarray) -> float:
    """Accuracy of the best single threshold on any one hidden unit."""
    best = 0.0
    for unit in h.T:
        sorted_y = y[np.argsort(unit)]
        ones_below = np.concatenate([[0], np.cumsum(sorted_y)])
        zeros_below = np.arange(len(y) + 1) - ones_below
        right = zeros_below + (y.sum() - ones_below)
        best = max(best, right.max(), (len(y) - right).max())
    return best / len(y)


def picture(models: dict[str, BoostBPClassifier], X: np.ndarray, y: np.ndarray, path: str) -> None:
    """The rings, and the hidden representation of each model."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4 * (len(models) + 1), 4), layout="constrained")
    axes = figure.subplots(1, len(models) + 1)
    for ax, (name, points) in zip(axes, [("input", X)] + [(n, m.transform(X)) for n, m in models.items()], strict=True):
        ax.scatter(*points.T, c=y, s=2, cmap="coolwarm")
        ax.set_title(name)
    figure.savefig(path)


def main() -> None:
    """Train on each seed with the default settings and with the paper's."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one seed")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--backend", default="lightgbm")
    parser.add_argument("--picture", metavar="FILE")
    args = parser.parse_args()
    shape = {"n_estimators": 8, "max_depth": 6, "epochs": 25, "early_stopping": False}
    settings = {"default settings": shape, "paper's settings": paper_settings(**shape)}
    models: dict[str, BoostBPClassifier] = {}
    print(f"{'seed':>4}  {'settings':<17} {'training accuracy':>17} {'one threshold':>13}")
    for seed in range(1 if args.quick else args.seeds):
        X, y = circle(10_000, seed)
        for name, chosen in settings.items():
            model = BoostBPClassifier((2,), backend=args.backend, random_state=seed, n_jobs=-1, **chosen).fit(X, y)
            models.setdefault(name, model)
            print(f"{seed:>4}  {name:<17} {model.score(X, y):>17.4f} {one_threshold(model.transform(X), y):>13.4f}")
    if args.picture:
        picture(models, *circle(10_000, 0), args.picture)


if __name__ == "__main__":
    main()
