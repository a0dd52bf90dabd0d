"""Row numbers: columns that tell rows apart rather than describe them, of which a fit warns."""

from __future__ import annotations

import re

import numpy as np

from boostbp.inputs.categories import MIN_TEXT_ROWS
from boostbp.inputs.faults import cure
from boostbp.inputs.files.parts import row_index_of
from boostbp.inputs.sources import NO_NUMBER, Column, Source
from boostbp.runtime import messages

_IDENTIFIER = re.compile(r"(?i:\b|_)(?i:id|key|no|nr|row|index)'|I[Dd]'")  # the end of a label, Column 'tx_id'


def warn_of_row_index(source: Source) -> None:
    """Warn of named columns that look like the row index of a table that was written to a file, or like row numbers."""
    if not source.names:
        return
    index = row_index_of(source.names, getattr(source.original, "schema", None))
    for name in sorted(index):
        fault = "looks like the row index of a table that was written to a file and read again"
        how = "drop it (index_col=0 in pandas.read_csv), or rename it to keep it"
        messages.warn(f"Column {name!r} {fault}. As a feature it identifies training rows: {how}.")
    for name, column in zip(source.names, source.columns, strict=True):
        if name not in index and len(source.names) > 1 and _are_row_numbers(column):  # one column may be a grid
            what = f"{column.label} holds distinct whole numbers of a range, as row numbers do"
            pattern = re.escape(what).replace("\\ ", " ")
            keep = f"or keep it without this warning: warnings.filterwarnings('ignore', {pattern!r})"
            how = cure(f"drop it, {keep}", [("drop", name)])
            messages.warn(f"{what}. As a feature it identifies training rows: {how}.")


def _are_row_numbers(column: Column) -> bool:
    """Return whether a column holds most numbers of a range once, in any order.

    The range begins at about 0, unless the name is that of an identifier: days and years begin later. Only the first
    rows of other columns are read.
    """
    if column.is_categorical or column.dtype in NO_NUMBER or "complex" in column.dtype:
        return False
    values = column.numbers()
    first_rows = values[:MIN_TEXT_ROWS].astype(np.float64)
    if (
        len(values) < MIN_TEXT_ROWS
        or not np.array_equal(first_rows, np.rint(first_rows))
        or not np.diff(first_rows).all()
    ):
        return False
    first, last = float(values.min()), float(values.max())
    begins = 0 <= first <= max(1.0, len(values) / 10) or _IDENTIFIER.search(column.label) is not None
    if not (begins and last - first < 2 * len(values) and np.array_equal(values, np.rint(values))):
        return False
    return bool(np.bincount((values.astype(np.float64) - first).astype(np.int64)).max() == 1)
