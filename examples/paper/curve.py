"""Curve: an auto-encoder 3-2-3 on a noisy curve in space.

python examples/curve.py [--quick] [--seeds 4] [--backend lightgbm] [--picture curve.png]
"""

from __future__ import annotations

import argparse

import numpy as np

from boostbp import BoostBPAutoencoder, paper_settings


def curve(rows: int, seed: int) -> np.ndarray:
    """[t, sin t + noise, cos t + noise] for t in (-1, 1)."""
    rng = np.random.default_rng(seed)
    t = rng.uniform(-1, 1, rows)
    return np.column_stack([t, rng.normal(0, 0.05, rows) + np.sin(t), rng.normal(0, 0.05, rows) + np.cos(t)])


def picture(models: dict[str, BoostBPAutoencoder], X: np.ndarray, path: str) -> None:
    """The points and their reconstructions."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4 * (len(models) + 1), 4), layout="constrained")
    shown = [("input", X)] + [(name, model.predict(X)) for name, model in models.items()]
    for place, (name, points) in enumerate(shown, start=1):
        ax = figure.add_subplot(1, len(shown), place, projection="3d")
        ax.scatter(*points[:2000].T, s=2)
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
    shape = {"n_estimators": 32, "max_depth": 5, "epochs": 25, "early_stopping": False}
    settings = {"default settings": shape, "paper's settings": paper_settings(**shape)}
    models: dict[str, BoostBPAutoencoder] = {}
    print(f"{'seed':>4}  {'settings':<17} {'MSE / variance':>14} {'largest |h|':>12}  stopped because")
    for seed in range(1 if args.quick else args.seeds):
        X = curve(10_000, seed)
        for name, chosen in settings.items():
            model = BoostBPAutoencoder((2,), backend=args.backend, random_state=seed, n_jobs=-1, **chosen).fit(X)
            models.setdefault(name, model)
            error = np.square(X - model.predict(X)).mean() / X.var(axis=0).mean()
            largest = np.abs(model.transform(X)).max()
            print(f"{seed:>4}  {name:<17} {error:>14.4g} {largest:>12.3g}  {model.history_.stop.value}")
    if args.picture:
        picture(models, curve(10_000, 0), args.picture)


if __name__ == "__main__":
    main()
