"""What an index and a source distribution get of the project."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(not (ROOT / "pyproject.toml").exists(), reason="needs the project's files")


def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_a_source_distribution_holds_what_tests_and_documents_need():
    included = project()["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    imported = {
        name
        for path in (ROOT / "tests").rglob("*.py")
        for name in re.findall(r"^\s*(?:from|import) (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
        if (ROOT / name).is_dir()
    }
    assert {"benchmarks", "boostbp", "examples"} <= imported
    documents = {path.name for path in ROOT.iterdir() if path.suffix in (".md", ".cff")} | {"LICENSE"}
    assert {f"/{name}" for name in imported | documents} <= set(included)
    assert all((ROOT / name.strip("/")).exists() for name in included)


def test_an_index_shows_a_readme_without_links_to_files():
    hook = project()["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
    text = "".join(
        (ROOT / part["path"]).read_text(encoding="utf-8") if "path" in part else part["text"]
        for part in hook["fragments"]
    )
    assert re.search(r"\]\((?!https?://)", text)
    for step in hook["substitutions"]:
        text = re.sub(step["pattern"], step["replacement"], text)
    assert re.findall(r"\]\((?!https?://)[^)]*\)", text) == []
    assert "![" not in text
    assert "guide (`docs/guide.md`)" in text.lower()


def test_authors_are_those_of_the_citation():
    [author] = project()["project"]["authors"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"  - name: {author['name']}\n" in citation
    assert all(f"url: {url}\n" in citation for url in project()["project"]["urls"].values())
