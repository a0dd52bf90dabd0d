"""Fit random data of every kind in child processes: ``python -m tests.fuzz --cases 10000``.

Each case must end in a finite model, or in an error that names an argument. Hypothesis draws a hundred cases for each
number, and shrinks one that fails.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis.configuration import set_hypothesis_home_dir

from tests.fuzz.cases import Case, cases
from tests.fuzz.check import outcome_of
from tests.support.child_cases import Note, Program, main

BATCH = 100
SECONDS = 90_000  # longest time for a batch: a case of 10^5 rows takes some seconds, on a busy machine minutes


def begin(folder: Path, n_cases: int, seed: int) -> Callable[[int, Note], Counter[str]]:
    """Return what tries the cases of a number."""
    set_hypothesis_home_dir(folder)  # or it would write to the working directory

    def attempt(number: int, note: Note) -> Counter[str]:
        outcomes: Counter[str] = Counter()

        @seeded((seed << 32) + number)
        @settings(
            max_examples=min(n_cases, BATCH),
            database=None,
            deadline=None,
            derandomize=False,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate, Phase.shrink],
        )
        @given(cases())
        def check(case: Case) -> None:
            note(case)
            outcomes[outcome_of(case)] += 1

        check()
        return outcomes

    return attempt


PROGRAM = Program("tests.fuzz", __doc__, 1000, begin, SECONDS, numbers=lambda n_cases: -(-n_cases // BATCH))

if __name__ == "__main__":
    sys.exit(main(PROGRAM))
