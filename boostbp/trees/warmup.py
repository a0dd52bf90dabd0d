"""Warm-up: compile all loops, and keep them on the disk, before a user waits for them."""

from __future__ import annotations

import time
from dataclasses import dataclass

from boostbp.trees import kernels
from boostbp.trees.kernels.entry import Loop

# Loops that others call come first: each is compiled once, and is part of those that call it.
PARTS: dict[str, tuple[Loop, ...]] = {
    "predict": (kernels.predict_flat, kernels.predict_short),
}


@dataclass(frozen=True, slots=True)
class WarmUp:
    """What a warm-up did.

    Attributes
    ----------
    seconds : dict
        Seconds of each part of the package, such as "predict".
    compiled : int
        Number of loops that were compiled now; the others were there already.
    folder : str or None
        Folder in which they are kept for other processes; None if no folder can be written.
    """

    seconds: dict[str, float]
    compiled: int
    folder: str | None

    def __str__(self) -> str:
        parts = ", ".join(f"{part} {seconds:.1f} s" for part, seconds in self.seconds.items())
        kept_in = f"kept in {self.folder}" if self.folder else "kept nowhere: set NUMBA_CACHE_DIR to a folder"
        return f"{self.compiled} loops compiled in {sum(self.seconds.values()):.1f} s ({parts}); {kept_in}."


def warmup(*, verbose: int = 0) -> WarmUp:
    """Compile all loops that fits and predictions use, and keep them for later processes.

    Otherwise the first prediction compiles for seconds, and the first fit for up to half a minute. Compiled code is
    kept on the disk, so this is done once on a machine for each release of the package, and later processes load it in
    a fraction of a second. Call it when the image of a container is built, before a service takes requests, or before
    fits are timed. ``boostbp warm-up`` does it from the command line.

    Parameters
    ----------
    verbose : int
        1: a progress bar.

    Returns
    -------
    WarmUp
        Seconds of each part, how many loops were compiled, and where they are kept.

    Examples
    --------
    >>> import boostbp
    >>> report = boostbp.warmup()
    >>> report.folder  # doctest: +SKIP
    '/usr/lib/python3/site-packages/boostbp/trees/kernels/__pycache__'
    """
    from tqdm import tqdm

    seconds = {}
    before = _n_compiled()
    with tqdm(total=len(_loops()), desc="boostbp", unit="loop", disable=verbose != 1) as bar:
        for part, loops in PARTS.items():
            begun = time.perf_counter()
            for loop in loops:
                bar.set_postfix_str(f"{part}: {loop.__name__}")
                loop.compile()
                bar.update()
            seconds[part] = time.perf_counter() - begun
    return WarmUp(seconds, _n_compiled() - before, _loops()[0].dispatcher.stats.cache_path)


def _loops() -> list[Loop]:
    return [loop for loops in PARTS.values() for loop in loops]


def _n_compiled() -> int:
    return sum(sum(loop.dispatcher.stats.cache_misses.values()) for loop in _loops())
