"""Files that come in many blocks without being large."""

from __future__ import annotations

import pytest

from boostbp.inputs.files import parts


@pytest.fixture
def small_blocks(tune):
    """CSV files come in blocks of 4 kB, and Parquet files in batches of 3 rows."""
    tune(parts, _CSV_BLOCK=4096, _PARQUET_ROWS=3)
