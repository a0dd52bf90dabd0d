"""Versions of this package and its dependencies."""

from __future__ import annotations

import platform
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version

from boostbp.runtime import threads

__version__ = "0.2.0"
_PACKAGES = (
    "lightgbm", "xgboost", "xgboost-cpu", "numpy", "scipy", "scikit-learn", "pandas", "polars",
    "pyarrow", "torch",
)  # fmt: skip


def versions() -> dict[str, str]:
    """Return the versions of Python and installed packages, system, processor and usable cores."""
    system = {"system": platform.system(), "processor": platform.machine(), "cores": str(threads.count(-1))}
    listed = {"boostbp": __version__, "python": platform.python_version(), **system}
    for package in _PACKAGES:
        with suppress(PackageNotFoundError):
            listed[package] = version(package)
    return listed


def show_versions() -> None:
    """Print `versions`, for bug reports."""
    for name, value in versions().items():
        print(f"{name}: {value}")
