"""Words of other libraries are answered by what to use, wherever they are written."""

from __future__ import annotations

import numpy as np
import pytest

from boostbp import BoostBPAutoencoder, BoostBPClassifier, BoostBPRegressor
from boostbp.backends import available
from boostbp.runtime.messages import _NATIVE, MEANT, NOT_THERE, nearest, suggestion

X, y = np.arange(40.0).reshape(20, 2), np.arange(20) % 2


@pytest.mark.parametrize(
    ("kind", "name", "cure"),
    [
        (BoostBPClassifier, "is_unbalance", r"use class_weight='balanced' of BoostBPClassifier"),
        (BoostBPRegressor, "is_unbalance", r"use class_weight='balanced' of BoostBPClassifier"),
        (BoostBPClassifier, "scale_pos_weight", r"class_weight=\{negative: 1, positive: scale_pos_weight\}"),
        (BoostBPClassifier, "class_weights", "did you mean 'class_weight'?"),
        (BoostBPRegressor, "class_weights", "BoostBPClassifier has class_weight; .* sample_weight"),
        (BoostBPRegressor, "class_weight", "BoostBPClassifier has class_weight"),
        (BoostBPRegressor, "monotone_constraints", r"did you mean output=\{'monotone_constraints': ...\}"),
        (BoostBPRegressor, "monotonic_cst", r"did you mean output=\{'monotone_constraints': ...\}"),
        (BoostBPRegressor, "init_score", "did you mean offset=... of fit?"),
        (BoostBPRegressor, "base_margin", "did you mean offset=... of fit?"),
        (BoostBPRegressor, "init_model", "did you mean init_model=... of fit?"),
        (BoostBPRegressor, "xgb_model", "did you mean init_model=... of fit?"),
        (BoostBPRegressor, "exposure", "give its logarithm as offset=... of fit and predict"),
        (BoostBPRegressor, "group", "use BoostBPRanker, whose fit takes group or qid"),
        (
            BoostBPRegressor,
            "early_stopping_rounds",
            r"for epochs of a network, deep=True with backprop=\{'n_iter",
        ),
        (BoostBPRegressor, "device", r"native parameter: give it as backend_params=\{'device': ...\}"),
        (BoostBPRegressor, "max_delta_step", r"native parameter: give it as backend_params=\{'max_delta_step': ...\}"),
        (BoostBPRegressor, "interaction_constraints", r"with hidden_layer_sizes=\(\), set backend_params="),
        (BoostBPRegressor, "activation", "have no activation"),
        (BoostBPClassifier, "alpha", "the level of a quantile is alpha of BoostBPRegressor; .* no L1 penalty"),
        (BoostBPRegressor, "booster", "dart, rf and gblinear are not supported"),
        (BoostBPRegressor, "num_leafs", r"did you mean output=\{'max_leaves': ...\}"),
        (BoostBPRegressor, "depht", "did you mean 'max_depth'"),
        (BoostBPRegressor, "N_estimators", "did you mean 'n_estimators'"),
        (BoostBPRegressor, "temperature", "choose from "),
    ],
)
def test_parameters_of_other_libraries_are_answered(kind, name, cure):
    with pytest.raises(TypeError, match=rf"{kind.__name__} has no parameter '{name}': .*{cure.rstrip('?')}"):
        kind(**{name: 1})
    with pytest.raises(ValueError, match=rf"{kind.__name__} has no parameter '{name}': .*{cure.rstrip('?')}"):
        kind().set_params(**{name: 1})


@pytest.mark.parametrize(
    ("kind", "name", "cure"),
    [
        (BoostBPRegressor, "init_score", "did you mean 'offset'"),
        (BoostBPRegressor, "eval_init_score", "did you mean 'eval_offset'"),
        (BoostBPClassifier, "base_margin", "did you mean 'offset'"),
        (BoostBPClassifier, "xgb_model", "did you mean 'init_model'"),
        (BoostBPRegressor, "sample_weights", "did you mean 'sample_weight'"),
        (BoostBPRegressor, "eval_metric", "did you mean 'eval_metric' of the constructor"),
        (BoostBPRegressor, "categorical_feature", "did you mean 'categorical_features' of the constructor"),
        (BoostBPRegressor, "early_stopping_rounds", "layers choose their rounds on held-out rows without it"),
        (BoostBPRegressor, "exposure", "give its logarithm as offset"),
        (BoostBPRegressor, "qid", "use BoostBPRanker"),
        (BoostBPAutoencoder, "offsets", "choose from 'X'|choose from X"),
    ],
)
def test_arguments_of_other_libraries_are_answered(kind, name, cure):
    with pytest.raises(TypeError, match=rf"fit of {kind.__name__} has no argument '{name}': .*({cure})"):
        kind().fit(X, y, **{name: y})


