"""Failures that look like the package's own: of functions of one of its modules, not of a test's."""

from __future__ import annotations

from types import FunctionType


def _raising(*args, **kwargs):
    if condition(*args):  # noqa: F821
        raise type(error)(*error.args)  # noqa: F821  # one with a traceback of its own
    return original(*args, **kwargs)  # noqa: F821


def failing(error, original, *, when=lambda *args: True, module="boostbp.ensemble"):
    """A function as `original` that raises an error where ``when(*args)``, as if it stood in a module."""
    names = {"__name__": module, "error": error, "condition": when, "original": original}
    return FunctionType(_raising.__code__, names)
