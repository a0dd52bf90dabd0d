"""Models by name, from a file, from a function, and as estimators."""

from __future__ import annotations

import joblib
import pytest
from lightgbm import LGBMRegressor
from sklearn.linear_model import Ridge

from boostbp.comparison.models import contenders_of, reference_of


def test_names_and_estimators_become_contenders():
    models = ["LightGBM", "linear_tree", "xgboost", "catboost", "quality=2", "boostbp quality=4", ("mine", Ridge())]
    listed = contenders_of(models, {"epochs": 3})
    assert [(c.label, c.kind) for c in listed] == [
        ("LightGBM", "lightgbm"),
        ("LightGBM linear_tree", "lightgbm"),
        ("XGBoost", "xgboost"),
        ("CatBoost", "catboost"),
        ("boostbp quality=2", "deep"),
        ("boostbp quality=4", "deep"),
        ("mine", "estimator"),
    ]
    assert listed[4].params == {"epochs": 3, "quality": 2}
    assert contenders_of([Ridge()])[0].label == "Ridge"
    assert len(contenders_of(["lightgbm", "LightGBM", "quality=1", "quality=1"])) == 2


def test_a_file_and_a_function_hold_the_settings_of_a_team(here):
    joblib.dump(LGBMRegressor(num_leaves=7, verbose=-1).fit([[0.0], [1.0]] * 20, [0.0, 1.0] * 20), "ours.joblib")
    (here / "team_models.py").write_text(
        "from sklearn.linear_model import Ridge\ndef make():\n    return Ridge(alpha=3)\nready = Ridge(alpha=4)\n"
    )
    saved, made, ready = contenders_of(["ours.joblib", "team_models:make", "team_models:ready"])
    assert (saved.label, saved.params["estimator"].num_leaves) == ("ours", 7)
    assert (made.label, made.params["estimator"].alpha) == ("make", 3)
    assert ready.params["estimator"].alpha == 4


def test_the_reference_is_lightgbm_the_named_one_or_the_first():
    assert reference_of(contenders_of(["quality=1", "lightgbm"]), None) == "LightGBM"
    assert reference_of(contenders_of([Ridge(), "quality=1"]), None) == "Ridge"
    assert reference_of(contenders_of(["lightgbm", "quality=1"]), "quality=1") == "boostbp quality=1"


@pytest.mark.parametrize(
    ("models", "error", "message"),
    [
        (["ridge"], ValueError, "model 'ridge' is not known: use one of lightgbm, linear_tree"),
        (["json:no_such"], ValueError, "model 'json:no_such' does not exist"),
        ([Ridge], TypeError, "is no estimator with fit and get_params"),
        ([Ridge(1), Ridge(2)], ValueError, r"two are called 'Ridge': give names"),
    ],
)
def test_models_that_are_none_are_refused_with_the_cure(models, error, message):
    with pytest.raises(error, match=message):
        contenders_of(models)
