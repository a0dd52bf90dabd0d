"""Measures of the code itself: lines, types, words, and the way of a fit and a prediction through it.

::

    python -m benchmarks.house
    python -m benchmarks.house --root ../other/boostbp    # counts alone, of another checkout or package

Lines of code proper are those without docstrings, blank lines, comments and imports. A frame counts if its file is in
the package.
"""

from __future__ import annotations

import argparse
import ast
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parents[1] / "boostbp"
GROWTH = ("grow", "boost_rounds")  # of a backend, and of the core
NUMERICAL = ("trees", "network", "losses", "metrics", "core")  # rooms whose comments are counted


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures of the code itself.")
    parser.add_argument("--root", type=Path, default=PACKAGE, help="folder of a package")
    root = parser.parse_args().root
    for name, value in counts(root).items():
        print(f"{name:44} {value}")
    for name, places in double_names(root).items():
        print(f"two meanings: {name:30} {', '.join(sorted(places))}")
    if root == PACKAGE:
        for name, measured in ways().items():
            print(f"{name:44} {measured}")


def counts(root: Path) -> dict[str, Any]:
    """Return numbers of files, lines, comments and parameters by what they are called."""
    files = [(path, path.read_text(encoding="utf-8")) for path in sorted(root.rglob("*.py"))]
    trees = [(path, text, ast.parse(text)) for path, text in files]
    code, comments, numerical = 0, 0, [0, 0]
    any_parameters = 0
    for path, text, tree in trees:
        lines, remarks = code_of(text, tree)
        code, comments = code + lines, comments + remarks
        if path.relative_to(root).parts[0] in NUMERICAL:
            numerical = [numerical[0] + lines, numerical[1] + remarks]
        any_parameters += sum(1 for annotation in annotations(tree) if is_any(annotation))
    sizes = sorted(text.count("\n") for _, text in files)
    bodies = sorted(body for _, _, tree in trees for body in body_lines(tree))
    return {
        "files": len(files),
        "lines": sum(sizes),
        "lines of code proper": code,
        "file: median, 90 %, most": percentiles(sizes),
        "body of a function: median, 90 %, most": percentiles(bodies),
        "files at the top": sum(1 for path, _ in files if path.parent == root),
        "comments per 100 lines of code": round(100 * comments / code, 1),
        "the same in numerical rooms": round(100 * numerical[1] / max(numerical[0], 1), 1),
        "parameters typed Any": any_parameters,
    }


def code_of(text: str, tree: ast.Module) -> tuple[int, int]:
    """Return the number of lines of code proper, and of lines that are a comment."""
    left_out: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            left_out.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        elif isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                left_out.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    code = comments = 0
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        comments += stripped.startswith("#")
        code += bool(stripped) and not stripped.startswith("#") and number not in left_out
    return code, comments


def annotations(tree: ast.Module) -> Iterator[ast.expr]:
    """Yield the annotations of parameters."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            listed = node.args
            every = [*listed.posonlyargs, *listed.args, *listed.kwonlyargs, listed.vararg, listed.kwarg]
            yield from (one.annotation for one in every if one is not None and one.annotation is not None)


def is_any(annotation: ast.expr) -> bool:
    return isinstance(annotation, ast.Name) and annotation.id == "Any"


def body_lines(tree: ast.Module) -> Iterator[int]:
    """Yield the number of lines of each function, without its docstring."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = [part for part in node.body if not isinstance(getattr(part, "value", None), ast.Constant)]
            yield (node.end_lineno or 0) - body[0].lineno + 1 if body else 0


def percentiles(values: list[int]) -> str:
    return f"{values[len(values) // 2]}, {values[int(0.9 * (len(values) - 1))]}, {values[-1]}"


