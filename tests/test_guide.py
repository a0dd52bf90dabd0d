"""The code of the user guide and of the pages for those who come from other libraries, page by page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
PAGES = [page for folder in ("guide", "coming_from") for page in sorted((DOCS / folder).glob("*.md"))]
OPTIONAL = ("catboost", "optuna", "pyarrow", "shap", "sksurv", "torch", "xgboost")


def code_of(page):
    """Return the blocks that run one after the other; those marked ``py`` need more than this machine."""
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("page", [page for page in PAGES if code_of(page)], ids=lambda page: page.stem)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    code = code_of(page)
    for name in OPTIONAL:
        if re.search(rf"^ *(import|from) {name}\b|backend=\"{name}\"", "".join(code), re.MULTILINE):
            pytest.importorskip(name)
    monkeypatch.chdir(tmp_path)
    names = {"__name__": page.stem}
    for block in code:
        exec(compile(block, page.name, "exec"), names)
