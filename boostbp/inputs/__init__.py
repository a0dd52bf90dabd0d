"""Conversion of users' arrays, tables and sparse matrices to the input of growers."""
