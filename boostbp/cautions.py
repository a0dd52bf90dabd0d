"""Warnings, which point to the line of the user's that led to them."""

from __future__ import annotations

import sys
import warnings

# what lies between: this package, and what wraps its methods or runs them
_BETWEEN = {"boostbp", "concurrent", "contextlib", "functools", "joblib", "sklearn", "threading"}


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the innermost call from outside this package, whatever wraps its methods."""
    level, frame = 1, sys._getframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _BETWEEN:
        level, frame = level + 1, frame.f_back  # type: ignore[assignment]
    warnings.warn(message, category, stacklevel=level)
