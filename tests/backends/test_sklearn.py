"""scikit-learn's trees send every row where scikit-learn sends it."""

from __future__ import annotations

import numpy as np
from leaf_oracles import table

from boostbp.backends.base import TreeParams
from tests.backends.test_leaf_of import check


def test_leaf_of_matches_sklearn_with_random_thresholds() -> None:
    rng = np.random.default_rng(0)
    check("sklearn", table(rng, 1500), rng, TreeParams(min_samples_leaf=5, extra_trees=True))
