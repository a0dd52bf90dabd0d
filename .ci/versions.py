"""Run the core of the tests on the oldest and the newest versions that are supported, and print a table.

python .ci/versions.py [oldest] [newest] [--python PATH ...]

Oldest: every floor of pyproject.toml as it stands there. Newest: whatever the package index has. Each in a fresh
environment of each Python: those from 3.11 on that are found, or those that are given. Needs a package index.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ("python3.11", "python3.12", "python3.13", "python3.14")
SHOWN = ("lightgbm", "xgboost", "numpy", "scikit-learn", "scipy", "narwhals", "pandas", "polars", "pyarrow")
CORE = (
    "tests/backends/conformance/test_backend_trial.py",
    "tests/backends/conformance/test_duties.py",
    "tests/backends/test_leaf_of.py",
    "tests/backends/test_lightgbm_params.py",
    "tests/backends/test_native_params.py",
    "tests/backends/test_sklearn.py",
    "tests/estimators/test_tables.py",
    "tests/estimators/test_extremes.py",
    "tests/inputs",
    "tests/runtime/test_archive.py",
    # These call the command line, whose oldest typer warns of what the newest click deprecates.
    "--ignore=tests/inputs/files",
    "--ignore=tests/inputs/test_conversions.py",
)


def requirements(age: str) -> list[str]:
    """What to install: run-time packages, and those that the core tests need."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    tests = [one for one in extras["test"] if one.startswith(("hypothesis", "pytest>"))]
    names = [*project["dependencies"], *extras["xgboost"], *extras["frames"], *tests]
    return names if age == "newest" else [re.sub(r">=([\w.]+)", r"==\1", name) for name in names]


def run(*command: str | Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run a command quietly."""
    return subprocess.run(list(map(str, command)), cwd=cwd, capture_output=True, text=True, errors="backslashreplace")


def check(python: str, age: str) -> tuple[str, str]:
    """Versions that were installed, and what the tests said."""
    with tempfile.TemporaryDirectory() as folder:
        inside = Path(folder, "Scripts" if sys.platform == "win32" else "bin", "python")
        pip = (inside, "-m", "pip", "--disable-pip-version-check")
        # Together, or the resolver of a later line may undo an earlier one.
        for step in (
            (python, "-m", "venv", folder),
            (*pip, "install", "--quiet", "--only-binary", ":all:", *requirements(age)),
            (*pip, "install", "--quiet", "--no-deps", ROOT),
        ):
            done = run(*step)
            if done.returncode:
                return "", "not installed: " + " ".join(done.stderr.split())[-300:]
        listed = dict(line.split("==") for line in run(*pip, "freeze").stdout.split() if "==" in line)
        listed["xgboost"] = listed.get("xgboost", listed.get("xgboost-cpu", ""))
        tests = run(inside, "-m", "pytest", "-q", "-p", "no:cacheprovider", *CORE)
        if tests.returncode:
            print(tests.stdout[-5000:], tests.stderr[-2000:], file=sys.stderr)
        last = (tests.stdout.splitlines() or ["no test ran"])[-1].strip("= ")
        return ", ".join(f"{name} {listed.get(name, '-')}" for name in SHOWN), last


def main() -> int:
    """Check every pair of a Python and an age."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ages", nargs="*", metavar="age", help="oldest, newest; both if none is given")
    parser.add_argument("--python", nargs="+", default=PYTHONS, metavar="PATH")
    options = parser.parse_args()
    failed = False
    print("| Python | versions | core tests |\n|---|---|---|", flush=True)
    for python in options.python:
        found = run(python, "--version") if shutil.which(python) else None
        if found is None or found.returncode:
            print(f"| {python} | | not installed on this machine |", flush=True)
            continue
        for age in options.ages or ("oldest", "newest"):
            versions, outcome = check(python, age)
            failed |= not re.match(r"\d+ passed", outcome)
            print(f"| {found.stdout.split()[-1]} | {age}: {versions} | {outcome} |", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
