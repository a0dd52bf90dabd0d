"""Compare exported models with predict in child processes: ``python -m tests.fuzz_exports --cases 1000 --seed 0``.

Each case is a random table and model. Its graph, served by onnxruntime with every level of optimization, and its
program, compiled, must give what predict gives, or the export must be refused for a reason that it names.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from tests.fuzz_exports.cases import case_of
from tests.fuzz_exports.check import outcome_of
from tests.support.child_cases import Note, Program, main


def begin(folder: Path, n_cases: int, seed: int) -> Callable[[int, Note], str]:
    """Return what tries the case of a number."""

    def attempt(number: int, note: Note) -> str:
        case = case_of(seed, number)
        note(case)
        return outcome_of(case, folder)

    return attempt


PROGRAM = Program("tests.fuzz_exports", __doc__, 200, begin, seconds=600)

if __name__ == "__main__":
    sys.exit(main(PROGRAM))
