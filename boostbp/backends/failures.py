"""Failures that a table may cause: numerical errors, and errors of a library."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Mapping
from typing import TypeVar

import numpy as np

from boostbp.runtime.group import workers
from boostbp.runtime.messages import is_of_user

T = TypeVar("T")

_LIBRARY_ERRORS = {"lightgbm.basic": "LightGBMError", "xgboost.core": "XGBoostError"}


def attempted(work: Callable[[], T]) -> T | Exception:
    """Return the result of `work`, or its error if a table may have caused it; any other error is raised."""
    try:
        return work()
    except Exception as error:
        return numerical(error)


def numerical(error: Exception) -> Exception:
    """Return an error that a table may have caused, without its frames; raise any other error."""
    if not is_numerical(error):
        raise error
    traceback.clear_frames(error.__traceback__)  # they hold all rows
    return error


def is_numerical(error: BaseException) -> bool:
    """Return whether a table may have caused an error, rather than the user's code."""
    kinds: list[type[BaseException]] = [np.linalg.LinAlgError, FloatingPointError]
    if workers().is_single:  # a library may fail on one worker only, while the others continue
        kinds += [getattr(sys.modules[name], kind) for name, kind in _LIBRARY_ERRORS.items() if name in sys.modules]
    return isinstance(error, tuple(kinds)) and not is_of_user(error)


def in_words(failed: Mapping[str, Exception]) -> tuple[str, ...]:
    """Return each failure as words: its name with its error."""
    return tuple(f"{name} ({type(error).__name__}: {error})" for name, error in failed.items())


def first_of(failed: Mapping[str, Exception]) -> Exception:
    """Return the first failure, with a note that lists all failures."""
    error = next(iter(failed.values()))
    error.add_note(f"Nothing could be trained: {'; '.join(in_words(failed))}.")
    return error
