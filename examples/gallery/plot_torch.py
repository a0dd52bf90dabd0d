"""
Trees inside a torch model
==========================

**Question:** can a layer of boosted trees stand in a neural network that I train by my own loop?

Yes. :class:`boostbp.torch.GBDTModule` is a torch module. It takes part in ``loss.backward()`` and passes the gradient
on to the layers below it. Its trees have no weights for an optimiser: :class:`boostbp.torch.GBDTStep` moves their
outputs along the gradient and fits the trees to the moved outputs.
"""

import matplotlib.pyplot as plt
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from boostbp.torch import GBDTModule, GBDTStep

torch.manual_seed(0)
torch.set_num_threads(1)
X, digit = load_digits(return_X_y=True)
split = train_test_split(X / 16, digit, test_size=0.25, stratify=digit, random_state=0)
x, x_test = (torch.tensor(part, dtype=torch.float32) for part in split[:2])
y, y_test = (torch.tensor(part) for part in split[2:])

# %%
# Neural layers below and above the trees
# ---------------------------------------

trees = GBDTModule(16, 16, {"n_estimators": 5}, step_size=0.2)
model = torch.nn.Sequential(torch.nn.Linear(64, 16), torch.nn.Tanh(), trees, torch.nn.Linear(16, 10))
adam = torch.optim.Adam(model.parameters(), lr=0.01)
step = GBDTStep(model, n_rows=len(x))
loss_of = torch.nn.CrossEntropyLoss(label_smoothing=0.05)  # any loss that torch can express


def accuracy(inputs, labels):
    """Return the share of rows with the right label."""
    model.eval()
    with torch.no_grad():
        right = (model(inputs).argmax(dim=1) == labels).double().mean().item()
    model.train()
    return right


# %%
# The loop
# --------
# In each epoch the trees take one step, and the neural layers learn for a while with the trees as they are.

curves = {"training rows": [], "test rows": []}
for _ in range(10):
    loss_of(model(x), y).backward()
    step.step()
    for _ in range(15):
        adam.zero_grad()
        loss_of(model(x), y).backward()
        adam.step()
    step.zero_grad()
    curves["training rows"].append(accuracy(x, y))
    curves["test rows"].append(accuracy(x_test, y_test))

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for name, values in curves.items():
    ax.plot(range(1, len(values) + 1), [100 * value for value in values], "o-", label=f"{name}: {values[-1]:.1%}")
ax.set(xlabel="epoch", ylabel="accuracy on handwritten digits (%)")
ax.grid(alpha=0.3)
ax.legend(loc="lower right")
plt.show()
