"""Columns that were read as categories though they hold none: numbers or dates as text, or a value for each row."""

from __future__ import annotations

import numpy as np

from boostbp import cautions, spelling
from boostbp.inputs.categories import Factors, is_missing

DISTINCT = 0.9  # distinct values per row from which on a category tells nothing
FEWEST_ROWS = 20  # below, few rows may well differ


def check_categories(factors: Factors, label: str, *, declared: bool) -> None:
    """Look at a training column that is to be categories.

    Parameters
    ----------
    factors : Factors
    label : str
        What messages call the column.
    declared : bool
        Whether the user or the dtype says that the column holds categories; otherwise it only is text.

    Raises
    ------
    ValueError
        If a column of text spells numbers or dates.

    Warns
    -----
    UserWarning
        If nearly all of its values are distinct.
    """
    counts = np.bincount(factors.place[factors.place >= 0], minlength=len(factors.values))
    present = [i for i, value in enumerate(factors.values) if counts[i] and not is_missing(value)]
    values, rows = [factors.values[i] for i in present], counts[present]
    fault = None if declared else spelling.fault(values, rows.tolist())
    if fault is not None:
        sentence, others = fault
        missing = f", or na_values={others} where the file is read" if others else ""
        raise ValueError(
            f"{label} holds text, but {sentence}. As categories they would have no order: turn it into numbers "
            f"(pandas.to_numeric(column, errors='coerce'){missing}; of dates, days since one), or say that it holds "
            "categories (name it in categorical_features, or .astype('category'))."
        )
    if rows.sum() >= FEWEST_ROWS and len(values) >= DISTINCT * rows.sum():
        cautions.warn(
            f"{label} is read as categories, but has {len(values)} distinct values in {rows.sum()} rows, such as "
            f"{values[0]!r}: what hardly comes twice tells nothing of other rows. Drop it, group its values, or, if "
            "they are numbers, pass them as numbers.",
        )
