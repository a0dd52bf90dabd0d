"""An import loads what is used."""

from __future__ import annotations

import builtins
import json
import subprocess
import sys

import pytest

from boostbp.runtime.lazy import lazy_imports


def in_fresh_process(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def test_an_import_loads_what_is_used():
    statements = "import boostbp", "boostbp.losses, boostbp.metrics", "boostbp.BoostBPRegressor"
    told = "print(json.dumps([name for name in sys.modules if name.startswith('boostbp.')]))"
    lines = in_fresh_process("\n".join(["import json, sys", *(f"{statement}; {told}" for statement in statements)]))
    package, parts, regressor = (set(json.loads(line)) for line in lines.splitlines())
    assert {name.split(".")[1] for name in package} == {"runtime"}
    assert {"boostbp.losses", "boostbp.metrics"} <= parts
    assert not {"boostbp.estimators", "boostbp.ensemble"} & parts
    others = ["autoencoder", "classifier", "ranker", "time_to_event", "single_layer"]
    unused = {"boostbp.export", "boostbp.storage", *(f"boostbp.estimators.{name}" for name in others)}
    assert "boostbp.estimators.regressor" in regressor
    assert not unused & regressor


def test_imports_are_put_off_in_the_block_alone():
    importer, namespace = builtins.__import__, {"__name__": "boostbp", "lazy_imports": lazy_imports}
    block = "with lazy_imports(globals()):\n    from boostbp.losses import Loss, no_such_name\n"
    exec(block + "import json", namespace)
    assert builtins.__import__ is importer
    assert "Loss" not in namespace
    assert namespace["json"] is json
    assert {"Loss", "losses", "no_such_name"} <= {*namespace["__dir__"]()}
    with pytest.raises(AttributeError, match="no_such_name"):
        namespace["__getattr__"]("no_such_name")
