"""boostbp warm-up: compile everything once."""

from __future__ import annotations

from boostbp.cli.errors import one_line_errors, say
from boostbp.cli.options import Quiet


@one_line_errors
def warm_up(quiet: Quiet = False) -> None:
    """Compile all that fits and predictions use, so that no later call waits for it."""
    from boostbp.trees.warmup import warmup

    report = warmup(verbose=0 if quiet else 1)
    if not quiet:
        say(str(report))
