"""Survival times in all their forms, and what is refused of them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from boostbp import BoostBPSurvival
from tests.estimators.test_time_to_event import TIME, X_NEW, Y_NEW, X, Y, surv

Floats = NDArray[np.float64]

QUICK: dict[str, Any] = {"quality": 1, "n_estimators": 60, "random_state": 0}


def forms() -> dict[str, Any]:
    y = surv(Y)
    frame = pd.DataFrame({"time": y["time"], "event": y["event"]})
    return {
        "structured": y,
        "structured, time first": y[["time", "event"]],
        "frame": frame,
        "frame of nullable bools": frame.astype({"event": "boolean"}),
        "frame of events as numbers": frame.astype({"event": float}),
        "frame of bounds": pd.DataFrame(Y, columns=["lower", "upper"]),
        "frame of bounds, upper first": pd.DataFrame(Y[:, ::-1], columns=["label_upper_bound", "label_lower_bound"]),
        "structured bounds": np.rec.fromarrays(Y.T, names="y_lower_bound,y_upper_bound"),
        "list of bounds": Y.tolist(),
        "signed times": np.where(y["event"], y["time"], -y["time"]),
    }


@pytest.mark.parametrize("form", forms())
def test_all_forms_of_a_target_give_the_same_model(form: str) -> None:
    expected = BoostBPSurvival(**QUICK).fit(X, Y, eval_set=[(X_NEW, Y_NEW)])
    model = BoostBPSurvival(**QUICK).fit(X, forms()[form], eval_set=[(X_NEW, surv(Y_NEW))])
    np.testing.assert_array_equal(model.predict(X_NEW), expected.predict(X_NEW))
    assert model.score(X_NEW, surv(Y_NEW)) == expected.score(X_NEW, Y_NEW)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.column_stack([Y[:, 0], np.isfinite(Y[:, 1])]), "which may be a status or a bound"),
        (
            pd.DataFrame({"time": TIME, "event": 2.0}),
            "contains no events: .*'event' is 1 for an event, and otherwise 0",
        ),
        (Y[:, ::-1], "bounds out of order"),
        (np.column_stack([Y, Y]), "holds 4 columns, 0 of them bools: give two columns of bounds, sksurv.util.Surv"),
        (np.where(np.inf == Y, np.nan, Y), "contains NaN"),
        (pd.DataFrame({"a": TIME, "b": ["x"] * 600}), "holds text, such as 'x'"),
        (pd.DataFrame({"time": -TIME, "event": TIME > 1}), "contains times out of range"),
        (TIME > 1, "holds 1 columns, 1 of them bools"),
        (-TIME, "y has no event"),
        (None, "the target y is None"),
        (Y[:-1], "inconsistent numbers of samples"),
    ],
)
def test_other_targets_are_refused_with_a_cure(y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BoostBPSurvival(**QUICK).fit(X, y)


def test_a_status_is_never_read_as_bounds() -> None:
    rng = np.random.default_rng(0)
    days, visits = rng.integers(10, 1000, 600).astype(float), np.sort(rng.integers(1, 8, (600, 2)), axis=1)
    for status in (rng.integers(0, 2, 600), rng.integers(1, 3, 600), np.ones(600), np.zeros(600), np.full(600, 2)):
        for y in (np.column_stack([status, days]), np.column_stack([days, status]).tolist()):
            with pytest.raises(ValueError, match="may be a status or a bound"):
                BoostBPSurvival(loss="aft", **QUICK).fit(X, y)
    for y in (pd.DataFrame({"status": status, "days": days}), np.rec.fromarrays([status, days], names="status,days")):
        with pytest.raises(ValueError, match="may be a status or a bound"):
            BoostBPSurvival(loss="aft", **QUICK).fit(X, y)
    with pytest.raises(ValueError, match="may be a status or a bound"):
        BoostBPSurvival(loss="aft", **QUICK).fit(X, visits)


@pytest.mark.parametrize("frame", [True, False])
def test_either_cure_of_a_status_works_on_its_input(frame: bool) -> None:
    rng = np.random.default_rng(0)
    status = rng.integers(1, 3, 600).astype(float)
    low = np.where(status == 1.0, 1.0, 2.0)
    y: Any = np.column_stack([low, 1.0 + np.round(X[:, 0] + 3.0)])
    y[:, 1] = np.maximum(y[:, 0], y[:, 1])
    events, bounds = (y[:, 0] == 1.0, y[:, 1]), (y[:, 0], y[:, 1])
    y = pd.DataFrame(y, columns=["status", "days"]) if frame else y
    with pytest.raises(ValueError, match="may be a status or a bound") as refused:
        BoostBPSurvival(loss="aft", **QUICK).fit(X, y)
    cures = re.findall(r"np\.rec\.fromarrays\(.*?'\)", str(refused.value))
    models = [BoostBPSurvival(loss="aft", **QUICK).fit(X, eval(cure, {"np": np, "y": y})) for cure in cures]
    expected = (
        np.rec.fromarrays(events, names="event,time"),
        pd.DataFrame(dict(zip(("lower", "upper"), bounds, strict=True))),
    )
    for model, target in zip(models, expected, strict=True):
        direct = BoostBPSurvival(loss="aft", **QUICK).fit(X, target)
        np.testing.assert_array_equal(model.predict(X_NEW), direct.predict(X_NEW))
    assert not np.array_equal(models[0].predict(X_NEW), models[1].predict(X_NEW))


def test_a_fold_of_events_keeps_the_form_that_names_declare() -> None:
    frame = pd.DataFrame({"time": TIME, "event": 1})
    model = BoostBPSurvival(loss="aft", **QUICK).fit(X, frame)
    np.testing.assert_array_equal(
        model.predict(X_NEW), BoostBPSurvival(loss="aft", **QUICK).fit(X, np.column_stack([TIME, TIME])).predict(X_NEW)
    )


def test_files_declare_whole_bounds_by_their_names(tmp_path: Any) -> None:
    visits = np.sort(np.random.default_rng(0).integers(1, 8, (600, 2)), axis=1)
    frame = pd.DataFrame(X, columns=list("abcd"))
    targets = pd.DataFrame(visits, columns=["lower", "upper"])
    pd.concat([frame, targets], axis=1).to_csv(tmp_path / "rows.csv", index=False)
    model = BoostBPSurvival(loss="aft", **QUICK).fit(tmp_path / "rows.csv", y=["lower", "upper"])
    expected = BoostBPSurvival(loss="aft", **QUICK).fit(frame, targets)
    np.testing.assert_array_equal(model.predict(frame), expected.predict(frame))
    frame.to_csv(tmp_path / "features.csv", index=False)
    beside = BoostBPSurvival(loss="aft", **QUICK).fit(tmp_path / "features.csv", targets)
    np.testing.assert_array_equal(beside.predict(frame), expected.predict(frame))


def test_times_without_a_lower_bound_are_refused() -> None:
    left = np.column_stack([np.zeros(600), TIME])
    with pytest.raises(ValueError, match="all rows are censored on the left"):
        BoostBPSurvival(loss="aft", **QUICK).fit(X, pd.DataFrame(left, columns=["lower", "upper"]))
    left[::2, 0] = TIME[::2]
    BoostBPSurvival(loss="aft", **QUICK).fit(X, pd.DataFrame(left, columns=["lower", "upper"]))


def test_unnamed_bounds_in_blocks_are_judged_by_all_rows() -> None:
    rng = np.random.default_rng(0)
    X, lower = rng.normal(size=(400, 3)), rng.integers(1, 9, 400).astype(float)
    y = np.column_stack([lower, lower + rng.integers(0, 2, 400)])
    blocks = [slice(start, start + 100) for start in range(0, 400, 100)]
    for at in (50, 350):  # a row that is censored on the right, in the first block or in the last one
        bounds = y.copy()
        bounds[at, 1] = np.inf
        model = BoostBPSurvival(loss="aft", quality=1, random_state=0).fit((X[rows], bounds[rows]) for rows in blocks)
        expected = BoostBPSurvival(loss="aft", quality=1, random_state=0).fit(X, bounds).predict(X)
        np.testing.assert_array_equal(model.predict(X), expected)
    for columns in (y, np.column_stack([lower % 2, 50.5 + lower]), np.column_stack([50.5 + lower, lower % 2])):
        with pytest.raises(ValueError, match="may be a status or a bound"):
            BoostBPSurvival(quality=1).fit((X[rows], columns[rows]) for rows in blocks)
