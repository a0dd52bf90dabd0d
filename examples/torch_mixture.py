"""A layer of boosted trees inside a torch model, trained by the user's own loop.

python examples/torch_mixture.py [--quick]
"""

from __future__ import annotations

import argparse
import importlib.util
import time

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


def own_loop(X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray, epochs: int) -> float:
    """Neural, tree, neural: torch's own loss and optimizer, and one step of the trees in each epoch."""
    import torch

    from boostbp.torch import GBDTModule, GBDTStep

    torch.manual_seed(0)
    x, target = torch.tensor(X, dtype=torch.float32), torch.tensor(y)
    middle = GBDTModule(16, 16, {"n_estimators": 5}, step_size=0.2)
    model = torch.nn.Sequential(torch.nn.Linear(64, 16), torch.nn.Tanh(), middle, torch.nn.Linear(16, 10))
    adam, trees = torch.optim.Adam(model.parameters(), lr=0.01), GBDTStep(model, n_rows=len(x))
    smooth = torch.nn.CrossEntropyLoss(label_smoothing=0.05)  # any loss that torch can express
    for _ in range(epochs):
        smooth(model(x), target).backward()
        trees.step()  # the trees follow their gradient
        for _ in range(15):  # the neural layers learn, through trees that stand
            adam.zero_grad()
            smooth(model(x), target).backward()
            adam.step()
        trees.zero_grad()
    with torch.no_grad():
        predicted = model.eval()(torch.tensor(X_test, dtype=torch.float32)).argmax(dim=1).numpy()
    return float((predicted == y_test).mean())


def main() -> None:
    """Train trees between neural layers on handwritten digits."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer epochs")
    args = parser.parse_args()
    if importlib.util.find_spec("torch") is None:
        print("Skipped: torch is not installed. pip install 'boostbp[torch]'")
        return

    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X / 16.0, y, test_size=0.25, stratify=y, random_state=0)
    epochs = 4 if args.quick else 12
    begun = time.perf_counter()
    accuracy = own_loop(X, y, X_test, y_test, epochs)
    print(f"neural, trees, neural: test accuracy {accuracy:.3f}, {time.perf_counter() - begun:.1f} s")


if __name__ == "__main__":
    main()
