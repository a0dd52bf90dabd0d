"""torch.compile: compiled models call tree layers as they are."""

from __future__ import annotations

import sys
from functools import wraps
from typing import Any, TypeVar

from boostbp.extras import require

torch: Any = require("torch", extra="torch", what="boostbp.torch")
C = TypeVar("C", bound=type)


def uncompiled_forward(cls: C) -> C:
    """Exclude the `forward` of a class from torch.compile: trees are compiled already, and it cannot trace NumPy code.

    ``torch.compiler.disable`` imports the compiler, which takes as long as importing torch, so it is applied only once
    the compiler is imported.
    """
    plain: Any = cls.forward  # type: ignore[attr-defined]
    disabled: list[Any] = []

    @wraps(plain)
    def forward(self: Any, x: Any) -> Any:
        if "torch._dynamo" not in sys.modules:
            return plain(self, x)
        if not disabled:
            disabled.append(torch.compiler.disable(plain))
        return disabled[0](self, x)

    cls.forward = forward  # type: ignore[attr-defined]
    return cls