@pytest.mark.parametrize("kind", [BoostBPClassifier, BoostBPRegressor])
@pytest.mark.parametrize(
    ("name", "cure"),
    [
        ("base_margin", "did you mean 'offset'"),
        ("pred_contrib", r"use attributions\(X\)"),
        ("pred_leaf", r"use apply\(X\)"),
        ("output_margin", r"use decision_function\(X\) of BoostBPClassifier"),
        ("iteration_range", r"use staged_predict\(X\)"),
        ("n_jobs", "did you mean 'n_jobs' of the constructor"),
    ],
)
def test_arguments_of_other_librarys_predictions_are_answered(kind, name, cure):
    methods = ("predict", "predict_proba") if kind is BoostBPClassifier else ("predict",)
    for method in methods:
        with pytest.raises(TypeError, match=rf"{method} of {kind.__name__} has no argument '{name}': .*{cure}"):
            getattr(kind(), method)(X, **{name: 1})


@pytest.mark.parametrize(
    ("name", "cure"),
    [
        ("lambdarank", "use BoostBPRanker"),
        ("rank:ndcg", "use BoostBPRanker"),
        ("survival:cox", "use BoostBPSurvival"),
        ("aft", "is for survival: use BoostBPSurvival"),
    ],
)
def test_losses_of_ranking_and_survival_are_answered(name, cure):
    with pytest.raises(ValueError, match=rf"loss='{name}'.*{cure}"):
        BoostBPRegressor(loss=name).fit(X, y)


@pytest.mark.parametrize("name", _NATIVE.split())
def test_native_parameters_are_known_to_a_library(name):
    """What an answer sends to `backend_params` is taken there, or refused for its value alone."""
    answers = []
    for backend in {"lightgbm", "xgboost"}.intersection(available()):
        try:
            BoostBPRegressor((), n_estimators=1, backend=backend, backend_params={name: "?"}).fit(X, y)
        except ValueError as error:
            answers.append(str(error))
    assert any("is not known" in answer or "is not allowed" in answer for answer in answers), answers


@pytest.mark.parametrize(
    ("name", "known", "near"),
    [
        ("rsmle", ["rmse", "rmsle", "mse"], "rmsle"),
        ("device", ["deep", "verbose"], None),
        ("activation", ["calibration"], None),
        ("max_delta_step", ["max_depth"], None),
        ("learningrate", ["learning_rate"], "learning_rate"),
        ("", ["deep"], None),
    ],
)
def test_a_slip_is_a_letter_or_two(name, known, near):
    assert nearest(name, known) == near


def test_metrics_and_losses_are_named_by_the_nearest_or_those_of_the_task():
    with pytest.raises(ValueError, match=r"eval_metric='rsmle' is unknown: did you mean 'rmsle'\?$"):
        BoostBPRegressor(eval_metric="rsmle").fit(X, y)
    for kind, there, elsewhere in ((BoostBPRegressor, "huber", "softmax"), (BoostBPClassifier, "softmax", "huber")):
        with pytest.raises(ValueError, match=f"loss='zzz' is unknown: use one of .*{there}") as told:
            kind(loss="zzz").fit(X, y)
        assert elsewhere not in str(told.value)


@pytest.mark.parametrize(
    ("name", "cure"), [("ndcg@5", "BoostBPRanker"), ("map", "BoostBPRanker"), ("cox-nloglik", "use BoostBPSurvival")]
)
def test_metrics_of_ranking_and_survival_are_answered(name, cure):
    with pytest.raises(ValueError, match=rf"eval_metric='{name}'.*{cure}"):
        BoostBPRegressor(eval_metric=name).fit(X, y)


@pytest.mark.parametrize("name", ["is_unbalance", "scale_pos_weight", "monotone_constraints", "lambdarank_norm"])
def test_native_parameters_are_answered(name):
    cures = {"monotone_constraints": "Use output=", "lambdarank_norm": "Use BoostBPRanker"}
    cure = cures.get(name, "Use class_weight of BoostBPClassifier, or sample_weight")
    with pytest.raises(ValueError, match=rf"backend_params\['{name}'\]=.* is not supported: .*{cure}"):
        BoostBPClassifier((), backend_params={name: [1, 0] if name == "monotone_constraints" else 1}).fit(X, y)


def test_every_answer_is_a_clause_that_ends():
    assert not MEANT.keys() & NOT_THERE.keys()
    places = ["offset", "sample_weight"]
    for name in (*MEANT, *NOT_THERE, "nothing like it"):
        assert suggestion(name, places)[-1] in ".?"
