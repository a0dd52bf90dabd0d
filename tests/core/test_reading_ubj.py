"""A UBJSON model that is not as expected is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from leaf_oracles import table, target

from boostbp.backends import _xgboost_ubj, load_backend
from boostbp.backends.base import TreeParams
from boostbp.trees.sparse import Table

pytest.importorskip("xgboost")


def grown(data: Table, columns: int, growth: TreeParams) -> tuple[Any, Any]:
    """A grower after one round, and its booster."""
    grad = np.hstack([target(np.random.default_rng(seed), data) for seed in range(columns)])
    grower = load_backend("xgboost").bind(data, growth)
    grower.grow(grad, np.ones_like(grad))
    [run] = grower.running.values()
    return grower, run.booster


def with_number(raw: bytes, name: bytes, place: int, number: int) -> bytes:
    """The model with another number in an array."""
    at = raw.index(name + b"[$l#L") + len(name) + 13 + 4 * place
    return raw[:at] + number.to_bytes(4, "big", signed=True) + raw[at + 4 :]


@pytest.mark.parametrize(
    "change",
    [
        lambda raw: raw.replace(b"left_children[", b"left_childrex["),
        lambda raw: raw.replace(b"split_conditions[$d", b"split_conditions[$Z"),
        lambda raw: raw.replace(b"right_children[$l#L" + bytes(7), b"right_children[$l#L" + bytes(6) + b"\1"),
        lambda raw: raw.replace(b"categories_nodes[$l#L" + bytes(7), b"categories_nodes[$l#L\xff" + bytes(6)),
        lambda raw: with_number(raw, b"left_children", 0, 0),
        lambda raw: with_number(raw, b"left_children", 1, -1),
        lambda raw: with_number(raw, b"left_children", 1, 2),
        lambda raw: with_number(raw, b"categories_nodes", 1, 0),
    ],
    ids=[
        "no children",
        "another type",
        "a count beyond the end",
        "a negative count",
        "a cycle",
        "a leaf too many",
        "a child of two",
        "two sets of a node",
    ],
)
def test_a_model_that_is_not_as_expected_is_refused(change: Callable[[bytes], bytes]) -> None:
    data = table(np.random.default_rng(0), 500, numeric=3, categories=(6,))
    _, booster = grown(data, 1, TreeParams(max_depth=4))
    raw = bytes(booster.save_raw("ubj"))
    assert change(raw) != raw
    with pytest.raises(ValueError, match="XGBoost's model is not as expected"):
        _xgboost_ubj.trees_in_ubj(change(raw))
