"""CSV and Parquet files written aside, table by table, and renamed when all is well."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from boostbp.aside import aside
from boostbp.extras import require
from boostbp.files import format_of

__all__ = ["sink"]


@contextmanager
def sink(path: Path) -> Iterator[Callable[[Any], None]]:
    """Open a file for tables; a failure leaves what was there before untouched.

    Yields
    ------
    write : callable
        Takes a pyarrow.Table; all must have the same schema.
    """
    form = format_of(path)
    module = require(f"pyarrow.{form}", extra="frames", what=f"writing {path.name}")
    opened = module.CSVWriter if form == "csv" else module.ParquetWriter
    writers: list[Any] = []
    with aside(path) as part:

        def write(table: Any) -> None:
            if not writers:
                writers.append(opened(part, table.schema))
            writers[0].write_table(table)

        try:
            yield write
        finally:
            for writer in writers:
                writer.close()
        if not writers:
            raise ValueError(f"There are no rows to write to {str(path)!r}.")
