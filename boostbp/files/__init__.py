"""Tables in CSV and Parquet files, or in folders of such files, read whole or in chunks."""

from boostbp.files.reading import chunks, columns_like, labels_of, numbers_of, read, read_beside
from boostbp.files.tables import Columns, Table, open_table

__all__ = [
    "Columns",
    "Table",
    "chunks",
    "columns_like",
    "labels_of",
    "numbers_of",
    "open_table",
    "read",
    "read_beside",
]
