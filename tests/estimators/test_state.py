"""Parameters in types of other libraries: what `fit` takes is stored, and means the same after `load`."""

from __future__ import annotations

import io
import types
from array import array
from collections import OrderedDict, UserDict, UserList, deque
from collections.abc import Iterator
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from boostbp import BoostBPClassifier, BoostBPRegressor, load, save

RNG = np.random.default_rng(0)
X = pd.DataFrame(np.column_stack([RNG.normal(size=(60, 2)), RNG.integers(0, 3, 60)]), columns=list("abc"))
Y = X["a"] + X["b"]
NETWORK = {"hidden_layer_sizes": (2,), "deep": True, "epochs": 1, "n_estimators": 3, "random_state": 0}
LAYER = NETWORK | {"hidden_layer_sizes": ()}
# parameter, a value of it, and the other parameters
VALUES = [
    *(("hidden_layer_sizes", value, NETWORK) for value in ([2], [2, 2], 3)),
    *(("n_estimators", 3, NETWORK), ("learning_rate", 0.5, NETWORK), ("max_depth", 2, NETWORK)),
    *(("min_samples_leaf", 2, NETWORK), ("colsample_bytree", 0.5, NETWORK), ("epochs", 1, NETWORK)),
    *(("hidden", value, NETWORK) for value in ({"max_depth": 2, "basis": "linear"}, [{"max_depth": 2}])),
    ("output", {"max_depth": 2, "base": "zero"}, NETWORK),
    *(("output", {"monotone_constraints": value}, LAYER) for value in ({"a": 1}, [1, 0, 0])),
    ("backprop", {"step_size": 0.3}, NETWORK),
    *(("validation", value, NETWORK) for value in (0.2, "last")),
    *(("eval_metric", "rmse", NETWORK), ("max_time", 100.0, NETWORK), ("n_jobs", 1, NETWORK)),
    *(("categorical_features", value, NETWORK) for value in ("from_dtype", ["a"], [2], [False, False, True], [])),
    *(("random_state", 0, NETWORK), ("verbose", 0, NETWORK), ("backend", "lightgbm", NETWORK)),
    *(("backend_params", value, LAYER) for value in ({"lambda_l2": 1.0}, {"interaction_constraints": [[0, 1], [2]]})),
    *(("quality", 1, {"n_estimators": 3, "random_state": 0}), ("deep", True, NETWORK), ("calibration", 0.3, NETWORK)),
    *(("loss", value, NETWORK) for value in ("squared_error", "quantile")),
    *(("alpha", value, NETWORK | {"loss": "quantile"}) for value in (0.3, [0.2, 0.8])),
    *(("class_weight", value, NETWORK) for value in ({0: 1.0, 1: 2.0}, "balanced")),
]


def of_list(items: list[Any]) -> Iterator[Any]:
    """Yield containers of the items."""
    yield from (items, tuple(items), deque(items), UserList(items), dict(enumerate(items)).values())
    yield from (iter(items), (item for item in items), map(lambda item: item, items))
    yield from (
        np.array(items),
        np.array(items, object),
        pd.Index(items),
        pd.Series(items, [*range(5, 5 + len(items))]),
    )
    yield from (pl.Series(items), pa.array(items), pa.chunked_array([items]), pd.DataFrame([items]))
    if not isinstance([*items, 0][0], dict):
        yield from (set(items), frozenset(items), dict.fromkeys(items).keys(), dict.fromkeys(items))
    if items and all(isinstance(item, int) for item in items):
        yield from (range(items[0], items[0] + len(items)), array("q", items), bytes(items), memoryview(bytes(items)))


def of_number(value: Any) -> Iterator[Any]:
    """Yield numbers of other types."""
    yield from (np.float64(value), np.float32(value), np.array(value), np.array([value]), float(value), [value])
    yield from (Fraction(value).limit_denominator(100), Decimal(value), pd.Series([value]), pa.scalar(value))
    yield str(value)
    if isinstance(value, int):
        yield from (np.int64(value), np.uint8(value), np.bool_(value), IntEnum("Number", {"IT": value}).IT)


