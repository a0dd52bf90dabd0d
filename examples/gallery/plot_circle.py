"""
A hidden representation, before and after training
==================================================

**Question:** what do the hidden units learn?

This is the data set *Circle* of `the paper <https://arxiv.org/abs/2109.11863>`_: two rings, which no straight line can
separate. A network with two hidden units can be drawn as it is, one unit on each axis.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.tree import DecisionTreeClassifier

from boostbp import BoostBPClassifier, callbacks, plots

rng = np.random.default_rng(0)
angle, y = rng.uniform(0, 2 * np.pi, 3000), rng.integers(0, 2, 3000)
radius = np.where(y == 1, rng.uniform(0.8, 1.0, 3000), rng.uniform(0.4, 0.6, 3000))
X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
rings = np.where(y == 1, "outer ring", "inner ring")

# %%
# Training, with a record of the network
# --------------------------------------
# :func:`boostbp.callbacks.record_networks` keeps the network of the epochs that you name. Forests are small and the
# trees are grown again in each epoch, so that two units can turn the rings inside out in a few epochs.

networks = {}
model = BoostBPClassifier(
    hidden_layer_sizes=(2,),
    deep=True,
    n_estimators=8,
    max_depth=6,
    hidden={"n_estimators": 8, "extra_trees": False},
    output={"extra_trees": False},
    backprop={"step_size": 0.5, "momentum": 0.5, "structure_epochs": 1},
    epochs=20,
    early_stopping=False,
    random_state=0,
)
model.fit(X, rings, callbacks=[callbacks.record_networks(networks, epochs=[0, 5, 20])])

# %%
# What the output layer sees
# --------------------------
# At first (epoch 0) the hidden units are a projection of the features, and the rings stay rings. Back-propagation then
# moves the hidden variables of each row to where the output layer can separate the classes.

fig, axes = plt.subplots(2, 2, figsize=(7, 6.4), layout="constrained")
plots.representation(X, rings, axes[0, 0])
axes[0, 0].set(title="Features", xlabel="feature 0", ylabel="feature 1")
plots.representations(model, X, rings, axes.ravel()[1:], networks=networks)
handles, labels = axes[0, 0].get_legend_handles_labels()
for ax in axes.flat:
    ax.get_legend().remove()
fig.legend(handles, labels, loc="outside upper center", ncols=2, markerscale=2)
plt.show()

# %%
# At the end a single node of a decision tree separates the rings, as in the paper:

H = model.transform(X)
print(f"accuracy of one split on the hidden units: {DecisionTreeClassifier(max_depth=1).fit(H, y).score(H, y):.1%}")
