"""Held-out rows of groups, of repeated rows, of the end, and of splitters."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from flat_parameters import parameters
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import (
    GroupKFold,
    GroupShuffleSplit,
    ShuffleSplit,
    StratifiedGroupKFold,
    TimeSeriesSplit,
    cross_validate,
    train_test_split,
)
from thread_workers import in_group

from boostbp import BoostBPAutoencoder, BoostBPClassifier, BoostBPRegressor, load, save
from boostbp.estimators.arguments import Arguments
from boostbp.estimators.held_out import hold_out
from boostbp.estimators.request import Request
from boostbp.inputs.repeats import distinct_rows
from boostbp.inputs.rows import Rows
from boostbp.trees.sparse import Sparse, Table

SMALL = {"hidden_layer_sizes": (2,), "n_estimators": 3, "epochs": 1, "deep": True, "random_state": 0}
rng = np.random.default_rng(0)


def held_rows(X, *, weight=None, strata=None, groups=None, seed=0, **changes):
    """Numbers of the rows that are held out; the others, but for those without weight, must be learned from."""
    asked = BoostBPClassifier(random_state=seed, **changes)
    table = X if isinstance(X, Table) else Table(np.ascontiguousarray(X, np.float64))
    rows = np.arange(len(table.X), dtype=np.float64)
    weight = np.ones(len(rows)) if weight is None else np.asarray(weight, np.float64)
    kept, sets = hold_out(Request.of(asked, Arguments(X, groups=groups)), Rows(table, rows[:, None], weight), strata)
    y, left = kept.y, kept.weight
    held = sets[0].rows.y[:, 0] if sets else rows[:0]
    if isinstance(asked.validation, str | float):
        assert sorted([*y[:, 0], *held]) == rows.tolist()
    assert np.array_equal(left, weight[y[:, 0].astype(int)])
    return held.astype(int)


def split_groups(groups, held):
    """Groups with rows on both sides."""
    return set(groups[held]) & set(np.delete(groups, held))


def test_rows_that_differ_are_held_out_as_scikit_learn_splits_them():
    X, labels = rng.normal(size=(300, 3)), rng.integers(0, 3, 300)
    for seed in range(5):
        drawn = np.random.RandomState(seed).randint(2**31 - 1)
        for strata in (None, labels):
            _, held = train_test_split(np.arange(300), test_size=50, random_state=drawn, stratify=strata)
            np.testing.assert_array_equal(held_rows(X, strata=strata, seed=seed), np.sort(held))


REPEATED = {
    "numbers": Table(np.repeat(rng.normal(size=(60, 3)), 8, axis=0)),
    "one column": Table(np.repeat(rng.normal(size=(60, 1)), 8, axis=0)),
    "rounded": Table(np.repeat(rng.normal(size=(60, 4)).round(1), 8, axis=0)),
    "codes": Table(np.repeat(rng.integers(0, 10, (60, 6)).astype(float), 8, axis=0)),
    "missing cells": Table(np.repeat(np.where(rng.random((60, 4)) < 0.2, np.nan, rng.normal(size=(60, 4))), 8, axis=0)),
    "with categories": Table(
        np.repeat(np.column_stack([rng.integers(0, 3, 60), rng.normal(size=(60, 2))]).astype(float), 8, axis=0), (0,)
    ),
    "sparse": Table(Sparse.of(sp.random_array((60, 400), density=0.05, rng=0).tocsr()[np.repeat(np.arange(60), 8)])),
}


@pytest.mark.parametrize("name", REPEATED)
@pytest.mark.parametrize("shuffled", [False, True])
def test_rows_that_are_repeated_stay_on_one_side(name, shuffled):
    table, groups = REPEATED[name], np.repeat(np.arange(60), 8)
    if shuffled:
        order = np.random.default_rng(1).permutation(480)
        table, groups = table.take(order), groups[order]
    labels = rng.integers(0, 2, 480)  # which differ among repeated rows
    for strata in (None, labels):
        held = held_rows(table, strata=strata)
        assert len(held) == 8 * 15  # a quarter of 60 distinct rows
        assert not split_groups(groups, held)


def test_a_few_copies_among_many_rows_stay_together_and_cost_nothing():
    X = rng.normal(size=(500, 3))
    X = np.vstack([X, X[:20]])
    groups = np.r_[np.arange(500), np.arange(20)]
    for seed in range(5):
        held = held_rows(X, seed=seed)
        assert not split_groups(groups, held)
        assert 50 <= len(held) <= 60


@pytest.mark.parametrize(
    "table",
    [
        Table(rng.integers(18, 80, (900, 1)).astype(float)),  # ages
        Table(np.column_stack([rng.integers(18, 80, 900), rng.integers(0, 2, 900)]).astype(float)),
        Table(rng.integers(0, 2, (900, 8)).astype(float)),
        Table((rng.random((900, 12)) < np.where(rng.random((900, 1)) < 0.5, 0.9, 0.1)).astype(float)),  # correlated
        Table(rng.integers(0, 40, (900, 2)).astype(float), (0, 1)),  # categories
        Table(np.repeat(np.arange(60.0), 15)[:, None], (0,)),
        Table(np.zeros((900, 2))),
    ],
    ids=["ages", "ages and sexes", "switches", "correlated switches", "categories", "one category", "constant"],
)
def test_rows_that_are_equal_by_chance_are_held_out_one_by_one(table):
    drawn = np.random.RandomState(0).randint(2**31 - 1)
    _, held = train_test_split(np.arange(900), test_size=90, random_state=drawn)
    np.testing.assert_array_equal(held_rows(table), np.sort(held))


def test_sparse_and_dense_rows_are_held_out_alike():
    entries = sp.random_array((200, 50), density=0.1, rng=0).tocsr()
    entries = sp.vstack([entries, entries[:60]])
    dense = entries.toarray()
    dense[dense == 0] = -0.0
    np.testing.assert_array_equal(held_rows(Table(Sparse.of(entries))), held_rows(dense))


@given(st.data())
def test_a_weight_of_two_is_a_row_twice_and_one_of_zero_is_no_row(data):
    seed = data.draw(st.integers(0, 99))
    random = np.random.default_rng(seed)
    n = data.draw(st.integers(36, 150))
    X, weight, labels = random.normal(size=(n, 3)), random.integers(0, 4, n), random.integers(0, 3, n)
    groups = random.integers(0, 12, n) if data.draw(st.booleans()) else None
    copies = np.repeat(np.arange(n), weight)
    if len(set(copies)) < 36:
        return
    strata = labels if data.draw(st.booleans()) else None

    def of(rows):
        return {"strata": None if strata is None else strata[rows], "groups": None if groups is None else groups[rows]}

    weighted = held_rows(X, weight=weight, seed=seed, **of(slice(None)))
    repeated = copies[held_rows(X[copies], seed=seed, **of(copies))]
    assert set(weighted) == set(repeated)
    assert (weight[weighted] > 0).all()


@given(st.integers(0, 2**32 - 1), st.integers(2, 40), st.integers(0, 4), st.floats(0, 3))
def test_groups_stay_whole_and_no_class_is_lost(seed, n_groups, n_classes, unevenness):
    random = np.random.default_rng(seed)
    share = random.random(n_groups) ** (3 * unevenness)
    groups = random.choice(n_groups, 200, p=share / share.sum())
    labels = random.integers(0, n_classes + 1, n_groups)[groups] if n_classes else None
    if labels is not None:
        labels = np.where(random.random(200) < 0.1, random.integers(0, n_classes + 1, 200), labels)
    if len(set(groups)) < 2:
        return
    held = held_rows(random.normal(size=(200, 2)), strata=labels, groups=groups, seed=seed % 1000)
    assert not split_groups(groups, held)
    if labels is None:
        assert 0 < len(held) < 200
    else:
        assert set(np.delete(labels, held)) == set(labels)
    smallest = np.bincount(groups)[np.unique(groups)].min()
    assert len(held) <= max(100, smallest)


@pytest.mark.slow
def test_whether_rows_are_held_out_does_not_depend_on_the_draw():
    groups = np.repeat(np.arange(4), [22, 22, 22, 20])
    labels = np.repeat([0, 1, 2, 1, 3], [20, 4, 40, 2, 20])  # the first group has all rows of class 0, the last of 3
    X = np.random.default_rng(0).normal(size=(86, 3))
    for seed in range(20):
        held = held_rows(X, strata=labels, groups=groups, seed=seed)
        assert set(groups[held]) in ({1}, {2})
    model = BoostBPClassifier(quality=5, epochs=1, random_state=0).fit(X, labels, groups=groups)
    assert model.history_.choice.members == 6


GROUPS = np.repeat(np.arange(60), 8)


@pytest.mark.parametrize(
    "groups",
    [
        GROUPS,
        GROUPS.tolist(),
        GROUPS.astype(float),
        np.char.add("patient ", GROUPS.astype(str)),
        pd.Series(GROUPS, index=GROUPS[::-1], dtype="Int64"),
        pd.Series(np.char.add("p", GROUPS.astype(str)), dtype="category"),
        pd.Series(np.char.add("p", GROUPS.astype(str))),
        pl.Series(np.char.add("p", GROUPS.astype(str))),
        np.datetime64("2020-01-01") + GROUPS,
    ],
    ids=lambda groups: f"{type(groups).__module__}-{getattr(groups, 'dtype', 'list')}",
)
def test_groups_of_any_kind_are_the_same_groups(groups):
    X = rng.normal(size=(480, 2))
    np.testing.assert_array_equal(held_rows(X, groups=groups), held_rows(X, groups=GROUPS))


@pytest.mark.parametrize(
    ("groups", "changes", "message"),
    [
        ([1.0, np.nan] * 30, {}, r"groups contains NaN: 30 of 60 rows, the first in row 1.*a group of its own"),
        (["a", None] * 30, {}, r"groups contains NaN: 30 of 60 rows"),
        ([1, 2] * 29, {}, r"inconsistent numbers of samples: \[60, 58\]"),
        (np.ones(60), {}, "groups holds only one group: give at least two"),
        (np.ones((60, 2)), {}, r"groups must be a 1D array, \(rows,\); got shape \(60, 2\)"),
        ("patient", {}, "groups='patient' is not known: give the group of each row"),
        (3, {}, "groups=3 is not known"),
        (np.arange(60), {"validation": "last"}, "groups with validation='last' is not supported"),
        (np.arange(60), {"validation": (np.arange(9), np.arange(9, 60))}, "groups with validation=.* is not supported"),
        (None, {"validation": "first"}, "validation='first' is not known: use one of 'last'"),
        (None, {"validation": 3}, "validation=3 is not allowed: give a number above 0, and below 1"),
        (None, {"validation": ([0, 1], [1, 2])}, "validation holds row 1 on both sides"),
        (None, {"validation": ([0, 1], [2, 60])}, r"validation holds \[2, 60\]: .* row numbers from 0 to 59"),
        (None, {"validation": ([], [2])}, r"validation holds \[\]"),
        (None, {"validation": ([0.5], [2])}, r"validation holds \[0.5\]"),
        (np.arange(2).repeat(30), {"validation": 0.6}, "of 2 groups leaves none to train on"),
    ],
)
def test_what_cannot_be_split_by_is_refused(groups, changes, message):
    with pytest.raises(ValueError, match=message):
        held_rows(rng.normal(size=(60, 2)), groups=groups, **changes)


def test_the_last_rows_are_those_that_count():
    X = np.repeat(rng.normal(size=(50, 2)), 4, axis=0)
    np.testing.assert_array_equal(held_rows(X, validation="last"), np.arange(150, 200))
    weight = np.r_[np.ones(180), np.zeros(20)]
    np.testing.assert_array_equal(held_rows(X, validation="last", weight=weight), np.arange(135, 180))
    assert len(held_rows(X[:30], validation="last")) == 0
    assert len(held_rows(X[:30], validation="last", early_stopping=True)) == 3
    with pytest.raises(ValueError, match=r"validation='last' leaves no training row of the classes \[True\]"):
        held_rows(X, validation="last", strata=np.arange(200) >= 160)


@pytest.mark.parametrize(
    "splitter",
    [
        TimeSeriesSplit(4),
        ShuffleSplit(3, random_state=0),
        GroupShuffleSplit(2, random_state=0),
        GroupKFold(5),
        StratifiedGroupKFold(4),
    ],
    ids=lambda splitter: type(splitter).__name__,
)
def test_splitters_give_their_last_split(splitter):
    X, labels = rng.normal(size=(480, 2)), rng.integers(0, 2, 480)
    groups = GROUPS if "Group" in type(splitter).__name__ else None
    held = held_rows(X, validation=splitter, strata=labels, groups=groups)
    *_, (_, expected) = splitter.split(X, labels, groups)
    np.testing.assert_array_equal(held, np.sort(expected))


def test_rows_may_be_listed_or_masked_and_the_others_are_left_out(before_refit):
    X = rng.normal(size=(100, 2))
    train, held = np.arange(10, 60), np.arange(70, 90)
    mask = [np.isin(np.arange(100), rows) for rows in (train, held)]
    for pair in ((train, held), (held[:0].tolist() + train.tolist(), held), mask):
        np.testing.assert_array_equal(held_rows(X, validation=pair), held)
    y = X[:, 0]
    model = before_refit(BoostBPRegressor(**parameters(validation=(train, held), **SMALL)), X, y)
    alone = BoostBPRegressor(**parameters(**SMALL)).fit(X[train], y[train], eval_set=(X[held], y[held]))
    np.testing.assert_array_equal(model.predict(X), alone.predict(X))
    with pytest.raises(ValueError, match="all rows of one side have weight 0"):
        held_rows(X, validation=(train, held), weight=np.isin(np.arange(100), train))


def test_weight_zero_is_no_row():
    X, y = rng.normal(size=(150, 3)), rng.normal(size=150)
    weight = np.where(np.arange(150) % 3 == 0, 0.0, 1.0)
    used = weight > 0
    for kind, target in ((BoostBPRegressor, y), (BoostBPClassifier, y > 0)):
        model = kind(**parameters(**SMALL))
        with_them = model.fit(X, target, sample_weight=weight).predict(X)
        np.testing.assert_allclose(with_them, model.fit(X[used], target[used]).predict(X), rtol=1e-12)


def grouped(n_groups, seed=0, jitter=0.0):
    """Rows of groups that have the same features, but for some jitter, and an effect that these tell little of."""
    random = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_groups), 8)
    features, effect = random.normal(size=(n_groups, 4)), random.normal(size=n_groups)
    X = features[groups] + jitter * random.normal(size=(len(groups), 4))
    y = 2 * effect[groups] + features[groups, 0] + 0.3 * random.normal(size=len(groups))
    return X, y, groups


@pytest.mark.parametrize("how", ["groups", "repeated", "splitter"])
def test_the_held_out_score_is_that_of_new_groups(how):
    X, y, groups = grouped(150, jitter=0.0 if how == "repeated" else 0.01)
    new, target, _ = grouped(300, seed=1)
    settings = {"hidden_layer_sizes": (3,), "n_estimators": [5, 60], "epochs": 2, "deep": True, "random_state": 0}
    options = {} if how == "repeated" else {"groups": groups}
    if how == "splitter":
        settings["validation"] = GroupShuffleSplit(1, test_size=0.3, random_state=0)
    model = BoostBPRegressor(**parameters(**settings)).fit(X, y, **options)
    said = model.history_.scores["held_out"]
    true = np.sqrt(np.mean(np.square(model.predict(new) - target)))
    assert said == pytest.approx(true, rel=0.25)
    assert f"rmse {said:.6g} on held_out" in model.summary()
    if how == "groups":  # as it was
        blind = BoostBPRegressor(**parameters(**settings)).fit(X, y).history_.scores["held_out"]
        assert blind < 0.5 * true


def test_other_estimators_take_groups():
    X, y, groups = grouped(40)
    for model in (
        BoostBPClassifier(**parameters(**SMALL)).fit(X, y > 0, groups=groups),
        BoostBPAutoencoder((2,), epochs=1, random_state=0).fit(X, groups=groups),
    ):
        assert list(model.history_[0].metrics) == ["held_out"]
    unused = BoostBPRegressor(**parameters(**SMALL)).fit(X, y, groups=groups, eval_set=(X, y))
    assert list(unused.history_[0].metrics) == ["valid_0"]


def test_a_checkpoint_of_other_groups_is_of_another_fit(tmp_path):
    X, y, groups = grouped(40)
    model = BoostBPRegressor(**parameters(**SMALL)).fit(X, y, groups=groups, checkpoint=tmp_path / "state")
    model.set_params(epochs=2).fit(X, y, groups=groups, checkpoint=tmp_path / "state")
    with pytest.raises(ValueError, match=r"belongs to another fit: X differs"):
        model.fit(X, y, groups=np.roll(groups, 3), checkpoint=tmp_path / "state")


def test_groups_are_routed_by_default():
    X, y, groups = grouped(30)
    seen = []

    class Tell(BoostBPRegressor):
        def fit(self, X, y, sample_weight=None, *, eval_set=None, eval_names=None, groups=None):
            seen.append(groups)
            return super().fit(X, y, sample_weight, eval_set=eval_set, eval_names=eval_names, groups=groups)

    with sklearn.config_context(enable_metadata_routing=True):
        cross_validate(Tell(**SMALL), X, y, cv=GroupKFold(3), params={"groups": groups}, error_score="raise")
        assert [len(each) for each in seen] == [160] * 3
        seen.clear()
        model = Tell(**SMALL).set_fit_request(groups=False)
        cross_validate(model, X, y, cv=GroupKFold(3), params={"groups": groups}, error_score="raise")
    assert seen == [None] * 3


def test_files_keep_words_and_leave_rows_and_splitters_out(tmp_path):
    X, y, _ = grouped(20)
    for validation, kept in (("last", "last"), (0.2, 0.2), (TimeSeriesSplit(3), 0.1), ((np.arange(90), [100]), 0.1)):
        save(BoostBPRegressor(**parameters(validation=validation, **SMALL)).fit(X, y), tmp_path / "model")
        assert load(tmp_path / "model").validation == kept


@pytest.mark.parametrize("kind", [kind for kind, table in REPEATED.items() if not isinstance(table.X, Sparse)])
@pytest.mark.parametrize("noise", [1e-15, 1e-12])
def test_rows_that_differ_by_noise_stay_on_one_side(kind, noise):
    table = REPEATED[kind]
    draw = np.random.default_rng(0)
    numeric = np.setdiff1d(np.arange(table.X.shape[1]), table.categorical)
    X = table.X.copy()
    X[:, numeric] *= 1.0 + noise * draw.uniform(-1, 1, (len(X), len(numeric)))
    order = draw.permutation(len(X))
    first = np.unique(table.X, axis=0, return_inverse=True)[1].ravel()[order]
    held = held_rows(Table(X[order], table.categorical))
    assert len(held) > 0
    assert not split_groups(first, held)


def test_neighbouring_ids_do_not_make_rows_alike():
    draw = np.random.default_rng(0)
    X = np.column_stack([1e15 + np.arange(480.0), np.repeat(draw.normal(size=60), 8)])
    drawn = np.random.RandomState(0).randint(2**31 - 1)
    held = held_rows(X)
    _, expected = train_test_split(np.arange(480), test_size=len(held), random_state=drawn)
    np.testing.assert_array_equal(held, np.sort(expected))


def test_noisy_repeats_are_the_same_for_workers():
    draw = np.random.default_rng(0)
    X = np.repeat(draw.normal(size=(60, 3)), 8, axis=0) * (1.0 + 1e-13 * draw.normal(size=(480, 3)))
    alone = distinct_rows(Table(X))
    assert len(np.unique(alone)) == 60
    for number in in_group(3, lambda rows: distinct_rows(Table(rows)), X):
        np.testing.assert_array_equal(number, alone)
