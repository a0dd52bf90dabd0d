"""Build the wheels of all systems, by zig's C compiler, and try that of this one.

python .ci/wheels.py [--to FOLDER]

Each wheel is built in one fresh environment, from the files of this checkout. The one for this system is installed into
another environment and predicts. Needs a package index.
"""

from __future__ import annotations

import argparse
import os
import platform
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
assert sys.prefix in boostbp.__file__, boostbp.__file__
X = np.random.default_rng(0).normal(size=(300, 4))
model = boostbp.BoostBPRegressor(quality=1, n_jobs=1).fit(X, X[:, 0])
print(f"{model.score(X, X[:, 0]):.3f}")
"""


def environment(folder: Path, *packages: str) -> Path:
    """Return the interpreter of a fresh environment with packages."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages], check=True)
    return python


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


def main() -> None:
    """Build all wheels and try one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=Path, help="folder that keeps the wheels")
    options = parser.parse_args()
    requires = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    with tempfile.TemporaryDirectory() as work:
        to = options.to.resolve() if options.to else Path(work, "wheels")
        to.mkdir(parents=True, exist_ok=True)
        python = environment(Path(work, "build"), *requires, "ziglang")
        wheels = {target: build(python, target, to) for target in TARGETS}
        for wheel in wheels.values():
            print(f"{wheel.name:60} {wheel.stat().st_size / 1e6:.1f} MB", flush=True)
        own = f"{platform.machine()}-linux-gnu.2.28" if platform.libc_ver()[0] == "glibc" else None
        if own in wheels:
            python = environment(Path(work, "trial"), str(wheels[own]))
            subprocess.run([python, "-c", TRIAL], check=True, cwd=work)


if __name__ == "__main__":
    main()
