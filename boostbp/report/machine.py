"""What a measurement was taken on: versions and machine."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from boostbp.trees import threads

__all__ = ["machine"]

_PACKAGES = ("boostbp", "lightgbm", "xgboost", "xgboost-cpu", "numba", "numpy", "scikit-learn", "torch")


def machine() -> dict[str, str]:
    """Versions of Python and of the packages that are there, processor and number of cores that may be used."""
    found = {"python": platform.python_version(), "system": platform.system(), "processor": platform.machine()}
    found["cores"] = str(threads.count(-1))
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
