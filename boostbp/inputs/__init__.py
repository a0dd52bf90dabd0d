"""What users hold (arrays, tables, sparse matrices) turned into what growers bin."""

from __future__ import annotations

from boostbp.inputs.reader import read_input
from boostbp.inputs.schema import Schema
from boostbp.inputs.targets import (
    counted,
    in_rows,
    read_target,
    read_weight,
    refuse_extreme,
    refuse_text,
    warn_of_numbers,
)

__all__ = [
    "Schema",
    "counted",
    "in_rows",
    "read_input",
    "read_target",
    "read_weight",
    "refuse_extreme",
    "refuse_text",
    "warn_of_numbers",
]
