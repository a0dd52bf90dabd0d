"""Paths of tables: their format, the files of a folder, and the columns in the names of folders."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote

ENDINGS = (".csv", ".csv.gz", ".parquet")
_ENDINGS_IN_WORDS = ".csv, .csv.gz or .parquet"
_MISSING = "__HIVE_DEFAULT_PARTITION__"  # how Hive, Spark and Arrow write a missing value


def is_table(path: Path) -> bool:
    """Return whether the name of a file is that of a table in CSV or Parquet format."""
    return path.name.lower().endswith(ENDINGS)


def is_compressed(path: Path) -> bool:
    """Return whether the name of a file says that it is gzipped."""
    return path.suffix.lower() == ".gz"


def format_of(path: Path) -> str:
    """Return ``"csv"`` or ``"parquet"``, by the end of the name; ValueError if it is another."""
    if not is_table(path):
        raise ValueError(f"{str(path)!r} has an unknown format: give a file that ends in {_ENDINGS_IN_WORDS}.")
    return "parquet" if path.suffix.lower() == ".parquet" else "csv"


def files_of(path: Path) -> list[Path]:
    """Return the CSV or Parquet files in a folder and in its folders, by name; of a file, itself.

    Names that begin with ``_`` or ``.`` are skipped: Spark and others keep notes under them. Raises
    FileNotFoundError if there is no such file or folder, OSError if it is a pipe or a device, and ValueError if the
    folder has none, or files of both kinds.
    """
    if not path.is_dir():
        format_of(path)
        check_regular(path)
        if not path.exists():
            raise FileNotFoundError(f"{str(path)!r} is neither a file nor a folder.")
        return [path]
    files = [
        file
        for file in sorted(path.rglob("*"))
        if is_table(file) and file.is_file() and not any(part[0] in "_." for part in file.relative_to(path).parts)
    ]
    if not files:
        raise ValueError(f"The folder {str(path)!r} has no file that ends in {_ENDINGS_IN_WORDS}: give another one.")
    if len(set(map(format_of, files))) > 1:
        raise ValueError(f"The folder {str(path)!r} has CSV and Parquet files: give one with files of one kind.")
    return files


def partition_of(path: Path) -> dict[str, str | None]:
    """Return the columns in the names of a file's folders, as in ``year=2020/month=01``: their text, None if missing.

    `path` begins below the folder of the table. Raises ValueError if a name has no column or no value, or a column is
    named twice.
    """
    columns: dict[str, str | None] = {}
    for name in path.parent.parts:
        column, equals, value = map(unquote, name.partition("="))
        if not equals:
            continue
        if not column or not value or column in columns:
            wrong = f"names {column!r} twice" if column in columns else "names no column, or no value"
            raise ValueError(f"The folder {name!r} of {str(path)!r} {wrong}: rename it, as in 'year=2020'.")
        columns[column] = None if value == _MISSING else value
    return columns


def check_regular(path: str | os.PathLike[str]) -> None:
    """Refuse pipes, which would wait, and devices, which have no end."""
    if not os.path.isdir(path) and os.path.exists(path) and not os.path.isfile(path):
        raise OSError(f"{os.fspath(path)!r} is not a regular file: copy its content into one.")
