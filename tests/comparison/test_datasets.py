"""Data sets by name."""

from __future__ import annotations

import numpy as np
import pytest

from boostbp.comparison.datasets import DATASETS, load_dataset, task_of_data
from boostbp.inputs.files.tables import ColumnRoles


@pytest.mark.parametrize("name", DATASETS)
def test_named_data_are_complete_tables(name):
    dataset = load_dataset(name)
    assert dataset.X.ndim == 2
    assert len(dataset.X) == len(dataset.y)
    assert np.isfinite(dataset.X).all()
    assert dataset.task == task_of_data(dataset.y)


@pytest.mark.parametrize(
    ("y", "task"),
    [
        (np.array(["a", "b"]), "classification"),
        (np.arange(20), "classification"),
        (np.arange(21), "regression"),
        (np.array([0.0, 1.0]), "regression"),
    ],
    ids=["text", "twenty whole numbers", "more whole numbers", "numbers"],
)
def test_task_follows_the_target(y, task):
    assert task_of_data(y) == task


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("no_such", {}, r"source='no_such' is not a data set: give one of breast_cancer"),
        ("rows.csv", {}, r"target=None: rows.csv needs the name of the column"),
        ("iris", {"target": "y"}, r"'iris' has its own target and task"),
        ("iris", {"task": "regression"}, r"'iris' has its own target and task"),
    ],
)
def test_wrong_request_names_the_cure(source, options, message):
    with pytest.raises(ValueError, match=message):
        load_dataset(source, **options)


def test_text_is_no_target_of_a_regression(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("x,y\n1,a\n2,b\n")
    with pytest.raises(ValueError, match=r"Column 'y' must hold numbers: 'a' is not one"):
        load_dataset(str(path), target="y", task="regression")


def test_negative_times_are_refused(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("x,days,died\n1,4,1\n2,0,0\n3,-4,1\n")
    columns = ColumnRoles(verbatim=["died"])
    dataset = load_dataset(str(path), target="days", task="regression", columns=columns)
    with pytest.raises(ValueError, match=r"target='days': the column holds the time -4, .* write times from 0 on"):
        dataset.with_events("died", "days")
    path.write_text("x,days,died\n1,4,1\n2,0,0\n3,4,0\n")
    dataset = load_dataset(str(path), target="days", task="regression", columns=columns)
    np.testing.assert_array_equal(np.signbit(dataset.with_events("died", "days")), [False, True, True])


def test_openml_without_network_says_so(openml):
    def unreachable(**_):
        raise OSError("no route to host")

    openml(unreachable)
    with pytest.raises(ConnectionError, match="openml:adult needs the network, which gave: no route to host"):
        load_dataset("openml:adult")


def test_openml_columns_become_numbers_and_categories(openml):
    import pandas as pd
    from sklearn.utils import Bunch

    asked = {}

    def fetched(**request):
        asked.update(request)
        frame = pd.DataFrame({"n": [1, 2, 3], "t": ["a", "b", None], "c": pd.Categorical(["u", "v", "u"])})
        return Bunch(data=frame, target=pd.Series(pd.Categorical(["yes", None, "no"])))

    openml(fetched)
    dataset = load_dataset("openml:42")
    assert asked["data_id"] == 42
    assert [str(dtype) for dtype in dataset.X.dtypes] == ["float64", "category", "category"]
    assert dataset.y.tolist() == ["yes", "no"]
    assert (dataset.task, len(dataset.X)) == ("classification", 2)
