"""Walk every native parameter in child processes: ``python -m tests.fuzz_params --cases 20000 --seed 1``.

Each parameter is walked alone, with good, bad and absurd values; then come combinations, so many for each library.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from tests.fuzz_params.cases import BACKENDS, Case, combinations, walk
from tests.fuzz_params.check import outcome_of
from tests.support.child_cases import Note, Program, main

MEMORY = 2 << 30  # bytes that cases may take beyond what the libraries take


def begin(folder: Path, n_cases: int, seed: int) -> Callable[[int, Note], str]:
    """Return what tries the case of a number, with the libraries loaded before memory is limited."""
    for name in BACKENDS:
        outcome_of(Case(name, "network", {}))
    cases = [case for name in BACKENDS for case in walk(name)]
    cases += [case for name in BACKENDS for case in combinations(name, n_cases, seed)]

    def attempt(number: int, note: Note) -> str:
        note(cases[number])
        return outcome_of(cases[number])

    return attempt


def numbers(n_cases: int) -> int:
    """Return how many cases there are with so many combinations for each library."""
    return sum(n_cases + sum(1 for _ in walk(name)) for name in BACKENDS)


PROGRAM = Program("tests.fuzz_params", __doc__, 1000, begin, seconds=120, memory=MEMORY, numbers=numbers)

if __name__ == "__main__":
    sys.exit(main(PROGRAM))
