"""What an index and a source distribution get of the project."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from itertools import chain
from pathlib import Path

import pytest
import yaml

import boostbp
from hatch_build import library_name

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
    assert "guide (`docs/guide/index.md`)" in text.lower()


def test_authors_are_those_of_the_citation():
    [author] = project()["project"]["authors"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"  - name: {author['name']}\n" in citation
    urls = project()["project"]["urls"]
    assert f"repository-code: {urls['Repository']}\n" in citation
    assert f"url: {urls['Paper']}\n" in citation


def test_each_python_that_is_named_is_tested():
    tests = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text(encoding="utf-8"))
    tested = tests["jobs"]["tests"]["strategy"]["matrix"]["python"]
    lead = "Programming Language :: Python :: "
    named = [name.removeprefix(lead) for name in project()["project"]["classifiers"] if name.startswith(lead + "3.")]
    assert tested == named
    assert project()["project"]["requires-python"] == f">={named[0]}"


def test_the_conda_recipe_asks_for_what_the_package_asks_for():
    recipe = yaml.safe_load((ROOT / "packaging/conda/recipe.yaml").read_text(encoding="utf-8"))
    needs = recipe["requirements"]
    declared = project()["project"]
    assert recipe["about"]["summary"] == declared["description"]
    assert recipe["context"]["version"] == boostbp.__version__
    assert recipe["context"]["python_min"] == declared["requires-python"].removeprefix(">=")
    assert set(needs["run"][1:]) == floors(declared["dependencies"])
    assert set(project()["build-system"]["requires"]) == {line.replace(" ", "") for line in needs["host"][2:]}
    extras = chain.from_iterable(declared["optional-dependencies"].values())
    optional = floors(line.replace("-cpu", "") for line in extras if not line.startswith("boostbp["))
    for here, there in {"matplotlib": "matplotlib-base", "torch": "pytorch"}.items():
        optional = {line.replace(f"{here} ", f"{there} ") for line in optional}
    assert set(needs["run_constraints"]) <= optional


def floors(lines):
    """The lowest version of each requirement, in conda's spelling."""
    lowest = {}
    for line in lines:
        name, floor = re.match(r"([\w.-]+)(?:\[[^]]*\])?(>=[\w.]+)", line).groups()
        lowest.setdefault(name, floor)  # the first one is that of the oldest Python
    return {f"{name} {floor}" for name, floor in lowest.items()}


def test_the_paper_cites_what_its_bibliography_has():
    cited = set(re.findall(r"@(\w+)", (ROOT / "paper/paper.md").read_text(encoding="utf-8")))
    listed = re.findall(r"^@\w+\{(\w+),", (ROOT / "paper/paper.bib").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(cited) == sorted(listed)


@pytest.mark.slow
def test_what_is_built_holds_each_file_and_is_accepted_by_an_index(tmp_path):
    pytest.importorskip("build", reason="needs build and twine: pip install 'boostbp[dev]'")
    if not (ROOT / ".git").exists():
        pytest.skip("needs the repository")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    tracked = set(listed.split()) - {".pre-commit-config.yaml"}

    def run(*command):
        done = subprocess.run([sys.executable, "-m", *command], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]

    run("build", "--outdir", "dist", ROOT)  # the wheel is built from the source distribution
    [source], [wheel] = (list((tmp_path / "dist").glob(ending)) for ending in ("*.tar.gz", "*.whl"))
    run("twine", "check", "--strict", source, wheel)
    with tarfile.open(source) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert inside == tracked | {"PKG-INFO"}
    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if ".dist-info/" not in name}
        [metadata] = (name for name in archive.namelist() if name.endswith("/METADATA"))
        described = archive.read(metadata).decode()
    assert inside == {name for name in tracked if name.startswith("boostbp/")} | {f"boostbp/core/{library_name()}"}
    assert wheel.name.split("-")[2:4] == ["py3", "none"]
    assert "\nProject-URL: Repository, https://github.com/boostbp/boostbp\n" in described
    assert "](docs/" not in described
