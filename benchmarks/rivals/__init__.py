"""Models that the deep ones are measured against, with the same care: their training, search and search spaces."""
