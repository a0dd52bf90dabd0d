"""Files that commands write: checked before, and written atomically, table by table."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from boostbp.atomic_write import atomic_write, check_writable
from boostbp.cli.errors import fail
from boostbp.extras import require
from boostbp.files import format_of


def check_written(option: str, path: Path, *read: tuple[str, Path | None]) -> None:
    """Leave with exit code 2 if a file could not be written, or would replace another of the same command.

    `option` names it on the command line; `read` are the command's other files behind what names them, None for one
    that was not given.
    """
    try:
        check_writable(path)
    except OSError as error:
        raise fail(f"{option} {error}", 2) from error
    for name, other in read:
        if other is not None and _same(path, other):
            raise fail(f"{option} {str(path)!r} would replace {name} {str(other)!r}: give {option} another name.", 2)


def _same(first: Path, second: Path) -> bool:
    """Whether two paths lead to one file, or would if it were there."""
    if first.exists() and second.exists():
        return first.samefile(second)
    return os.path.realpath(first) == os.path.realpath(second)


# What spreadsheets run, and what some of them skip or widen before they look (OWASP, "CSV Injection").
_RUN = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


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
    with atomic_write(path) as part:

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


def without_formulas(table: Any) -> Any:
    """A pyarrow.Table with ``'`` before names and texts that a spreadsheet would run; numbers stay as they are."""
    pyarrow = require("pyarrow", extra="frames", what="writing a CSV file")
    for place, field in enumerate(table.schema):
        if "string" in str(field.type):  # large ones, views and dictionaries as well
            texts = [text if text is None else _as_text(text) for text in table[field.name].to_pylist()]
            table = table.set_column(place, field.name, pyarrow.array(texts, pyarrow.string()))
    return table.rename_columns([_as_text(name) for name in table.column_names])


def _as_text(text: str) -> str:
    return f"'{text}" if text.startswith(_RUN) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
