"""An import loads what is used."""

from __future__ import annotations

import json
import subprocess
import sys


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
