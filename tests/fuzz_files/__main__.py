"""Damage files in child processes and print figures: ``python -m tests.fuzz_files --cases 20000 --seed 0``.

Each case must end in ValueError or OSError, or in the predictions of the intact file if the damage left alone what they
are computed from; no child may die by a signal, be busy with a case for long, or need more than twice the memory
that the intact file needs.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz_files.corpus import Item, items, write_all
from tests.fuzz_files.damage import damaged
from tests.support.child_cases import report, run_all

SECONDS = 60  # longest time for one case: some milliseconds, on a busy machine more
ROOM = 16 << 20  # bytes that allocators, not the file, decide about
CAP = 4 << 30  # bytes of address space beyond what a child has when it begins
HAS_TORCH = importlib.util.find_spec("torch") is not None


def main(argv: Sequence[str] | None = None) -> int:
    """Parse the arguments; run some cases here, or all in children."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz_files", description=__doc__)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--folder", type=Path, default=None, help="of the intact files; marks a child")
    options = parser.parse_args(argv)
    numbers = range(options.first, options.cases)
    if options.folder is not None:
        for line in run(options.folder, numbers, options.seed):
            print(line, flush=True)
        return 0
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        write_all(Path(folder), torch=HAS_TORCH)
        child = ["-m", "tests.fuzz_files", "--folder", folder, "--seed", str(options.seed)]
        outcomes, failures = run_all(child, numbers)
    print(report(outcomes, failures, time.perf_counter() - begun))
    return int(bool(failures))


def run(folder: Path, numbers: range, seed: int) -> Iterator[str]:
    """Some cases in this process; a line of JSON before and after each."""
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends the process, and the case with it
    kinds = items(torch=HAS_TORCH)
    data = {name: (folder / name).read_bytes() for name in kinds}
    path = folder / "damaged"
    intact = {name: _intact(item, path, data[name]) for name, item in kinds.items()}
    _cap_memory()
    for number in numbers:
        name = list(kinds)[number % len(kinds)]
        yield json.dumps({"case": number, "outcome": "begins"})
        signal.alarm(SECONDS)
        changed, numeric = damaged(data[name], (seed << 32) + number)
        outcome, why = _outcome(kinds[name], path, changed, intact[name], numeric)
        signal.alarm(0)
        yield json.dumps({"case": number, "outcome": outcome, "why": f"{name}: {why}"})


def _intact(item: Item, path: Path, data: bytes) -> tuple[list[Any], int]:
    """What an intact file says, and the memory that it takes; imported before."""
    for _ in range(2):
        path.write_bytes(data)
        before = _peak_from_now()
        found = item.use(path)
        needed = _peak() - before
    return found, needed


def _outcome(item: Item, path: Path, data: bytes, intact: tuple[list[Any], int], numeric: bool) -> tuple[str, str]:
    expected, needed = intact
    path.write_bytes(data)
    before = _peak_from_now()
    try:
        found = item.use(path)
        outcome = "read"
    except (ValueError, OSError, FloatingPointError) as error:
        if isinstance(error, FloatingPointError) and not numeric:
            return "failure", traceback.format_exc()[-2000:]
        outcome, found = "refused", []
    except BaseException:
        return "failure", traceback.format_exc()[-2000:]
    taken = _peak() - before
    if taken > 2 * needed + ROOM:
        return "failure", f"took {taken >> 20} MB, the intact file {needed >> 20}"
    if outcome == "read" and not _same(found, expected):
        return ("changed", "") if numeric else ("failure", "other predictions")
    return outcome, ""


def _same(found: list[Any], expected: list[Any]) -> bool:
    pairs = zip(map(np.asarray, found), map(np.asarray, expected), strict=True)
    return all(a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in pairs)


def _peak_from_now() -> int:
    """Forget the largest size that this process ever had, and tell its size."""
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    return _peak()


def _peak() -> int:
    """Largest resident size since `_peak_from_now`, in bytes."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition("VmHWM:")[2].split()[0]) << 10


def _cap_memory() -> None:
    import resource  # which Windows has not

    size = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + CAP, size + CAP))


if __name__ == "__main__":
    sys.exit(main())
