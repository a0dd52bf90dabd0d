"""What users hold (arrays, tables, sparse matrices) turned into what growers bin."""
