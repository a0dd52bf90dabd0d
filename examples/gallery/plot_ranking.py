"""
The order of search results
===========================

**Question:** which documents belong at the top?

A ranker is not asked how relevant a document is, but only which of a query's documents is more relevant. Here the
relevance of a document is a smooth function of how well it matches, plus something that all documents of a query share:
some queries have good answers, others have none. A regression spends trees on what is shared, although it does not
change the order.
"""

import matplotlib.pyplot as plt
import numpy as np

from boostbp import BoostBPRanker, BoostBPRegressor
from boostbp.metrics import ndcg


def sample(queries, seed):
    """Return features, grades and queries of 20 documents for each query; the data are made."""
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(queries), 20)
    shared = rng.normal(size=(queries, 3))[qid]
    X = np.column_stack([rng.normal(size=(len(qid), 5)), shared])
    match = np.tanh(X[:, 0]) + X[:, 1] * X[:, 2] / 2 - 0.3 * X[:, 3] ** 2
    latent = match + 1.5 * shared[:, 0] * shared[:, 1] + 0.4 * rng.normal(size=len(qid))
    return X, np.digitize(latent, [0.5, 1.2, 2.0, 3.0]), qid


X, grade, qid = sample(150, 0)
X_test, grade_test, qid_test = sample(500, 1)
ranker = BoostBPRanker(quality=1, random_state=0).fit(X, grade, qid=qid)
regressor = BoostBPRegressor(quality=1, random_state=0).fit(X, grade.astype(float), groups=qid)

# %%
# The normalised discounted cumulative gain (NDCG) compares the first places with the best order that there is. The
# first place counts most.

first = np.arange(1, 21)
for name, model in {"ranker": ranker, "regression of the grade": regressor}.items():
    scores = model.predict(X_test)
    plt.plot(first, [ndcg(grade_test, scores, qid=qid_test, k=k) for k in first], label=name)
plt.xlabel("places that count")
plt.ylabel("NDCG of new queries")
plt.xticks([1, 5, 10, 15, 20])
plt.legend()
plt.show()

# %%
# What the ranker looks at: the columns that a query's documents share, the last three, cannot order them by themselves.

for number, importance in enumerate(ranker.importance("attribution")):
    print(f"feature {number}{' (shared)' if number > 4 else ''}: {importance:.0%}")