def double_names(root: Path) -> dict[str, set[str]]:
    """Return the classes, and the public functions and constants, of one name that are defined in several files.

    Names of one letter are those of types.
    """
    places: dict[str, set[str]] = defaultdict(set)
    for path in sorted(root.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            is_function = isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
            file = str(path.relative_to(root))
            if is_function or isinstance(node, ast.ClassDef):
                places[node.name].add(file)
            for target in targets_of(node):
                for name in (part.id for part in ast.walk(target) if isinstance(part, ast.Name)):
                    if name.isupper() and not name.startswith("_") and len(name) > 1:
                        places[name].add(file)
    return {name: files for name, files in sorted(places.items()) if len(files) > 1}


def targets_of(node: ast.stmt) -> list[ast.expr]:
    """Return what a statement assigns to."""
    return node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []


class Walk:
    """Calls between files of the package, seen by a profiler: files, moves between them, calls and depth.

    `ends` are functions; the frames until the first call of one of them are counted.
    """

    def __init__(self, *ends: str) -> None:
        import boostbp

        self.package = str(Path(boostbp.__file__).parent)  # installed elsewhere, it isn't the checkout's
        self.files: Counter[str] = Counter()
        self.moves = self.depth = self.until = 0
        self._ends, self._stack = ends, list[str]()

    def __call__(self, frame: Any, event: str, argument: object) -> None:
        """Count a call or a return; the signature is that of `sys.setprofile`."""
        file = frame.f_code.co_filename
        if event not in ("call", "return") or not file.startswith(self.package):
            return
        if event == "return":
            if self._stack:
                self._stack.pop()
            return
        self.moves += bool(self._stack) and self._stack[-1] != file
        self._stack.append(file)
        self.files[file] += 1
        self.depth = max(self.depth, len(self._stack))
        if frame.f_code.co_name in self._ends and not self.until:
            self.until = len(self._stack)

    def of(self, call: Callable[[], object]) -> str:
        """Run a call; return what was seen."""
        sys.setprofile(self)
        try:
            call()
        finally:
            sys.setprofile(None)
        until = f", frames until growth {self.until}" if self._ends else ""
        calls = sum(self.files.values())
        return f"files {len(self.files)}, moves {self.moves}, calls {calls}, deepest {self.depth}{until}"


def ways() -> dict[str, str]:
    """Return what a fit, a prediction and a load go through, on 442 rows of 10 features and on one thread."""
    from sklearn.datasets import load_diabetes

    import boostbp

    X, y = load_diabetes(return_X_y=True)
    settings: dict[str, Any] = {"deep": True, "random_state": 0, "n_jobs": 1}

    def network(**changes: Any) -> Any:
        return boostbp.BoostBPRegressor((8,), epochs=4, **settings, **changes)

    network().fit(X, y).predict(X)  # imports modules
    found = {
        "fit, deep=True, early_stopping=False": Walk("boost_rounds").of(
            lambda: network(early_stopping=False).fit(X, y)
        ),
        "fit, deep=True": Walk("boost_rounds").of(lambda: network().fit(X, y)),
        "fit, quality=1": Walk("boost_rounds").of(
            lambda: boostbp.BoostBPRegressor(quality=1, n_jobs=1, random_state=0).fit(X, y)
        ),
    }
    with tempfile.TemporaryDirectory() as folder:
        boostbp.save(network().fit(X, y), f"{folder}/model")
        found["load"] = Walk().of(lambda: boostbp.load(f"{folder}/model"))
        model: Any = boostbp.load(f"{folder}/model")
    found["predict after load, 442 rows"] = Walk().of(lambda: model.predict(X))
    found["predict, 1 row"] = Walk().of(lambda: model.predict(X[:1]))
    estimator = type(model)
    ours = [kind for kind in estimator.__mro__ if kind.__module__.startswith("boostbp.")]
    private = {name for kind in ours for name in vars(kind) if name.startswith("_") and not name.startswith("__")}
    found["classes of ours in the MRO of a regressor"] = str(len(ours))
    found["private members of a regressor"] = str(len(private))
    return found


if __name__ == "__main__":
    main()
