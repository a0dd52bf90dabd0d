"""What is sent to TabArena is what is tested here: the model's code, and the space that it is searched in."""

from __future__ import annotations

import ast
from pathlib import Path

from boostbp.search import SPACES, Choice, Integer, Number

ROOT = Path(__file__).parents[2]
SENT = ROOT / "integrations" / "tabarena" / "models" / "boostbp"


def definitions(path):
    """Code of functions, and values that are plain, by name: without imports, which differ by where they may stand."""
    found = {}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef):
            node.body = [part for part in node.body if not isinstance(part, ast.ImportFrom)]
            found[node.name] = ast.unparse(node)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(
            node.value, ast.Constant | ast.List | ast.Tuple
        ):
            found[ast.unparse(node.target if isinstance(node, ast.AnnAssign) else node.targets[0])] = ast.unparse(
                node.value
            )
    return found


def test_model_that_is_sent_is_that_of_the_package_but_for_one_default():
    sent, ours = definitions(SENT / "model.py"), definitions(ROOT / "boostbp" / "interop" / "autogluon.py")
    assert ours.pop("__all__") == "['BoostBPModel']"
    own = sent.pop("_set_default_params")
    assert "('quality', 1)" in own
    assert {"_fit", "_estimate_memory_usage_static", "_with_all_classes", "_ROUNDS", "ag_key"} <= ours.keys()
    assert sent == ours


def test_space_that_is_sent_is_that_of_the_package_without_rounds():
    parsed = ast.parse((SENT / "hpo.py").read_text(encoding="utf-8"))
    [space] = [node.value for node in parsed.body if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict)]
    kinds = {"Categorical": lambda *options: Choice(options), "Int": Integer, "Real": Number}
    sent = eval(compile(ast.Expression(space), "hpo.py", "eval"), kinds)
    ours = {name: value for name, value in SPACES["single"].items() if name != "n_estimators"}
    leaves = ours["min_samples_leaf"]
    assert sent == ours | {"min_samples_leaf": Integer(leaves.low, leaves.high)}  # AutoGluon's Int has no logarithm


def test_files_that_are_sent_import_each_other_by_their_names():
    for path in SENT.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tabarena.models.boostbp."):
                assert (SENT / f"{node.module.removeprefix('tabarena.models.boostbp.')}.py").exists()
