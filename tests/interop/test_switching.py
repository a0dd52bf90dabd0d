"""Settings of LightGBM and XGBoost as estimators: each has its place, or a sentence; nothing is lost in silence."""

from __future__ import annotations

import json
import warnings

import lightgbm as lgb
import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from boostbp import BoostBPClassifier, BoostBPRanker, BoostBPRegressor, BoostBPSurvival, from_lightgbm, from_xgboost
from boostbp.interop.switching import _NEEDLESS

rng = np.random.default_rng(0)
X, y = rng.random((60, 3)), rng.random(60)


def changes(model):
    """Return the parameters that are not at their defaults, besides the quality."""
    usual = type(model)().get_params(deep=False)
    params = {name: value for name, value in model.get_params(deep=False).items() if value != usual[name]}
    assert params.pop("quality") == 1
    return params


def said(settings, switch=from_lightgbm):
    """Return the estimator, and the sentences about what it does otherwise."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = switch(settings)
    return model, "".join(str(warning.message) for warning in caught)


def test_settings_have_the_places_of_the_documentation():
    given = {"objective": "binary", "num_leaves": 63, "eta": 0.05, "min_data": 9, "lambda_l2": 2.0, "cat_smooth": 5}
    given |= {"bagging_fraction": 0.7, "bagging_freq": 1, "max_bin": 99, "mc": [1, 0, -1], "extra_trees": True}
    model, words = said(given | {"metric": "auc", "num_threads": 2, "seed": 3, "verbosity": -1, "num_round": 70})
    output = {"max_leaves": 63, "reg_lambda": 2.0, "subsample": 0.7, "max_bins": 99, "monotone_constraints": [1, 0, -1]}
    assert changes(model) == {
        "learning_rate": 0.05,
        "min_samples_leaf": 9,
        "backend_params": {"cat_smooth": 5},
        "n_estimators": 70,
        "eval_metric": "auc",
        "n_jobs": 2,
        "random_state": 3,
        "verbose": 0,
        "output": {**output, "extra_trees": True},
    }
    assert isinstance(model, BoostBPClassifier)
    assert not words


def test_no_parameter_of_lightgbm_is_lost():
    names = lgb.basic._ConfigAliases._get_all_param_aliases()
    for main, name in ((main, name) for main, others in names.items() for name in others):
        for value in (3, 0.25, "x", [1, 2]):
            model, words = said({name: value})
            without_effect = main in _NEEDLESS or main in ("objective", "verbosity", "linear_tree")
            assert changes(model) or f"{name}={value!r}: " in words or without_effect, (name, value)


def test_estimators_and_boosters_give_what_was_set():
    params = {"objective": "mae", "num_leaves": 7, "lambda_l1": 0.5, "boosting": "dart", "verbosity": -1}
    booster = lgb.train(params, lgb.Dataset(X, y), 7)
    expected = {"n_estimators": 7, "output": {"max_leaves": 7}, "backend_params": {"lambda_l1": 0.5}}
    for source, loss in (booster, "mae"), (lgb.Booster(model_str=booster.model_to_string()), "regression_l1"):
        model, words = said(source)
        found = changes(model)
        assert {name: found[name] for name in expected} == expected
        assert found["loss"] == loss
        assert "boosting='dart': only 'gbdt'" in words
    estimator = lgb.LGBMClassifier(n_estimators=50, num_leaves=15, class_weight="balanced", importance_type="gain")
    assert changes(from_lightgbm(estimator)) == {
        "n_estimators": 50,
        "output": {"max_leaves": 15},
        "class_weight": "balanced",
    }
    assert not changes(from_lightgbm(lgb.LGBMRegressor()))


@pytest.mark.parametrize(
    ("settings", "kind", "loss"),
    [
        ({"objective": "poisson"}, BoostBPRegressor, "poisson"),
        ({"objective": "rmse"}, BoostBPRegressor, "squared_error"),
        ({"objective": "ova", "num_class": 3}, BoostBPClassifier, "log_loss"),
        ({"objective": "lambdarank"}, BoostBPRanker, "lambdarank"),
        ({"objective": "mape"}, BoostBPRegressor, "squared_error"),
        ({"objective": lambda y, p: (p - y, np.ones_like(y))}, BoostBPRegressor, "squared_error"),
        (lgb.LGBMClassifier(), BoostBPClassifier, "log_loss"),
        (lgb.LGBMRanker(), BoostBPRanker, "lambdarank"),
    ],
)
def test_the_objective_chooses_the_estimator(settings, kind, loss):
    model, words = said(settings)
    assert type(model) is kind
    assert model.loss == loss
    unknown = isinstance(settings, dict) and (
        callable(settings["objective"]) or settings["objective"] in ("ova", "mape")
    )
    assert ("objective=" in words) == unknown


def test_a_booster_and_its_switch_are_alike():
    data, target = load_breast_cancer(return_X_y=True)
    model = lgb.LGBMClassifier(n_estimators=60, num_leaves=7, learning_rate=0.2, reg_lambda=1.0, verbose=-1, n_jobs=1)
    theirs = model.fit(data[::2], target[::2]).predict_proba(data[1::2])[:, 1]
    ours = from_lightgbm(model).fit(data[::2], target[::2])
    assert np.corrcoef(theirs, ours.predict_proba(data[1::2])[:, 1])[0, 1] > 0.95


def test_levels_and_widths_are_those_of_lightgbm():
    assert (
        from_lightgbm({"objective": "quantile"}).alpha == from_lightgbm(lgb.LGBMRegressor(objective="quantile")).alpha
    )
    assert from_lightgbm({"objective": "quantile"}).alpha == 0.9
    assert from_lightgbm({"objective": "quantile", "alpha": 0.2}).alpha == 0.2
    for given, delta in ({}, 0.9), ({"alpha": 2.0}, 2.0):
        model, words = said({"objective": "huber"} | given)
        assert (model.loss.delta, model.alpha, words) == (delta, None, "")


def test_switches_may_be_text():
    for value, weight in ("false", None), ("true", "balanced"), (True, "balanced"), (0, None):
        assert said({"objective": "binary", "is_unbalance": value})[0].class_weight == weight
    assert changes(from_lightgbm({"linear_tree": "True"})) == {"output": {"basis": "linear"}}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"subsample": 0.5}, "LightGBM draws rows only if bagging_freq is set"),
        ({"subsample": 0.5, "subsample_freq": 4}, "subsample_freq=4: rows are drawn anew for each tree"),
        ({"early_stopping_rounds": 9}, "early_stopping_rounds=9: layers choose their rounds on held-out rows"),
        ({"objective": "binary", "scale_pos_weight": 3}, "it became class_weight; if the classes are not 0 and 1"),
        ({"metric": "auc,binary_logloss"}, "metric='binary_logloss': a fit has one metric"),
        ({"num_leaves": 1}, "num_leaves=1: max_leaves=1 is not allowed"),
        ({"mc": "up"}, "mc='up': "),
        ({"zero_as_missing": True}, "zero_as_missing=True: routing could not tell 0.0 from NaN"),
        ({"objective": "poisson", "alpha": 0.3}, "alpha=0.3: it is a parameter of the objectives quantile and huber"),
        ({"lambda_l2": 3, "linear_lambda": 0.5}, "linear_lambda=0.5: reg_lambda=3 is there already"),
        ({"machines": "a,b"}, "machines='a,b': boostbp has nothing in its place"),
    ],
)
def test_what_has_no_equal_is_said(settings, words):
    assert words in said(settings)[1]


def test_categorical_features_may_be_text():
    for given, columns in ("name:a,b", ["a", "b"]), ("0,2", [0, 2]), ([1], [1]):
        assert changes(from_lightgbm({"categorical_feature": given})) == {"categorical_features": columns}
    assert not changes(from_lightgbm({"categorical_feature": "auto"}))


def test_wrong_settings_are_refused():
    with pytest.raises(ValueError, match=r"eta=0.1 and learning_rate=0.2, two names of one parameter: keep one"):
        from_lightgbm({"eta": 0.1, "learning_rate": 0.2})
    with pytest.raises(TypeError, match=r"settings=3 is not allowed: give a dict of its parameters, an estimator or"):
        from_lightgbm(3)
    with pytest.raises(TypeError, match="an estimator or a Booster of XGBoost"):
        from_xgboost(lgb.LGBMRegressor())


def test_xgboost_gives_what_was_set():
    xgb = pytest.importorskip("xgboost", reason="needs XGBoost: pip install 'boostbp[xgboost]'")
    settings = {"max_depth": 3, "gamma": 0.2, "monotone_constraints": (1, 0, 0), "tree_method": "hist", "max_leaves": 0}
    estimator = xgb.XGBClassifier(n_estimators=4, learning_rate=0.07, min_child_weight=3, **settings)
    booster = estimator.fit(X, y > 0.5).get_booster()
    for source in estimator, booster:
        model, words = said(source, from_xgboost)
        assert isinstance(model, BoostBPClassifier)
        assert changes(model) == {
            "backend": "xgboost",
            "n_estimators": 4,
            "learning_rate": 0.07,
            "max_depth": 3,
            "backend_params": {"gamma": 0.2},
            "output": {"monotone_constraints": (1, 0, 0)},
        }
        assert "min_child_weight=3: it becomes min_samples_leaf" in words.replace("3.0", "3")
    quantile = xgb.XGBRegressor(objective="reg:quantileerror", quantile_alpha=0.2, n_estimators=2).fit(X, y)
    for source in quantile, quantile.get_booster():
        assert {name: changes(from_xgboost(source))[name] for name in ("loss", "alpha")} == {
            "loss": "reg:quantileerror",
            "alpha": 0.2,
        }
    model, words = said({"objective": "survival:aft", "aft_loss_distribution": "logistic"}, from_xgboost)
    assert isinstance(model, BoostBPSurvival)
    assert "use loss=losses.AFT(distribution" in words
    assert isinstance(from_xgboost(xgb.XGBRanker()), BoostBPRanker)
    assert said({"missing": -1.0}, from_xgboost)[1].endswith(
        "missing=-1.0: only NaN is missing: recode other values as NaN."
    )
    assert not changes(from_xgboost({"missing": float("nan")})).keys() - {"backend"}


def test_forests_and_second_names_of_xgboost_are_said():
    xgb = pytest.importorskip("xgboost", reason="needs XGBoost: pip install 'boostbp[xgboost]'")
    forest = xgb.XGBRFRegressor(n_estimators=5).fit(X, y)
    exact = xgb.train({"num_parallel_tree": 3, "tree_method": "exact"}, xgb.DMatrix(X, y), 2)
    for source, name in (forest, "num_parallel_tree=5"), (exact, "num_parallel_tree=3"), (exact, "tree_method='exact'"):
        assert name in said(source, from_xgboost)[1]
    assert (
        from_xgboost(
            xgb.train({"num_class": 3, "objective": "multi:softmax"}, xgb.DMatrix(X, np.arange(60) % 3), 2)
        ).n_estimators
        == 2
    )
    assert "random_state=2: random_state=1 is there already" in said({"seed": 1, "random_state": 2}, from_xgboost)[1]


def test_no_parameter_of_xgboost_is_lost():
    xgb = pytest.importorskip("xgboost", reason="needs XGBoost: pip install 'boostbp[xgboost]'")
    config = json.loads(xgb.Booster({"num_feature": 1}).save_config())["learner"]["gradient_booster"][
        "tree_train_param"
    ]
    for name in (config.keys() | xgb.XGBRegressor().get_params().keys()) - {"objective"}:
        model, words = said({name: 0.25}, from_xgboost)
        assert name in (*_NEEDLESS, "verbosity") or changes(model).keys() - {"backend"} or f"{name}=0.25: " in words, (
            name
        )
