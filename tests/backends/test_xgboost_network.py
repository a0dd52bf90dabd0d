"""The network of workers: who cannot join it says so."""

from __future__ import annotations

import numpy as np
import pytest

from boostbp import BoostBPRegressor
from boostbp.distributed import Address, WorkersLostError, fit_worker

pytest.importorskip("xgboost")

HOW = {"deep": True, "backend": "xgboost", "epochs": 3, "n_estimators": 8, "random_state": 0}
NOWHERE = Address("127.0.0.1", 1, 2, 1.0)


def test_who_cannot_reach_the_tracker_says_so():
    with pytest.raises(WorkersLostError, match="did not start"), pytest.warns(UserWarning, match="Failed to connect"):
        fit_worker(BoostBPRegressor((3,), **HOW), np.ones((9, 2)), np.ones(9), address=NOWHERE, rank=0)
