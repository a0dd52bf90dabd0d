"""What is read in place of mistyped cells, as arrays of a file, and back, checked."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from boostbp.archive import Arrays, take
from boostbp.inputs import Repair, Schema
from boostbp.inputs.contradictions import Normal
from boostbp.inputs.repair import Units

__all__ = ["repair_from", "repair_of"]

_PREFIX = "repair."


def repair_of(repair: Repair | None) -> Arrays:
    """Arrays of it: ``repair.NAME`` with the names in `Units` and `Normal`; none where there is no repair."""
    parts = () if repair is None else (repair.units, repair.normal)
    return {f"{_PREFIX}{field.name}": getattr(part, field.name) for part in parts for field in fields(part)}


def repair_from(arrays: Arrays, schema: Schema) -> Repair | None:
    """What `repair_of` described; its arrays are taken out.

    Raises
    ------
    ValueError
        If they do not fit together, or the table.
    """
    if f"{_PREFIX}column" not in arrays:
        return None
    count = len(arrays[f"{_PREFIX}column"])
    repair = Repair(_part(Units, arrays, count), _part(Normal, arrays, count))
    units, normal = repair.units, repair.normal
    inside = np.isin(units.column, np.setdiff1d(np.arange(schema.n_features), list(schema.categories)))
    _require(inside.all() and (np.diff(units.column) > 0).all(), "it reads columns that are not there")
    _check_units(units)
    _check_normal(normal)
    for end in (normal.lowest, normal.highest):
        _require(np.isfinite(units.values(np.arange(count), end)).all(), "it reads infinity")
    return repair


def _part(kind: Any, arrays: Arrays, count: int) -> Any:
    """Units or a distribution of so many columns."""
    shapes = {field.name: (count,) * (2 if field.name == "precision" else 1) for field in fields(kind)}
    return kind(
        **{
            name: take(arrays, _PREFIX + name, np.int64 if name == "column" else np.float64, shapes[name])
            for name in shapes
        }
    )


def _check_units(units: Units) -> None:
    finite = np.isfinite(units.floor).all() and np.isfinite(units.center).all()
    _require(finite and (units.floor >= 0).all() and (units.scale > 0).all(), "its units are none")


def _check_normal(normal: Normal) -> None:
    P = normal.precision
    _require(np.isfinite(P).all() and np.array_equal(P, P.T), "its precision is none")
    _require(len(P) > 0 and np.linalg.eigvalsh(P)[0] > 0, "its precision is none")
    ordered = (normal.lowest <= normal.highest).all() and (normal.least < 0).all() and (normal.most > 0).all()
    _require(ordered and np.isfinite([normal.lowest, normal.highest]).all(), "its bounds are none")
    bounded = np.isfinite(normal.most)
    _require((bounded == np.isfinite(normal.least)).all() and bounded.any(), "it replaces nothing")


def _require(good: Any, what: str) -> None:
    if not good:
        raise ValueError(f"This is not what mistyped cells are read as: {what}.")
