"""Conformance: the duties of a backend, each with a check on small tables, for `boostbp.check_backend`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp.backends.base import Backend, TreeParams
from boostbp.backends.capabilities import capabilities_of
from boostbp.backends.conformance.backend_trial import Trial, adversarial, demand, gradient, mixed
from boostbp.backends.conformance.declared import CAPABILITIES
from boostbp.backends.conformance.duties import DUTIES
from boostbp.floats import Floats

__all__ = ["LeafOf", "duties_of"]

Duty = Callable[[], None]
LeafOf = Callable[[Any, Floats], NDArray[Any]]


def duties_of(backend: str | Backend, *, leaf_of: LeafOf | None = None) -> dict[str, Duty]:
    """Return the duties of a backend by their names, each a check that raises `ConformanceError` if it is broken.

    Parameters are those of `boostbp.check_backend`.
    """
    from boostbp.backends import load

    trial = Trial(load(backend))
    able = capabilities_of(trial.backend)
    duties: dict[str, Duty] = {_words(duty): partial(duty, trial) for duty in DUTIES}
    for capability in CAPABILITIES:
        if getattr(able, word := capability.__name__):
            duties[f"capability {word!r}"] = partial(_declared, trial, word, capability)
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
        grower = trial.fork(table, TreeParams(max_depth=6, min_samples_leaf=5))
        [tree] = grower.grow(grad, np.ones_like(grad))
        rows = adversarial(tree, table, rng, missing=able.missing)
        wrong = np.flatnonzero(tree.leaf_of(rows) != leaf_of(grower, rows))
        demand(
            not len(wrong),
            f"Tree.leaf_of sends {len(wrong)} of {len(rows)} rows to other leaves than the library; the first is "
            f"{rows[wrong[:1]].tolist()}.",
            "Compare its way through tree.feature, threshold, missing_left and the category sets.",
        )
