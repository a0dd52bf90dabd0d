"""boostbp plot: pictures of a model and of rows of a file."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from command_line import run
from matplotlib.image import imread

from boostbp import BoostBPClassifier, BoostBPRegressor, plots, save
from boostbp.plots.axes import figure


@pytest.mark.parametrize("kind", ["training", "health", "importances"])
def test_model_is_drawn(models, tmp_path, kind):
    out = tmp_path / "out.png"
    result = run("plot", models / "iris.boostbp", "-k", kind, "-o", out)
    assert result.exit_code == 0, result.output
    assert np.ptp(imread(out)) == 1.0  # ink on paper
    assert [path.name for path in tmp_path.iterdir()] == ["out.png"]


@pytest.mark.parametrize(
    ("name", "kind", "target"),
    [
        ("iris.csv", "representation", None),
        ("iris.csv", "representation", "species"),
        ("iris.csv", "calibration", "species"),
        ("diabetes.parquet", "representation", "target"),
        ("diabetes.parquet", "residuals", "target"),
    ],
)
def test_rows_of_a_file_are_drawn(models, tmp_path, name, kind, target):
    out = tmp_path / "out.svg"
    model = (models / name).with_suffix(".boostbp")
    options = [] if target is None else ["-t", target]
    result = run("plot", model, models / name, "-k", kind, "-o", out, "--rows", 60, *options)
    assert result.exit_code == 0, result.output
    assert "<svg" in out.read_text()


def test_picture_replaces_neither_model_nor_rows(here):
    (here / "m.svg").write_text("precious")
    for arguments, name in ((["m.svg"], "MODEL"), (["m", "m.svg", "-k", "representation"], "DATA")):
        result = run("plot", *arguments, "-o", "./m.svg")
        assert result.exit_code == 2
        assert f"--out 'm.svg' would replace {name} 'm.svg': give --out another name" in result.stderr
    assert [path.read_text() for path in here.iterdir()] == ["precious"]


@pytest.mark.filterwarnings("default:The model was fitted with an offset")
@pytest.mark.parametrize(("kind", "shown"), [("residuals", "predict"), ("calibration", "predict_proba")])
def test_pictures_of_predictions_have_the_offset(tmp_path, kind, shown):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=80), "known": rng.normal(size=80)})
    frame["y"] = frame.x + frame.known if kind == "residuals" else np.where(frame.x + frame.known > 0, "a", "b")
    frame.to_csv(tmp_path / "table.csv", index=False)
    made = (BoostBPRegressor if kind == "residuals" else BoostBPClassifier)((), n_estimators=3, random_state=0)
    model = made.fit(frame[["x"]], frame.y, offset=frame.known)
    save(model, tmp_path / "model")
    arguments = [tmp_path / "model", tmp_path / "table.csv", "-k", kind, "-t", "y", "-o", tmp_path / "out.png"]
    result = run("plot", *arguments, "--offset", "known")
    assert result.exit_code == 0, result.output
    picture, (ax,) = figure()
    classes = {} if kind == "residuals" else {"classes": model.classes_}
    getattr(plots, kind)(frame.y, getattr(model, shown)(frame[["x"]], offset=frame.known), ax, **classes)
    picture.savefig(tmp_path / "expected.png", dpi=150)
    np.testing.assert_array_equal(imread(tmp_path / "out.png"), imread(tmp_path / "expected.png"))
    assert "fitted with an offset, but none was passed" in run("plot", *arguments).stderr
