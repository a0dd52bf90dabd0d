"""Tables in CSV and Parquet files, or in folders of such files, read whole or in chunks."""
