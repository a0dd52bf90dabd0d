"""A comparison as one HTML file: styles, scripts and pictures inside, nothing from the network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from boostbp.atomic_write import atomic_write, check_writable
from boostbp.extras import require
from boostbp.report.pictures import groups
from boostbp.report.result import Result
from boostbp.report.table import columns
from boostbp.versions import versions


@dataclass(frozen=True, slots=True)
class Study:
    """A comparison on one data set."""

    name: str  # of the data set
    facts: str  # task and size, in words
    results: Sequence[Result]  # with evidence where there are to be pictures


def check(path: Path) -> None:
    """Find out before a long comparison whether its report can be written.

    Raises ImportError if a package of the extra ``report`` is not installed, and OSError if there is no such folder, or
    no file can be written there.
    """
    for package in ("jinja2", "matplotlib"):
        require(package, extra="report", what="an HTML report")
    check_writable(path)


def write(path: Path, studies: Sequence[Study], settings: Mapping[str, str]) -> None:
    """Write a report, atomically; `settings` is what the comparison was told, for people."""
    jinja2 = require("jinja2", extra="report", what="an HTML report")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("boostbp.report", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    page = environment.get_template("report.html").render(
        studies=[(study, columns(study.results), groups(study.results)) for study in studies],
        settings=settings,
        machine=versions(),
        now=datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
    )
    with atomic_write(path) as part:
        part.write_text(page, encoding="utf-8")
