"""Folds: each row is tested once a repeat; classes keep their shares, groups are whole, time runs forward."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold, ShuffleSplit

from boostbp.comparison.folds import folds_of, ratio_of_rows


@pytest.mark.parametrize("strata", [None, np.repeat([0, 1], [75, 25])])
def test_each_row_is_a_test_row_once_a_repeat(strata):
    folds = folds_of(100, 4, 2, strata=strata)
    assert len(folds) == 8
    for start in (0, 4):
        tested = np.concatenate([test for _, test in folds[start : start + 4]])
        np.testing.assert_array_equal(np.sort(tested), np.arange(100))
    assert any(set(a[1]) != set(b[1]) for a, b in zip(folds[:4], folds[4:], strict=True))
    for train, test in folds:
        assert not set(train) & set(test)
        if strata is not None:
            assert strata[test].mean() == pytest.approx(0.25, abs=0.05)
    assert ratio_of_rows(folds) == pytest.approx(1 / 3)


@pytest.mark.parametrize("strata", [None, np.arange(120) % 2])
def test_groups_are_not_divided(strata):
    groups = np.arange(120) // 6
    for train, test in folds_of(120, 4, 2, strata=strata, groups=groups):
        assert not set(groups[train]) & set(groups[test])


def test_time_runs_forward_and_a_splitter_is_used_once():
    assert all(train.max() < test.min() for train, test in folds_of(60, "time", 3))
    assert len(folds_of(60, ShuffleSplit(3, random_state=0), 7)) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((40, 1, 2), "folds=1 does not split 40 rows: give 2 to 40"),
        ((40, 41, 2), "folds=41 does not split 40 rows"),
        ((40, 5, 0), "repeats=0 is not allowed"),
        ((40, "weeks", 1), "folds='weeks': give a whole number, 'time', or a splitter"),
    ],
)
def test_folds_that_do_not_split_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        folds_of(*arguments)


def test_class_too_small_to_split_is_refused():
    with pytest.raises(ValueError, match=r"smallest with 3 rows.*merge small classes"):
        folds_of(40, 5, 1, strata=np.repeat([0, 1], [37, 3]))
    with pytest.raises(ValueError, match="folds=5 does not split 4 groups"):
        folds_of(40, 5, 1, groups=np.arange(40) % 4)


def test_no_splitter_may_divide_a_group_or_leave_a_part_without_a_class():
    groups = np.arange(60) % 12
    for folds in ("time", ShuffleSplit(3, random_state=0)):
        with pytest.raises(ValueError, match="rows of one group are training and test rows"):
            folds_of(60, folds, 1, groups=groups)
    assert len(folds_of(60, GroupKFold(3), 1, groups=groups)) == 3
    strata = np.repeat(np.tile([0, 1], 5), 12)  # a group has one class, and a fold one group
    with pytest.raises(ValueError, match="a part has rows of one class only"):
        folds_of(120, 10, 1, strata=strata, groups=np.repeat(np.arange(10), 12))
