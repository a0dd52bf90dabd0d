"""Compile the core, `boostbp/core/*.c`, to one shared library beside it.

A build by pip runs this as a hook. In a checkout, ``python hatch_build.py`` does the same by hand. The compiler is
``CC`` if set, else `cc`, `gcc` or `clang`, else that of the package ziglang, which a build by pip then installs.
``CFLAGS`` are added to its flags. ``BOOSTBP_TARGET`` names another system as zig does, such as
``aarch64-linux-gnu.2.28``.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import runpy
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent
CORE = ROOT / "boostbp" / "core"
# Sums keep the order in which they are written: the same bits on every processor.
# Without traps, which change no value, loops with a choice are vectorised.
FLAGS = ["-std=gnu11", "-O3", "-fPIC", "-shared", "-fvisibility=hidden", "-fno-fast-math", "-ffp-contract=off"]
FLAGS += ["-fno-trapping-math"]
WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-Wno-sign-conversion", "-Wno-unused-parameter"]
# What wheels are built for: the target as zig names it, the tag of the wheel, the suffix of the library.
TARGETS = {
    "x86_64-linux-gnu.2.28": ("manylinux_2_28_x86_64", ".so"),
    "aarch64-linux-gnu.2.28": ("manylinux_2_28_aarch64", ".so"),
    "x86_64-linux-musl": ("musllinux_1_2_x86_64", ".so"),
    "aarch64-linux-musl": ("musllinux_1_2_aarch64", ".so"),
    "x86_64-macos.11.0": ("macosx_11_0_x86_64", ".dylib"),
    "aarch64-macos.11.0": ("macosx_11_0_arm64", ".dylib"),
    "x86_64-windows-gnu": ("win_amd64", ".dll"),
}


def words(text: str, *, windows: bool = sys.platform == "win32") -> list[str]:
    """Return the words of a command; on Windows a backslash is part of a path."""
    return [word.strip('"') for word in shlex.split(text, posix=False)] if windows else shlex.split(text)


def compiler() -> list[str] | None:
    """Return the command of a C compiler; None if there is none."""
    if os.environ.get("CC"):
        return words(os.environ["CC"])
    if sys.platform != "win32":  # there, cc and gcc may be for other run-time libraries
        for name in ("cc", "gcc", "clang"):
            if shutil.which(name):
                return [name]
    return zig()


def zig() -> list[str] | None:
    """Return the command of zig's C compiler, from the package ziglang; None if it is not installed."""
    if not importlib.util.find_spec("ziglang"):
        return None
    # -s: without debug information, which would be most of a library
    return [sys.executable, "-m", "ziglang", "cc", "-mcpu=baseline", "-s"]


def library_name(target: str = "") -> str:
    """Return the name of the library for a target; for this system if there is none."""
    suffix = TARGETS[target][1] if target else {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
    return f"lib_boostbp{suffix}"


def build(target: str = "", flags: list[str] | None = None, to: Path | None = None) -> Path:
    """Compile the core and return the path of the library.

    Raises
    ------
    RuntimeError
        If there is no compiler, or it fails.
    """
    command = zig() if target else compiler()
    if command is None:
        raise RuntimeError(
            "boostbp needs a C compiler to be built: install gcc or clang, set CC, or `pip install ziglang`."
        )
    path = (to or CORE) / library_name(target)
    command = [*command, *(["-target", target] if target else []), *FLAGS, *WARNINGS]
    command += [*words(os.environ.get("CFLAGS", "")), *(flags or [])]
    sources = [str(source) for source in sorted(CORE.glob("*.c"))]
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:  # where a linker leaves other files, too
        made, stamp = Path(folder) / path.name, Path(folder) / "stamp.c"
        stamp.write_text(
            f'#include "boostbp.h"\nAPI const uint32_t boostbp_stamp = {stamp_of_sources()}u;\n', encoding="ascii"
        )
        command += ["-o", str(made), f"-I{CORE}", *sources, str(stamp), "-lm"]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="backslashreplace")
        if done.returncode:
            raise RuntimeError(f"The core of boostbp cannot be compiled by {shlex.join(command)}:\n{done.stderr}")
        sys.stderr.write(done.stderr)
        os.replace(made, path)
    return path


def stamp_of_sources() -> int:
    """Return the stamp by which the package knows a library of its own sources."""
    return int(runpy.run_path(str(CORE / "stamp.py"))["stamp"]())


def own_platform() -> str:
    """Return the tag of a wheel for this system."""
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")


def main() -> None:
    """Compile the core in this checkout."""
    parser = argparse.ArgumentParser(description="Compile the core of boostbp in this checkout.")
    parser.add_argument("--target", default="", choices=["", *TARGETS], help="for another system, by zig")
    parser.add_argument("--to", type=Path, help="folder of the library (default: boostbp/core)")
    parser.add_argument("flags", nargs="*", help="more flags for the compiler, after --")
    options = parser.parse_args()
    print(build(options.target, options.flags, options.to))


try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run by hand
    pass
else:

    class CoreBuildHook(BuildHookInterface):  # type: ignore[type-arg, misc]
        """Compile the core before its wheel is packed, or for an editable installation."""

        def dependencies(self) -> list[str]:
            """Return what a build needs beside hatchling: a compiler, if the system has none.

            Where ziglang cannot be had either, pip ends with the words of the requirement: the extra, which the package
            does not have, tells the cure.
            """
            if os.environ.get("BOOSTBP_TARGET"):
                return ["ziglang"]
            return ["ziglang[or-install-gcc-or-clang]"] if compiler() is None else []

        def initialize(self, version: str, build_data: dict[str, Any]) -> None:
            """Compile, and mark the wheel as one for this system and any Python."""
            target = os.environ.get("BOOSTBP_TARGET", "")
            if target and target not in TARGETS:
                raise RuntimeError(f"BOOSTBP_TARGET={target!r} is not one of {', '.join(TARGETS)}.")
            self.folder = tempfile.TemporaryDirectory()  # a library for another system stays out of the checkout
            library = build(target, to=Path(self.folder.name) if target else None)
            build_data["pure_python"] = False
            build_data["force_include"][str(library)] = f"boostbp/core/{library.name}"
            build_data["tag"] = f"py3-none-{TARGETS[target][0] if target else own_platform()}"

        def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
            """Remove what was compiled for another system."""
            self.folder.cleanup()


if __name__ == "__main__":
    main()
