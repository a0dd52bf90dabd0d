"""What a measurement was taken on: versions, machine, and the code itself."""

from __future__ import annotations

import hashlib
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from boostbp.trees import threads

__all__ = ["machine", "source"]

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


@cache
def source() -> str:
    """A name for the code of this package: another one where a line of it is another."""
    folder, digest = Path(__file__).parents[1], hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]
