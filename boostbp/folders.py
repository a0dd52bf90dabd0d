"""Folders: the CSV or Parquet files that a table is in."""

from __future__ import annotations

from pathlib import Path

_SUFFIXES = (".csv", ".parquet")


def format_of(path: Path) -> str:
    """``"csv"`` or ``"parquet"``, by the end of the name; ValueError if it is another."""
    suffix = path.suffix.lower()
    if suffix in _SUFFIXES:
        return suffix[1:]
    raise ValueError(f"{str(path)!r} has an unknown format: give a file that ends in .csv or .parquet.")


def files_of(path: Path) -> list[Path]:
    """The CSV or Parquet files in a folder, and in folders there, by name; of a file, itself.

    Names that begin with ``_`` or ``.`` are left out: what writes tables keeps notes under them. Raises
    FileNotFoundError if there is no such file or folder, and ValueError if the folder has none, or files of both kinds.
    """
    if not path.is_dir():
        format_of(path)
        if not path.is_file():
            raise FileNotFoundError(f"{str(path)!r} is neither a file nor a folder.")
        return [path]
    files = [file for file in sorted(path.rglob("*")) if file.suffix.lower() in _SUFFIXES and file.is_file()]
    files = [file for file in files if not any(part[0] in "_." for part in file.relative_to(path).parts)]
    if not files:
        raise ValueError(f"The folder {str(path)!r} has no file that ends in .csv or .parquet: give another one.")
    if len({format_of(file) for file in files}) > 1:
        raise ValueError(f"The folder {str(path)!r} has CSV and Parquet files: give one with files of one kind.")
    return files
