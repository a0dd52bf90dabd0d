"""check_backend: whether a backend keeps its duties, and can do what it says that it can."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp.backends.base import Backend, Floats, Growth
from boostbp.backends.capabilities import capabilities_of
from boostbp.backends.conformance.data import adversarial, gradient, mixed
from boostbp.backends.conformance.declared import CAPABILITIES
from boostbp.backends.conformance.duties import DUTIES
from boostbp.backends.conformance.trial import ConformanceError, Trial, demand

__all__ = ["ConformanceError", "check_backend", "duties_of"]

Duty = Callable[[], None]
LeafOf = Callable[[Any, Floats], NDArray[Any]]


def check_backend(backend: str | Backend, *, leaf_of: LeafOf | None = None) -> None:
    """Check that a backend keeps its duties, and can do what its capabilities say, on small tables.

    It says nothing of speed, and takes some seconds.

    Parameters
    ----------
    backend : str or Backend
        A name, or an object with ``bind(table, growth)``; see `boostbp.backends.base.Backend`.
    leaf_of : callable, optional
        ``leaf_of(grower, rows) -> (rows,)``: the library's own leaf of each row under the tree that `grower` grew last,
        of one column, numbered as in `Tree`. With it, rows that are easily sent another way are tried too: on
        thresholds, beside them in float32 and float64, missing ones, categories never seen.

    Raises
    ------
    ConformanceError
        An AssertionError that tells which duty is broken and how to mend it.
    TypeError, ValueError
        If it is no backend at all.

    Examples
    --------
    >>> import boostbp
    >>> boostbp.check_backend("sklearn")
    """
    who = f"backend {backend if isinstance(backend, str) else type(backend).__name__}"
    for name, duty in duties_of(backend, leaf_of=leaf_of).items():
        try:
            duty()
        except ConformanceError as error:
            raise ConformanceError(f"{who}, {name}: {error}") from error
        except Exception as error:
            raise ConformanceError(
                f"{who}, {name}: it raised {type(error).__name__}: {error} Every backend must bear what "
                "is tried here; see the traceback."
            ) from error


def duties_of(backend: str | Backend, *, leaf_of: LeafOf | None = None) -> dict[str, Duty]:
    """What a backend must keep, in words, and a check of each, such as for a test of each.

    Parameters are those of `check_backend`.
    """
    from boostbp.backends import load

    trial = Trial(load(backend))
    able = capabilities_of(trial.backend)
    duties: dict[str, Duty] = {_words(duty): lambda duty=duty: duty(trial) for duty in DUTIES}  # type: ignore[misc]
    for capability in CAPABILITIES:
        if getattr(able, word := capability.__name__):
            duties[f"capability {word!r}"] = lambda word=word, try_it=capability: _declared(trial, word, try_it)  # type: ignore[misc]
    if leaf_of is not None:
        duties["routes rows as the library does"] = lambda: _routes(trial, leaf_of)
    return duties


def _words(duty: Callable[..., None]) -> str:
    return duty.__name__.replace("_", " ")


def _declared(trial: Trial, word: str, try_it: Callable[[Trial], None]) -> None:
    with trial.declared(word):
        try_it(trial)


def _routes(trial: Trial, leaf_of: LeafOf) -> None:
    able = trial.able
    kinds: list[tuple[int, ...]] = [(), (3, 40)] if able.categories else [()]
    for seed, categories in enumerate([*kinds, *kinds]):
        rng = np.random.default_rng(seed)
        table = mixed(rng, 1500, categories=categories, missing=able.missing)
        grad = gradient(rng, table)
        grower = trial.fork(table, Growth(max_depth=6, min_samples_leaf=5))
        [tree] = grower.grow(grad, np.ones_like(grad))
        rows = adversarial(tree, table, rng, missing=able.missing)
        wrong = np.flatnonzero(tree.leaf_of(rows) != leaf_of(grower, rows))
        demand(
            not len(wrong),
            f"Tree.leaf_of sends {len(wrong)} of {len(rows)} rows to other leaves than the library; the first is "
            f"{rows[wrong[:1]].tolist()}.",
            "Compare its way through tree.feature, threshold, missing_left and the category sets.",
        )
