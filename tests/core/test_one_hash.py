"""The core computes the same bits on arm64, which an emulator runs, as on this processor."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import hatch_build

SOURCE = Path(__file__).with_name("one_hash.c")
CROSS, EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64"


def hash_by(compiler: str, folder: Path, *emulator: str) -> str:
    program = folder / "one_hash"
    flags = [flag for flag in hatch_build.FLAGS if flag not in ("-shared", "-fPIC")]
    sources = [SOURCE, *hatch_build.CORE.glob("*.c")]
    command = [compiler, *flags, "-static", f"-I{hatch_build.CORE}", *sources, "-o", program, "-lm"]
    subprocess.run(command, check=True)
    return subprocess.run([*emulator, program], check=True, capture_output=True, text=True).stdout


@pytest.mark.slow
@pytest.mark.skipif(
    not all(map(shutil.which, ("gcc", CROSS, EMULATOR))), reason="needs gcc, gcc-aarch64-linux-gnu and qemu-user"
)
def test_arm64_gives_the_same_bits(tmp_path):
    assert hash_by(CROSS, tmp_path, EMULATOR) == hash_by("gcc", tmp_path)
