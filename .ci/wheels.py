"""Build the wheels of all systems, by zig's C compiler, and try that of this one.

python .ci/wheels.py [--to FOLDER]
python .ci/wheels.py --try FOLDER

Each wheel is built in one fresh environment, from the files of this checkout. The one for this system is installed into
another environment and predicts; with ``--try``, one that was built before. Needs a package index.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from hatch_build import TARGETS, library_name  # noqa: E402

TRIAL = """
import pathlib, sys
import numpy as np
import boostbp
assert pathlib.Path(sys.prefix).resolve() in pathlib.Path(boostbp.__file__).resolve().parents, boostbp.__file__
X = np.random.default_rng(0).normal(size=(300, 4))
model = boostbp.BoostBPRegressor(quality=1, n_jobs=1).fit(X, X[:, 0])
print(f"{model.score(X, X[:, 0]):.3f}")
"""


def environment(folder: Path, *packages: str) -> Path:
    """Return the interpreter of a fresh environment with packages."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    install(python, *packages)
    return python


def install(python: Path, *packages: str) -> None:
    """Install packages, after options of pip."""
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages], check=True)


def build(python: Path, target: str, to: Path) -> Path:
    """Build one wheel, and check its name and that it holds the library of its system and no other."""
    before = set(to.glob("*.whl"))
    command = [python, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-build-isolation"]
    subprocess.run(
        [*command, "--no-deps", "-w", to, ROOT],
        check=True,
        env=os.environ | {"BOOSTBP_TARGET": target, "CFLAGS": "-Werror"},
        cwd=to,
    )
    [wheel] = set(to.glob("*.whl")) - before
    assert wheel.name.endswith(f"-py3-none-{TARGETS[target][0]}.whl"), wheel
    with zipfile.ZipFile(wheel) as archive:
        libraries = [name for name in archive.namelist() if "lib_boostbp" in name]
    assert libraries == [f"boostbp/core/{library_name(target)}"], libraries
    return wheel


def build_all(to: Path, work: Path) -> None:
    """Build all wheels into a folder."""
    requires = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    python = environment(work / "build", *requires, "ziglang")
    for target in TARGETS:
        wheel = build(python, target, to)
        print(f"{wheel.name:60} {wheel.stat().st_size / 1e6:.1f} MB", flush=True)


def main() -> None:
    """Build all wheels, unless they are there, and try one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=Path, help="folder that keeps the wheels")
    parser.add_argument(
        "--try", type=Path, dest="built", metavar="FOLDER", help="folder of wheels, instead of building"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        wheels = (options.built or options.to or work / "wheels").resolve()
        if not options.built:
            wheels.mkdir(parents=True, exist_ok=True)
            build_all(wheels, work)
        python = environment(work / "trial", "--no-index", "--no-deps", f"--find-links={wheels}", "boostbp")
        install(python, "boostbp")  # what it needs: the wheel itself is there
        subprocess.run([python, "-c", TRIAL], check=True, cwd=work)


if __name__ == "__main__":
    main()
