"""Sphinx configuration of the site: `python -m sphinx -W docs docs/_build/html` builds it, without a network."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pygments.lexers import TextLexer
from sphinx.highlighting import lexers
from sphinx.util.inspect import signature, stringify_signature
from sphinx_gallery.sorting import ExplicitOrder

import boostbp
from boostbp.backends import native_params
from boostbp.losses import LOSSES

os.environ.setdefault("MPLBACKEND", "Agg")

project = "boostbp"
author = copyright = "The boostbp developers"
version = release = boostbp.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "gallery/*.ipynb", "gallery/*.py", "sg_execution_times.rst"]
root_doc = "index"

# Markdown: anchors of headings to the depth that pages link to.
myst_enable_extensions = ["colon_fence", "substitution"]
myst_substitutions = {"release": release}
myst_heading_anchors = 4

# Reference: every public object has a page of its own.
autosummary_generate = True
templates_path = ["_templates"]
autodoc_typehints = "none"
autodoc_mock_imports = [] if find_spec("torch") else ["torch"]  # the pages of tree layers need their docstrings alone
toc_object_entries_show_parents = "hide"  # in the contents of a page: "fit", not "BoostBPRegressor.fit"
numpydoc_show_class_members = False  # the template of classes shows the methods in full
numpydoc_xref_param_type = False

html_theme = "pydata_sphinx_theme"
html_title = f"boostbp {release}"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {
    "use_edit_page_button": False,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "icon_links": [
        {
            "name": "Source",
            "url": "https://github.com/boostbp/boostbp",
            "icon": "fa-brands fa-github",
            "type": "fontawesome",
        }
    ],
    "footer_start": ["copyright"],
    "footer_end": [],
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

GALLERY = (  # in the order of the page
    "robot_arm ordinary_table time_limit categories circle inverse_arm intervals monotone labels survival drift torch "
    "optuna microcontroller dask"
)
sphinx_gallery_conf = {
    "within_subsection_order": ExplicitOrder([*(f"plot_{name}.py" for name in GALLERY.split()), "*"]),
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    # Without torch the page of that example is shown, but not executed.
    "filename_pattern": r"/plot_" if find_spec("torch") else r"/plot_(?!torch)",
    "download_all_examples": True,
    "remove_config_comments": True,
    "show_memory": False,
    "write_computation_times": False,
    "abort_on_example_error": True,
}


def command_line() -> str:
    """Return the page of the command line, as Typer writes it."""
    run = [
        sys.executable,
        "-m",
        "typer",
        "boostbp.cli",
        "utils",
        "docs",
        "--name",
        "boostbp",
        "--title",
        "Command line",
    ]
    return subprocess.run(run, check=True, capture_output=True, text=True).stdout


def losses() -> str:
    """Return a table of the losses that have a name."""
    texts = {name: (loss.__doc__ or "").strip().splitlines()[0] for name, loss in LOSSES.items()}
    rows = [f"| `{name}` | {text.replace('|', chr(92) + '|')} |" for name, text in texts.items()]
    return "\n".join(["| `loss=` | its value for a raw output `h` |", "| --- | --- |", *rows, ""])


def native_parameters() -> str:
    """Return the native parameters of each library that are passed on, and why others are refused."""
    lines = []
    for library in (native_params.LIGHTGBM, native_params.XGBOOST, native_params.SKLEARN):
        reasons: dict[str, list[str]] = {}
        for name, reason in library.reasons.items():
            reasons.setdefault(reason, []).append(f"`{name}`")
        lines += [
            f"## {library.title}",
            "",
            "Passed on: " + ", ".join(f"`{n}`" for n in sorted(library.allowed)) + ".",
            "",
        ]
        lines += ["| refused | because |", "| --- | --- |"]
        lines += [f"| {', '.join(names)} | {reason} |" for reason, names in reasons.items()] + [""]
    return "\n".join(lines)


def of_other_packages(_app: Any, _what: str, _name: str, member: Any, skip: bool, _options: Any) -> bool | None:
    """Leave out what estimators inherit from scikit-learn or torch, whose pages describe it."""
    origin = str(getattr(getattr(member, "fget", member), "__module__", "") or "")
    return True if origin.startswith(("sklearn", "torch")) else None


def leave_out_of_search(_app: Any, env: Any) -> None:
    """Leave the text of the laboratory book out of searches, in which it would come before the guide."""
    for page in env.found_docs:
        if page.startswith("research/"):
            env.metadata[page]["nosearch"] = ""


def own_signature(_app: Any, what: str, name: str, member: Any, *_: Any) -> tuple[str, None] | None:
    """Return the signature of a class that derives from a class of torch, also where torch is absent."""
    if what != "class" or not name.startswith("boostbp.torch."):
        return None
    return stringify_signature(signature(member.__init__, bound_method=True), show_annotation=False), None


def setup(app: Any) -> None:
    """Write the pages that come from the code, before Sphinx reads them."""
    app.connect("autodoc-skip-member", of_other_packages)
    app.connect("autodoc-process-signature", own_signature)
    app.connect("env-check-consistency", leave_out_of_search)
    folder = Path(app.srcdir) / "reference" / "generated"
    folder.mkdir(parents=True, exist_ok=True)
    lexers["mermaid"] = TextLexer()  # drawings are shown as text: their library is not part of the site
    pages = {"command_line.md": command_line, "losses.inc": losses, "native_parameters.inc": native_parameters}
    for name, write in pages.items():
        path, text = folder / name, write()
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")
