"""Comparisons of models, as tables and HTML pages."""
