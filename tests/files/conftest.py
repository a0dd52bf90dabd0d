"""Files that come in many blocks without being large."""

from __future__ import annotations

import pytest


@pytest.fixture
def small_blocks(monkeypatch):
    """CSV files come in blocks of 4 kB, and Parquet files in batches of 3 rows."""
    monkeypatch.setattr("boostbp.files.parts._CSV_BLOCK", 4096)
    monkeypatch.setattr("boostbp.files.parts._PARQUET_ROWS", 3)
