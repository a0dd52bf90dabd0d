"""Several exported models in one program: a prefix for all names of each."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

import numpy as np
import pytest
from typer.testing import CliRunner

import boostbp
from boostbp import BoostBPClassifier, BoostBPRegressor
from boostbp.cli import app
from tests.export.rows import table
from tests.export.test_c_program import SMALL

COMPILERS = [path for name in ("gcc", "clang", os.environ.get("CC") or "cc") if (path := shutil.which(name))]
FLAGS = ("-std=c99", "-O1", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror", "-pedantic")
MAIN = """
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
int first_predict_proba(const double *rows, size_t n, double *out);
int first_predict(const double *rows, size_t n, int *out);
extern const char *const first_labels[3];
int second_predict_proba(const double *rows, size_t n, double *out);
int second_predict(const double *rows, size_t n, int *out);
extern const int64_t second_labels[2];
int boostbp_predict(const double *rows, size_t n, double *out);
int main(void)
{
    double row[6], out[3];
    int place;
    while (fread(row, sizeof row, 1, stdin) == 1) {
        if (first_predict(row, 1, &place) || first_predict_proba(row, 1, out))
            return 1;
        printf("%s %.17g", first_labels[place], out[2]);
        if (second_predict(row, 1, &place) || second_predict_proba(row, 1, out))
            return 1;
        printf(" %d %.17g", (int)second_labels[place], out[1]);
        if (boostbp_predict(row, 1, out))
            return 1;
        printf(" %.17g\\n", out[0]);
    }
    return 0;
}
"""


@pytest.fixture(scope="module")
def models():
    A, y = table(300)
    texts = np.array(["boostbp_low", "middle", "high"])[np.digitize(y, [0, 2])]
    return (
        BoostBPClassifier(categorical_features=[1, 4], **SMALL).fit(A, texts),
        BoostBPClassifier(**SMALL).fit(A, np.array([3, 7])[(y > 0).astype(int)]),
        BoostBPRegressor(categorical_features=[4], **SMALL).fit(A, y),
        A[:40],
    )


@pytest.mark.slow
@pytest.mark.skipif(not COMPILERS, reason="needs a C compiler: cc, gcc or clang")
@pytest.mark.parametrize("compiler", COMPILERS[:2])
def test_two_classifiers_and_a_regressor_in_one_program(compiler, models, tmp_path):
    *fitted, rows = models
    sources = [
        boostbp.to_c(model, prefix=name) for model, name in zip(fitted, ("first", "second", "boostbp"), strict=True)
    ]
    for number, text in enumerate((*sources, MAIN)):
        (tmp_path / f"{number}.c").write_text(text, encoding="utf-8")
    files = [tmp_path / f"{number}.c" for number in range(4)]
    subprocess.run([compiler, *FLAGS, "-o", tmp_path / "program", *files, "-lm"], check=True)
    done = subprocess.run([tmp_path / "program"], input=rows.tobytes(), capture_output=True, check=True)
    words = [line.split() for line in done.stdout.decode().splitlines()]
    first, second, regressor = fitted
    assert [word[0] for word in words] == first.predict(rows).tolist()
    np.testing.assert_allclose([float(word[1]) for word in words], first.predict_proba(rows)[:, 2], rtol=1e-13)
    assert [int(word[2]) for word in words] == second.predict(rows).tolist()
    np.testing.assert_allclose([float(word[3]) for word in words], second.predict_proba(rows)[:, 1], rtol=1e-13)
    assert [float(word[4]) for word in words] == regressor.predict(rows).tolist()


def test_no_name_is_left_without_the_prefix_and_no_label_gets_it(models):
    text = boostbp.to_c(models[0], prefix="first")
    program = re.sub(r'"(?:[^"\\]|\\.)*"', "", text[text.index("*/") :])
    assert not re.search("boostbp_", program, re.IGNORECASE)
    assert '"boostbp_low"' in text
    assert "FIRST_FEATURES" in text


@pytest.mark.skipif(not COMPILERS, reason="needs a C compiler: cc, gcc or clang")
def test_names_of_columns_end_no_comment(tmp_path):
    import pandas as pd

    A, y = table(100)
    frame = pd.DataFrame(A, columns=["*/ int x;", "/*", "??/", "\\", '"', "//"])
    source = tmp_path / "model.c"
    source.write_text(boostbp.to_c(BoostBPRegressor(**SMALL).fit(frame, y)), encoding="utf-8")
    subprocess.run([COMPILERS[0], *FLAGS, "-c", "-o", tmp_path / "model.o", source], check=True)


@pytest.mark.parametrize("prefix", ["", "1a", "a-b", "_a", "é", None, "a b"])
def test_what_is_no_name_in_c_is_refused(prefix, models):
    with pytest.raises(ValueError, match=re.escape(f"prefix={prefix!r} is not a name in C")):
        boostbp.to_c(models[2], prefix=prefix)


def test_the_command_line_takes_a_prefix(models, tmp_path):
    boostbp.save(models[2], tmp_path / "model.boostbp")
    arguments = ["export", str(tmp_path / "model.boostbp"), str(tmp_path / "model.c"), "--to", "c", "--prefix", "mine"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert (tmp_path / "model.c").read_text(encoding="utf-8") == boostbp.to_c(models[2], prefix="mine")
