"""Tables in CSV and Parquet files, or in folders of such files, read whole or in chunks."""

from boostbp.files.parts import is_dataset
from boostbp.files.reading import chunks, columns_like, first_rows, labels_of, numbers_of, read, size_in_float64
from boostbp.files.tables import ColumnRoles, TableFiles, open_table

__all__ = [
    "ColumnRoles",
    "TableFiles",
    "chunks",
    "columns_like",
    "first_rows",
    "is_dataset",
    "labels_of",
    "numbers_of",
    "open_table",
    "read",
    "size_in_float64",
]
