"""What users hold (arrays, tables, sparse matrices) turned into what growers bin."""

from __future__ import annotations

from boostbp.inputs.blocks import blocks_of, is_blocks, rows_of
from boostbp.inputs.reader import read_input
from boostbp.inputs.repair import Repair
from boostbp.inputs.repeats import distinct_rows, hashes_of, numbered
from boostbp.inputs.schema import Schema
from boostbp.inputs.sources import TableFiles, first_rows, numbers_in
from boostbp.inputs.targets import (
    drop_zero_weight,
    read_groups,
    read_offset,
    read_target,
    read_weight,
    refuse_extreme,
    refuse_text,
    weights_in_rows,
)

__all__ = [
    "Repair",
    "Schema",
    "TableFiles",
    "blocks_of",
    "distinct_rows",
    "drop_zero_weight",
    "first_rows",
    "hashes_of",
    "is_blocks",
    "numbered",
    "numbers_in",
    "read_groups",
    "read_input",
    "read_offset",
    "read_target",
    "read_weight",
    "refuse_extreme",
    "refuse_text",
    "rows_of",
    "weights_in_rows",
]
