"""boostbp export: the files that the functions write, and errors of one line."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

import boostbp
from boostbp.cli import app
from tests.test_storage import X, regressor


def run(*arguments):
    return CliRunner().invoke(app, ["export", *map(str, arguments)])


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model.boostbp"
    model = regressor()
    boostbp.save(model, path)
    return model, path


@pytest.mark.filterwarnings("default:dtype='float32'")
@pytest.mark.parametrize("flags", [[], ["--float32"]])
def test_an_onnx_file_predicts_what_the_model_does(flags, stored, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    model, path = stored
    result = run(path, tmp_path / "model.onnx", "--to", "onnx", *flags)
    assert result.exit_code == 0, result.output
    assert "Written to" in result.stderr
    rows = X.astype(np.float32 if flags else np.float64)
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    [prediction] = session.run(None, {"X": rows})
    assert prediction.dtype == rows.dtype
    if flags:  # a unit that is rounded may be on the other side of a threshold
        assert np.isclose(prediction, model.predict(X), rtol=1e-5).mean() > 0.95
    else:
        np.testing.assert_allclose(prediction, model.predict(X), rtol=1e-12)


def test_a_c_file_is_what_the_function_returns(stored, tmp_path):
    model, path = stored
    result = run(path, tmp_path / "model.c", "--to", "c", "--quiet")
    assert (result.exit_code, result.output) == (0, "")
    assert (tmp_path / "model.c").read_text(encoding="utf-8") == boostbp.to_c(model)


def test_wrong_commands_leave_files_as_they_are(stored, tmp_path):
    _, path = stored
    before = path.read_bytes()
    for arguments, code, reason in [
        ((path, path, "--to", "c"), 2, "would replace MODEL"),
        ((path, tmp_path / "model.c", "--to", "c", "--float32"), 2, "--float32 is for ONNX graphs"),
        ((path, tmp_path / "model.c", "--to", "pmml"), 2, "pmml"),
        ((tmp_path / "none", tmp_path / "model.c", "--to", "c"), 1, "error: "),
    ]:
        result = run(*arguments)
        assert result.exit_code == code, result.output
        assert reason in result.stderr
    assert path.read_bytes() == before
    assert not (tmp_path / "model.c").exists()
