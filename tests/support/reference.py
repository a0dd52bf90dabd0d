"""Algorithm 1 of the paper, written a second time and plainly: numpy, `DecisionTreeRegressor`, loops."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from sklearn.tree import DecisionTreeRegressor


def phi(x):
    """[1, x, x^2] of the path features, (rows, terms)."""
    return np.hstack([np.ones((len(x), 1)), x, x**2])


@dataclass
class PlainTree:
    """One tree with the printed ridge solution in each leaf."""

    depth: int
    min_samples_leaf: int
    reg_lambda: float
    features: dict = field(default_factory=dict)
    weights: dict = field(default_factory=dict)

    def fit(self, X, y):
        self.tree = DecisionTreeRegressor(max_depth=self.depth, min_samples_leaf=self.min_samples_leaf, random_state=0)
        self.tree.fit(X, y)
        leaf = self.tree.apply(X)
        paths = self.tree.decision_path(X)
        for node in np.unique(leaf):
            rows = np.flatnonzero(leaf == node)
            on_path = paths[rows[0]].indices
            used = sorted({int(self.tree.tree_.feature[i]) for i in on_path if self.tree.tree_.feature[i] >= 0})
            Phi = phi(X[rows][:, used])
            A = Phi.T @ Phi + self.reg_lambda * np.eye(Phi.shape[1])
            self.features[node] = used
            self.weights[node] = np.linalg.solve(A, Phi.T @ y[rows])
        return self

    def predict(self, X):
        leaf = self.tree.apply(X)
        out = np.empty(len(X))
        for row, node in enumerate(leaf):
            out[row] = (phi(X[row : row + 1, self.features[node]]) @ self.weights[node]).item()
        return out

    def gradient(self, X):
        """d output / d x of each row, (rows, features)."""
        leaf = self.tree.apply(X)
        out = np.zeros_like(X)
        for row, node in enumerate(leaf):
            used, w = self.features[node], self.weights[node]
            k = len(used)
            out[row, used] = w[1 : 1 + k] + 2 * X[row, used] * w[1 + k :]
        return out


@dataclass
class PlainGBDT:
    """T_i: one list of trees for each output."""

    rounds: int
    beta: float
    depth: int
    min_samples_leaf: int
    reg_lambda: float

    def fit(self, H, target):
        self.trees = []
        for k in range(target.shape[1]):
            fit, trees = np.zeros(len(H)), []
            for _ in range(self.rounds):
                residual = fit - target[:, k]
                tree = PlainTree(self.depth, self.min_samples_leaf, self.reg_lambda).fit(H, -residual)
                fit = fit + self.beta * tree.predict(H)
                trees.append(tree)
            self.trees.append(trees)
        return self

    def predict(self, H):
        return np.column_stack([self.beta * sum(tree.predict(H) for tree in trees) for trees in self.trees])

    def jacobian(self, H):
        return np.stack([self.beta * sum(tree.gradient(H) for tree in trees) for trees in self.trees], axis=1)


def train(X, Y, starts, gradient, new_layer, *, alpha, mu, epochs):
    """Algorithm 1; `starts` are the noise of the hidden layers, `gradient(h_L, Y)` is dL/dh_L.

    Returns the layers and, after each epoch, the list of hidden variables h_1 .. h_L.
    """
    T, h = [], [X]
    for start in starts:
        T.append(new_layer().fit(h[-1], start))
        h.append(T[-1].predict(h[-1]))
    zero = np.zeros_like(Y)
    T.append(new_layer().fit(h[-1], zero - alpha * gradient(zero, Y)))
    L = len(T)
    m = [0.0] * (L + 1)
    story = []
    for _ in range(epochs):
        h = [X]
        for i in range(L):
            h.append(T[i].predict(h[i]))
        g = [None] * (L + 1)
        g[L] = gradient(h[L], Y)
        for i in range(L, 1, -1):
            g[i - 1] = np.einsum("nkd,nk->nd", T[i - 1].jacobian(h[i - 1]), g[i])
        for i in range(L, 0, -1):
            m[i] = mu * m[i] + (1 - mu) * g[i]
            T[i - 1] = new_layer().fit(h[i - 1], h[i] - alpha * m[i])
        after = [X]
        for i in range(L):
            after.append(T[i].predict(after[i]))
        story.append(after[1:])
    return T, story
