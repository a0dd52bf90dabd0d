"""Comparisons of models on one table: the same folds for all, paired differences, a verdict, an HTML page."""
