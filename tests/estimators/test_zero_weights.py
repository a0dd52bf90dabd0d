"""Rows of weight 0 have no part in a fit: the model, or the error, is that of the other rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from boostbp import BoostBPClassifier, BoostBPRanker, BoostBPRegressor, BoostBPSurvival

HOW: dict[str, Any] = {"deep": False, "quality": 1, "n_estimators": 5, "early_stopping": False, "random_state": 0}
KINDS: dict[str, Any] = {
    "squared error": BoostBPRegressor(**HOW),
    "poisson": BoostBPRegressor(loss="poisson", **HOW),
    "quantile": BoostBPRegressor(loss="quantile", **HOW),
    "classes": BoostBPClassifier(**HOW),
    "labels": BoostBPClassifier(**HOW),
    "cox": BoostBPSurvival(loss="cox", **HOW),
    "aft": BoostBPSurvival(loss="aft", **HOW),
    "rank_xendcg": BoostBPRanker(loss="rank_xendcg", **HOW),
    "lambdarank": BoostBPRanker(loss="lambdarank", **HOW),
    "rank:pairwise": BoostBPRanker(loss="rank:pairwise", **HOW),
}


def outcome(kind: str, X: Any, y: Any, weight: Any, qid: Any) -> Any:
    """Predictions of fixed rows, or the error."""
    more = {"qid": qid} if isinstance(KINDS[kind], BoostBPRanker) else {}
    try:
        model = KINDS[kind].fit(X, y, weight, **more)
    except ValueError as error:
        return str(error)
    grid = np.linspace(0, 7, 30)[:, None] * [1.0, -1.0, 0.5]
    return model.predict_proba(grid) if isinstance(model, BoostBPClassifier) else model.predict(grid)


def target(kind: str, rng: Any, n_rows: int, *, flat: bool) -> Any:
    """A target of each row; of a flat one, only rows of weight 0 differ, which the caller draws."""
    if kind in ("cox", "aft"):
        event = np.zeros(n_rows, bool) if flat else rng.random(n_rows) < 0.5
        return np.rec.fromarrays([event, 1.0 + rng.exponential(3.0, n_rows)], names="event,time")
    if kind == "labels":
        return np.ones((n_rows, 3), int) if flat else rng.integers(0, 2, (n_rows, 3))
    return np.ones(n_rows, int) if flat else rng.integers(0, 4, n_rows)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore:Each row of y has one of the")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("flat", [False, True])
def test_rows_of_weight_0_have_no_part(kind: str, seed: int, flat: bool) -> None:
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(40), 4)
    weight = rng.integers(0, 2, 40)[qid].astype(float)
    weight[:4], weight[-4:], counted = 0.0, 1.0, None
    X = rng.integers(0, 8, (160, 3)).astype(float)
    X[weight == 0] = X[rng.choice(np.flatnonzero(weight), int((weight == 0).sum()))]  # of the same bins
    y = target(kind, rng, 160, flat=False)
    counted = weight > 0
    if flat:
        y[counted] = target(kind, rng, 160, flat=True)[counted]
    if kind == "classes" and set(y[counted]) != set(y):
        return  # a class without weight keeps its column
    all_rows, others = outcome(kind, X, y, weight, qid), outcome(kind, X[counted], y[counted], None, qid[counted])
    if isinstance(others, str):
        assert all_rows == others
    else:
        np.testing.assert_allclose(all_rows, others, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kind", ["cox", "aft", "lambdarank"])
def test_evaluation_sets_see_their_weights(kind: str) -> None:
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(80, 3)), np.repeat(np.arange(20), 4)
    y, weight = target(kind, rng, 80, flat=False), (qid >= 10).astype(float)
    flat = y.copy()
    flat[40:] = target(kind, rng, 80, flat=True)[40:]
    ranked = kind == "lambdarank"
    more: dict[str, Any] = {"qid": qid, "eval_qid": [qid]} if ranked else {}
    with pytest.raises(ValueError, match=r"^eval_set\[0\]: y has no (event|query with rows)"):
        KINDS[kind].fit(X, y, eval_set=[(X, flat, weight)], **more)
