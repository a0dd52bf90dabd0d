"""Cards: trees that a library grows on a graphics card, where a native parameter asks for one.

Gradients go to the library in float32 and leaves are fitted on the CPU, as ever. No test of this package runs on a
card: they check what the library would be told.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from threading import RLock
from typing import Any

from boostbp.trees import forks

CURE = (
    "Leave the device out to grow trees on the CPU, or use a build of the library for this device, on a machine that "
    "has one."
)
_free: Any = forks.through(RLock())


def on_card(params: Mapping[str, Any]) -> bool:
    """Whether native parameters ask for another device than the CPU."""
    return any(params.get(name, "cpu") != "cpu" for name in ("device", "device_type"))


def turn(params: Mapping[str, Any]) -> AbstractContextManager[Any]:
    """Wait until no other grower is on a card.

    One grower fills a card, and those of one input share its bins, which go to the card when they are first used.
    """
    return _free if on_card(params) else nullcontext()
