"""The plan of the house holds: imports point down, optional packages stay optional, files stay small."""

from __future__ import annotations

import ast
import builtins
import importlib
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from benchmarks.house import PACKAGE, counts, double_names, ways

ROOT = Path(__file__).parents[1]
MODULES = sorted(PACKAGE.rglob("*.py"))

# A room imports from lower floors only: never up, never sideways.
FLOORS = (
    {"core", "runtime"},
    {"losses", "trees"},
    {"backends", "inputs", "metrics"},
    {"network"},
    {"ensemble", "model"},
    {"estimators"},
    {"distributed", "export", "interop", "mlflow", "plots", "search", "storage", "torch"},
    {"__init__", "cli", "dask", "spark"},
    {"__main__"},
)
FLOOR_OF = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
# Words that the field has others for: standard deviation, atomic write, parallel, ensemble, smoothed, divergence, ...
DIALECT = (
    r"spread|aside|abreast|weighing|softened|calmest|explosion|doubt|faint|"
    r"frames? of a leaf|move_to_frame|own_losses|own_metrics|"
    r"fallback|glide|plainly|pull_back|without_ones|forks_of|one_in_blas|_settle|_in_step"
)
OLD_NAMES = r"Growth|Kept|Replay|Marks|SquaredTo|BoostTo|Option|Head"  # of classes
# Functions that call no code of the user: those that `map` may call beside built-in ones and those of NumPy.
OF_NO_USER = {"_column", "_is_pair", "_number", "_padded_number", "arrow", "find_spec", "format_of", "index", "literal"}
OF_NO_USER |= {"printable", "read_only", "same", "unquote"}
# Names of functions that call a user's loss, metric, backend, basis, step rule or callback.
OF_USER = {"advance", "baseline", "begin", "callback", "derivatives", "expand", "fork", "forward", "gradient", "grow"}
OF_USER |= {
    "hessian",
    "hidden_representation",
    "jacobian",
    "link",
    "metric",
    "move",
    "output_input",
    "predict",
    "prepared",
}
OF_USER |= {"representation", "row_losses", "score", "training_loss", "value", "vjp", "work"}
# What a variable holds has a noun.
PRONOUNS = {"one", "each", "it", "its", "own", "said", "seen", "asked", "ours", "theirs", "mine"}
# Modules that tests reach by others only, with the reason. Each other one has its tests in a file of its name.
WITHOUT_TESTS = {
    "__main__.py": "one call: tests/cli/test_documents.py runs it",
    "distributed/cluster.py": "needs a cluster, which tests/test_dask.py starts once",
    "ensemble/constants.py": "numbers, whose effects are tests of what reads them",
    "estimators/constructor.py": "parameters with their defaults: tests of all estimators",
    "estimators/data.py": "a stage of every fit: tests of all estimators",
    "estimators/training.py": "a stage of every fit: tests of all estimators",
}
LIBRARIES = {"lightgbm", "xgboost"}
OPTIONAL = {
    "autogluon",
    "dask",
    "distributed",
    "jinja2",
    "lightgbm",
    "matplotlib",
    "mlflow",
    "onnx",
    "optuna",
    "pandas",
    "polars",
    "pyarrow",
    "pyspark",
    "shap",
    "skops",
    "torch",
    "xgboost",
}


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(tree: ast.Module) -> Iterator[str]:
    """Dotted names that a module imports, wherever in it, by statement or by `require`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in {"require", "import_module", "__import__"}:
                yield str(node.args[0].value)


def in_fresh_process(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def test_imports_point_down():
    for path in MODULES:
        room = room_of(path)
        assert room in FLOOR_OF, f"boostbp/{room} has no floor in the plan"
        for name in imported(parsed(path)):
            parts = name.split(".")
            if parts[0] != "boostbp" or parts[1] == room:
                continue
            assert FLOOR_OF.get(parts[1], len(FLOORS)) < FLOOR_OF[room], f"{path} imports {name}"


def test_imports_form_no_circles():
    names = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in MODULES}
    graph = {name: {module for module in modules_of(path, names) if module != name} for name, path in names.items()}
    reached = {name: reachable(name, graph) for name in graph}
    circles = {tuple(sorted(other for other in reached[name] if name in reached[other])) for name in graph}
    assert circles == {()}


def modules_of(path: Path, names: dict[str, Path]) -> Iterator[str]:
    """Modules that a module imports, also for types alone; not packages, which only gather names."""
    for name in imported(parsed(path)):
        parts = name.split(".")
        yield from (module for module in (name, ".".join(parts[:-1])) if module in names)


def reachable(start: str, graph: dict[str, set[str]]) -> set[str]:
    found, waiting = set[str](), [start]
    while waiting:
        for name in graph[waiting.pop()] - found:
            found.add(name)
            waiting.append(name)
    return found


def test_boosting_libraries_are_imported_in_few_rooms():
    for path in MODULES:
        tops = {name.split(".")[0] for name in imported(parsed(path))}
        assert not tops & LIBRARIES or room_of(path) in {"backends", "cli", "interop"}, path


def test_optional_packages_are_imported_on_use():
    for path in MODULES:
        statements = [node for node in parsed(path).body if is_import(node)]
        tops = {name.split(".")[0] for name in imported(ast.Module(statements, []))}
        assert not tops & OPTIONAL, path


def is_import(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom)


def test_import_loads_no_optional_package():
    # scikit-learn itself loads pandas where it is installed, and pandas loads pyarrow.
    told = "print(json.dumps([name.partition('.')[0] for name in sys.modules]))"
    imports = "import sklearn, sklearn.base, sklearn.utils", "import boostbp, benchmarks.mixtures"
    found = in_fresh_process("\n".join(["import json, sys", *(f"{statement}; {told}" for statement in imports)]))
    theirs, ours = (set(json.loads(line)) for line in found.splitlines())
    assert "boostbp" in ours
    assert not LIBRARIES & theirs
    assert not (OPTIONAL & ours) - theirs


def test_estimators_have_few_parameters_of_their_own():
    for name in ("BoostBPRegressor", "BoostBPClassifier", "BoostBPSurvival", "BoostBPAutoencoder"):
        parameters = getattr(importlib.import_module("boostbp"), name)().get_params(deep=False)
        assert len(parameters) <= 25, f"{name} has {len(parameters)}: which can a spec hold, as hidden= or output=?"


def test_estimators_have_few_classes_and_private_members():
    for name in ("BoostBPRegressor", "BoostBPClassifier", "BoostBPSurvival", "BoostBPAutoencoder"):
        kinds = [
            kind for kind in getattr(importlib.import_module("boostbp"), name).__mro__ if "boostbp" in kind.__module__
        ]
        private = {member for kind in kinds for member in vars(kind) if re.match("_[^_]", member)}
        assert len(kinds) <= 3, name
        assert len(private) <= 15, f"{name} has {sorted(private)}: which can be functions?"


def test_public_names_are_sorted_and_complete():
    import boostbp

    assert list(boostbp.__all__) == sorted(boostbp.__all__)
    statements = [node for node in ast.walk(parsed(PACKAGE / "__init__.py")) if isinstance(node, ast.ImportFrom)]
    module_of = {alias.name: node.module for node in statements for alias in node.names}
    assert module_of.keys() - {"TYPE_CHECKING", "lazy_names"} == set(boostbp.__all__)
    for name in boostbp.__all__:
        value = getattr(boostbp, name)
        assert value.__doc__, name
        assert value is getattr(importlib.import_module(module_of[name]), name)  # type checkers see the same
    assert set(boostbp.__all__) <= set(dir(boostbp))
    with pytest.raises(AttributeError, match="module 'boostbp' has no attribute 'BoostBPRegresor'"):
        _ = boostbp.BoostBPRegresor


def test_classes_with_slots_say_what_copies_hold():
    # Without __getstate__ neither the pickle protocols 0 and 1 nor skops write them. Frozen dataclasses have one.
    absent = []
    for path in MODULES:
        try:
            module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
        except ImportError as error:
            absent.append(str(error))
            continue
        for name, value in vars(module).items():
            if isinstance(value, type) and value.__module__ == module.__name__:
                slots = [slot for kind in value.__mro__ for slot in getattr(kind, "__slots__", ())]
                copied = not slots or value.__getstate__ is not object.__getstate__
                assert copied, f"{path}: {name} has slots, no __getstate__"
    assert all("pip install" in reason for reason in absent), absent


def test_first_line_says_what_the_room_holds():
    for path in MODULES:
        docstring = ast.get_docstring(parsed(path))
        assert docstring, f"{path} has no docstring"
        assert docstring.splitlines()[0].endswith((".", ":", "?")), path


def test_files_stay_small():
    for path in MODULES:
        lines = len(path.read_text(encoding="utf-8").splitlines())
        assert lines <= 350, f"{path} has {lines} lines: which room is hidden inside?"


def test_names_of_classes_and_functions_have_one_meaning():
    assert not double_names(PACKAGE)


def test_the_measures_in_the_documents_are_those_of_the_code():
    rows = re.findall(
        r"^\| ([^|]*) \| ([^|]*) \|$", (ROOT / "docs" / "architecture.md").read_text("utf-8"), re.MULTILINE
    )
    measured = {name: str(value) for name, value in {**counts(PACKAGE), **ways()}.items()}
    told = {name: value for name, value in rows if name in measured}
    assert len(told) >= 7
    for name, value in told.items():
        for what, number in re.findall(r"([a-z ]*)(\d+)", value):
            [found] = re.findall(rf"{what}(\d+)", measured[name])
            # Lines change with each commit; files and frames are exact.
            assert abs(int(number) - int(found)) <= 0.02 * int(found) * (int(found) > 1000), f"{name}: {measured[name]}"


def test_files_have_names_of_their_own():
    counts = Counter(path.stem for path in MODULES)
    assert {name for name, count in counts.items() if count > 1} <= {"__init__", "base"}  # what a room's classes share


def test_tests_stand_where_their_modules_do():
    without = []
    for path in [*MODULES, *(PACKAGE / "core").glob("*.c")]:
        place = path.relative_to(PACKAGE)
        tests = ROOT / "tests" / place.parent / f"test_{path.stem.strip('_')}.py"
        if path.stem != "__init__" and not tests.is_file():
            without.append(place.as_posix())
    assert sorted(without) == sorted(WITHOUT_TESTS)


def test_rooms_of_tests_are_those_of_the_package():
    """Beside them are tests of other folders, and programs that try many cases."""
    others = {"benchmarks", "fuzz", "fuzz_exports", "fuzz_files", "fuzz_params", "kills", "signals"}
    rooms = {path.parent.relative_to(ROOT / "tests").as_posix() for path in (ROOT / "tests").rglob("test_*.py")}
    assert {room for room in rooms - others if not (PACKAGE / room).is_dir()} == set()


def test_no_path_of_a_machine_in_the_sources():
    machine = re.compile("/(" + "|".join(("home", "Users", "root", "opt", "work", "mnt")) + r")/\w")
    suffixes = {".py", ".toml", ".md", ".yaml", ".yml", ".cfg", ".txt", ".json"}
    folders = [ROOT / name for name in ("boostbp", "tests", "examples", "benchmarks", ".ci")]
    files = [path for folder in folders for path in folder.rglob("*") if path.suffix in suffixes or path.name == "run"]
    files += [path for path in ROOT.iterdir() if path.is_file() and path.suffix in suffixes]
    assert len(files) > len(MODULES)
    found = [f"{path}: {match[0]}" for path in files for match in machine.finditer(path.read_text(encoding="utf-8"))]
    assert not found


def test_the_words_are_those_of_the_field():
    for path in MODULES:
        text = path.read_text(encoding="utf-8")
        assert not re.findall(rf"\b(?:{DIALECT})\b", text, flags=re.IGNORECASE), path
        assert not re.findall(rf"\b(?:class|import|def) (?:{OLD_NAMES})\b", text), path


def test_variables_are_called_by_nouns():
    for path in MODULES:
        nodes = list(ast.walk(parsed(path)))
        bound = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        bound |= {node.arg for node in nodes if isinstance(node, ast.arg)}
        assert not PRONOUNS & bound, path


def test_no_stop_iteration_of_a_user_ends_a_map():
    # `list(map(f, ...))` ends quietly where `f` raises StopIteration, and a model would lack pieces.
    for path in MODULES:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"map", "filter"}:
                tested = node.args[0].test if isinstance(node.args[0], ast.IfExp) else node.args[0]
                first = ast.unparse(tested).partition(".")[0].partition("(")[0]
                is_safe = first in {*dir(builtins), *OF_NO_USER, "np", "values"}
                assert is_safe, f"{path}:{node.lineno}: use a list comprehension"


def test_no_stop_iteration_of_a_user_becomes_a_runtime_error():
    # A generator turns the StopIteration of what it calls into RuntimeError. Generators that users receive may.
    for path in MODULES:
        if room_of(path) in {"cli", "estimators"}:
            continue
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.GeneratorExp):  # the first iterable is evaluated outside
                inside = [node.elt, *node.generators[0].ifs, *node.generators[1:]]
            elif isinstance(node, ast.FunctionDef) and is_generator(node):
                inside = node.body
            else:
                continue
            calls = [call.func for part in inside for call in ast.walk(part) if isinstance(call, ast.Call)]
            names = {call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "") for call in calls}
            assert not names & OF_USER, f"{path}:{node.lineno}: use a list comprehension, or a list"


def is_generator(function: ast.FunctionDef) -> bool:
    """Whether a function yields values, and is no context manager, which passes StopIteration on."""
    yields = any(isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(function))
    return yields and not any("contextmanager" in ast.unparse(decorator) for decorator in function.decorator_list)
