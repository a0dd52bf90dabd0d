"""Errors about an input begin with the argument that it came in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def named_in_errors(source: str) -> Iterator[None]:
    """Let errors about an input begin with the argument that it came in."""
    try:
        yield
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{source}: {error}") from error
