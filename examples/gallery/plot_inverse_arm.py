"""
Derivatives that optimise an input
==================================

**Question:** which inputs give the output that I want?

A model of boostbp has a derivative, :meth:`~boostbp.BoostBPRegressor.jacobian`, because its leaves hold regressions.
Any method that follows slopes can therefore optimise an input. The trees of LightGBM and XGBoost are constant between
splits: their derivative is 0.

We learn where the hand of a robot arm is, from examples alone, and then ask for joint angles that bring it to a target.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import least_squares

from boostbp import BoostBPRegressor

rng = np.random.default_rng(0)


def joints_of(angles):
    """Return the places of the shoulder, the joints and the hand, (..., 4, 2)."""
    direction = np.cumsum(angles, axis=-1)
    steps = np.stack([np.cos(direction), np.sin(direction)], axis=-1)
    return np.concatenate([np.zeros_like(steps[..., :1, :]), np.cumsum(steps, axis=-2)], axis=-2)


angles = rng.uniform(-1, 1, (2000, 3))
hand = joints_of(angles)[:, -1]  # two targets: x and y
model = BoostBPRegressor(deep=True, epochs=15, random_state=0).fit(angles, hand)

# %%
# From slopes to angles
# ---------------------
# :func:`scipy.optimize.least_squares` closes the gap between prediction and target. ``jac`` gives it the slopes, and it
# keeps the angles within the range of the training rows.

target = np.array([1.6, 2.0])
start = np.array([-0.5, -0.5, -0.5])
poses = []


def gap(pose):
    """Return the predicted place of the hand less the target, (2,)."""
    return model.predict(pose[None])[0] - target


def slopes(pose):
    """Return the derivative of the gap, (2, 3), and record the pose."""
    poses.append(pose.copy())
    return model.jacobian(pose[None])[0]


pose = least_squares(gap, start, jac=slopes, bounds=(-1, 1)).x
missed = np.linalg.norm(joints_of(pose)[-1] - target)
print(f"the real arm with these angles ends {missed:.3f} arm segments from the target")

# %%
# The model has never been told the geometry. The picture draws the real arm for the angles of each step.

fig, ax = plt.subplots(figsize=(7, 5), layout="constrained")
ax.plot(*joints_of(start).T, "o-", color="tab:gray", linewidth=3, label="start")
for step in poses[1:-1]:
    ax.plot(*joints_of(step).T, color="tab:gray", alpha=0.4)
ax.plot(*joints_of(pose).T, "o-", color="tab:blue", linewidth=3, label="end")
ax.plot(*target, "*", color="tab:red", markersize=16, label="target", zorder=3)
ax.set(xlabel="x (arm segments)", ylabel="y (arm segments)")
ax.set_aspect("equal", adjustable="datalim")
ax.legend(loc="upper left")
plt.show()
