"""Files of JSON lines that survive the death of who writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from boostbp.runtime.atomic_write import atomic_write

__all__ = ["read"]


def read(path: Path) -> list[dict[str, Any]]:
    """All lines of a file, none if it is not there; what a killed process left of the last one is cut off."""
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        with atomic_write(path) as part:
            part.write_text(whole, encoding="utf-8")
    return [json.loads(line) for line in whole.splitlines()]
