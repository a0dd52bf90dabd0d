"""What a measurement was taken on: versions and machine."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version

__all__ = ["machine"]

_PACKAGES = ("boostbp", "lightgbm", "xgboost", "xgboost-cpu", "numba", "numpy", "scikit-learn")


def machine() -> dict[str, str]:
    """Versions of Python and of the packages that are there, processor and number of cores."""
    found = {"python": platform.python_version(), "system": platform.system(), "processor": platform.machine()}
    found["cores"] = str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count())
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
