"""Paths of tables: their format, the files of a folder, and the columns in the names of folders."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

FORMATS = {".csv": "csv", ".csv.gz": "csv", ".parquet": "parquet"}
_NAMED = ".csv, .csv.gz or .parquet"
_MISSING = "__HIVE_DEFAULT_PARTITION__"  # how Hive, Spark and Arrow write a missing value


def format_of(path: Path) -> str:
    """``"csv"`` or ``"parquet"``, by the end of the name; ValueError if it is another."""
    form = _format(path)
    if form is None:
        raise ValueError(f"{str(path)!r} has an unknown format: give a file that ends in {_NAMED}.")
    return form


def _format(path: Path) -> str | None:
    name = path.name.lower()
    return next((form for end, form in FORMATS.items() if name.endswith(end)), None)


def is_table(path: Path) -> bool:
    """Whether a file is a table that we read, by its name."""
    return _format(path) is not None


def is_compressed(path: Path) -> bool:
    """Whether a file is gzipped, by its name."""
    return path.suffix.lower() == ".gz"


def files_of(path: Path) -> list[Path]:
    """The CSV or Parquet files in a folder, and in folders there, by name; of a file, itself.

    Names that begin with ``_`` or ``.`` are skipped: Spark and others keep notes under them. Raises
    FileNotFoundError if there is no such file or folder, OSError if it is a pipe or a device, and ValueError if the
    folder has none, or files of both kinds.
    """
    if not path.is_dir():
        format_of(path)
        check_regular(path)
        if not path.is_file():
            raise FileNotFoundError(f"{str(path)!r} is neither a file nor a folder.")
        return [path]
    files = [file for file in _below(path) if is_table(file) and file.is_file()]
    if not files:
        raise ValueError(f"The folder {str(path)!r} has no file that ends in {_NAMED}: give another one.")
    if len({_format(file) for file in files}) > 1:
        raise ValueError(f"The folder {str(path)!r} has CSV and Parquet files: give one with files of one kind.")
    return files


def _below(folder: Path) -> Iterator[Path]:
    for file in sorted(folder.rglob("*")):
        if not any(part[0] in "_." for part in file.relative_to(folder).parts):
            yield file


def partition_of(path: Path) -> dict[str, str | None]:
    """Columns in the names of a file's folders, as in ``year=2020/month=01``: their text, None if missing.

    `path` is that of the file below the folder of the table. Raises ValueError if a name has no key or no value, or
    two have the same key.
    """
    columns: dict[str, str | None] = {}
    for name in path.parent.parts:
        key, equals, value = map(unquote, name.partition("="))
        if not equals:
            continue
        if not key or not value:
            lacks = "value" if key else "key"
            raise ValueError(f"The folder {name!r} of {str(path)!r} names no {lacks}: rename it, as in 'year=2020'.")
        if key in columns:
            raise ValueError(f"The folders of {str(path)!r} name {key!r} twice: rename one of them.")
        columns[key] = None if value == _MISSING else value
    return columns


def check_regular(path: str | os.PathLike[str]) -> None:
    """Refuse pipes, which would wait, and devices, which have no end."""
    if not os.path.isdir(path) and os.path.exists(path) and not os.path.isfile(path):
        raise OSError(f"{os.fspath(path)!r} is not a regular file: copy its content into one.")