def of_text(value: str) -> Iterator[Any]:
    """Yield text of other types."""
    yield from (np.str_(value), StrEnum("Word", {"IT": value}).IT, Enum("Word", {"IT": value}, type=str).IT)
    yield from (Enum("Word", {"IT": value}).IT, value.encode(), Path(value), [value], np.array(value), pa.scalar(value))


def of_dict(value: dict[Any, Any]) -> Iterator[Any]:
    """Yield mappings and tables of the items."""
    yield from (OrderedDict(value), UserDict(value), types.MappingProxyType(value), value.items(), list(value.items()))
    yield from (pd.Series(value), pd.DataFrame([value]))
    yield {np.asarray(key)[()]: np.array(item, object)[()] for key, item in value.items()}


FORMS = {list: of_list, int: of_number, float: of_number, bool: of_number, str: of_text, dict: of_dict}
QUICK = ("hidden_layer_sizes", "class_weight", "validation")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "value", "others"),
    [pytest.param(*case, marks=() if case[0] in QUICK else pytest.mark.slow) for case in VALUES],
    ids=lambda value: None if isinstance(value, dict) and len(value) > 2 else str(value),
)
def test_what_fit_takes_is_stored_and_means_the_same(name, value, others):
    kind, y = (BoostBPClassifier, (Y > 0).astype(int)) if name == "class_weight" else (BoostBPRegressor, Y)
    taken = 0
    for form in FORMS[type(value)](value):
        model, refusal = kind(**others | {name: form}), ""
        try:
            model.fit(X, y)
        except (TypeError, ValueError) as error:
            refusal = str(error)
        if refusal:
            assert name in refusal or "monotone_constraints" in refusal, f"{form!r}: {refusal}"
            continue
        assert model.get_params(deep=False)[name] is form
        expected, file, taken = model.predict(X), io.BytesIO(), taken + 1
        save(model, file)
        loaded = load(io.BytesIO(file.getvalue()))
        np.testing.assert_array_equal(loaded.predict(X), expected)
        again = kind(**loaded.get_params(deep=False)).fit(X, y)
        np.testing.assert_array_equal(again.predict(X), expected, err_msg=f"{form!r}")
    assert taken


def test_columns_by_dtype():
    table = X.astype({"c": "category"})
    model = BoostBPRegressor(**NETWORK, categorical_features=table.select_dtypes("category").columns).fit(table, Y)
    file = io.BytesIO()
    save(model, file)
    assert load(io.BytesIO(file.getvalue())).categorical_features == ["c"]


@pytest.mark.parametrize("columns", [pd.date_range("2020", periods=3), pd.interval_range(0, 3)])
def test_names_that_no_file_holds_are_refused_by_fit(columns):
    table = X.set_axis(columns, axis=1)
    with pytest.raises(ValueError, match=r"categorical_features=.* is not allowed: .* neither number, text, list"):
        BoostBPRegressor(**NETWORK, categorical_features=columns[2:]).fit(table, Y)
    with pytest.raises(ValueError, match=r"monotone_constraints=.* is not allowed: .* neither number, text, list"):
        BoostBPRegressor(**LAYER, output={"monotone_constraints": {columns[0]: 1}}).fit(table, Y)


def test_the_cure_for_weights_in_a_series():
    weights, y = pd.Series({0: 1.0, 1: 2.0}), (Y > 0).astype(int)
    with pytest.raises(
        ValueError, match=r"^class_weight=(?s:.)* give 'balanced', or a dict .* such as series.to_dict\(\)"
    ):
        BoostBPClassifier(**NETWORK, class_weight=weights).fit(X, y)
    BoostBPClassifier(**NETWORK, class_weight=weights.to_dict()).fit(X, y)


def test_files_of_rows_read_columns_that_an_index_names(tmp_path):
    X.assign(y=Y, c=X["c"].astype(int)).to_csv(tmp_path / "rows.csv", index=False)
    models = [
        BoostBPRegressor(**NETWORK, categorical_features=names).fit(str(tmp_path / "rows.csv"), y="y")
        for names in (["c"], pd.Index(["c"]))
    ]
    assert models[0].schema_ == models[1].schema_
    np.testing.assert_array_equal(models[0].predict(X), models[1].predict(X))
