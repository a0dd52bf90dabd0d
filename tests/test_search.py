"""Search spaces: what they draw is what the models take."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import optuna
import pytest
from flat_parameters import parameters
from sklearn.base import clone
from sklearn.model_selection import ParameterSampler, RandomizedSearchCV

from boostbp import BoostBPRegressor, callbacks, search
from boostbp.estimators.request import Request
from boostbp.search import SPACES, Choice, Integer, Number, Shape

DIMENSIONS = {
    "kind": Choice(("linear", None)),
    "few": Integer(1, 3),
    "many": Integer(4, 128, log=True),
    "share": Number(0.5, 1.0),
    "penalty": Number(1e-3, 10.0, log=True),
}


def inside(values):
    assert all(value["kind"] in ("linear", None) for value in values)
    assert {value["few"] for value in values} == {1, 2, 3}
    assert all(4 <= value["many"] <= 128 and type(value["many"]) is int for value in values)
    assert all(0.5 <= value["share"] <= 1.0 for value in values)
    assert all(1e-3 <= value["penalty"] <= 10.0 for value in values)


def test_random_draws_lie_in_the_space_and_follow_its_scale():
    rng = np.random.default_rng(0)
    drawn = [search.sample(rng, DIMENSIONS) for _ in range(2000)]
    inside(drawn)
    assert np.median([value["penalty"] for value in drawn]) == pytest.approx(0.1, rel=0.2)
    assert np.median([value["many"] for value in drawn]) == pytest.approx(np.sqrt(4 * 128), rel=0.1)


@pytest.mark.parametrize("kind", list(SPACES))
def test_searches_of_scikit_learn_draw_what_models_take(kind):
    drawn = [list(ParameterSampler(SPACES[kind], 60, random_state=seed)) for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]
    for name, dimension in SPACES[kind].items():
        values = [params[name] for params in drawn[0]]
        if isinstance(dimension, Choice):
            assert set(values) == set(dimension.options)
        elif isinstance(dimension, Shape):
            options = {(units,) * layers for units in dimension.units.options for layers in (1, 2)}
            assert set(values) == options
        else:
            assert dimension.low <= min(values) < max(values) <= dimension.high
    for params in drawn[0]:
        model = clone(BoostBPRegressor()).set_params(**params)
        assert {name: model.get_params()[name] for name in params} == params


def test_randomized_search_fits_what_the_space_draws():
    X = np.random.default_rng(0).uniform(size=(150, 3))
    y = X[:, 0] * X[:, 1]
    small = {"hidden_layer_sizes": Shape(Integer(1, 2), Choice((2, 3))), "output__n_estimators": Choice((2, 4))}
    space = SPACES["deep"] | small | {"epochs": Choice((1, 2)), "deep": [True], "hidden__n_estimators": Choice((0, 2))}
    found = RandomizedSearchCV(BoostBPRegressor(random_state=0), space, n_iter=6, cv=2, random_state=0).fit(X, y)
    sizes = set()
    for params, score in zip(found.cv_results_["params"], found.cv_results_["mean_test_score"], strict=True):
        assert np.isfinite(score)
        sizes.add(params["hidden_layer_sizes"])
    assert {len(layers) for layers in sizes} == {1, 2}
    best = found.best_estimator_
    assert best.hidden_layer_sizes == found.best_params_["hidden_layer_sizes"]
    assert [layer.forest.n_outputs for layer in best.network_.layers[:-1]] == list(best.hidden_layer_sizes)


def test_optuna_draws_from_the_space():
    drawn = []
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(lambda trial: drawn.append(search.suggest(trial, DIMENSIONS)) or 0.0, n_trials=30)
    inside(drawn)
    assert study.trials[7].params == drawn[7]
    assert set(study.best_params) == set(DIMENSIONS)  # also where the first trial is the best


def distance(params):
    return (np.log(params["penalty"]) + 2.0) ** 2 + (params["share"] - 0.9) ** 2 + abs(params["few"] - 2)


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_samplers_see_the_space_as_if_each_dimension_was_suggested_by_hand(begun):
    """Joint samplers model the parameters that all trials have: the first one has them all, too."""

    def by_hand(trial):
        params = {
            "penalty": trial.suggest_float("penalty", 1e-3, 10.0, log=True),
            "few": trial.suggest_int("few", 1, 3),
        }
        return distance(params | {"share": trial.suggest_float("share", 0.5, 1.0)})

    def suggested(trial):
        return distance(search.suggest(trial, {name: DIMENSIONS[name] for name in ("penalty", "few", "share")}))

    found = []
    for objective in (by_hand, suggested):
        study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0, multivariate=True))
        if begun:
            study.enqueue_trial({"few": 3})
        study.optimize(objective, n_trials=20)
        joint = study.sampler.infer_relative_search_space(study, study.trials[-1])
        assert set(joint) == {"penalty", "few", "share"} == set(study.best_params)
        found.append([trial.params for trial in study.trials])
    assert found[0] == found[1]


@pytest.mark.parametrize(("kind", "sizes"), [("deep", (16,)), ("single", ())])
def test_a_search_may_begin_with_the_default_values(kind, sizes):
    study, seen = optuna.create_study(), []
    study.enqueue_trial(search.start(SPACES[kind]))
    study.optimize(lambda trial: seen.append(search.suggest(trial, SPACES[kind])) or 0.0, n_trials=1)
    assert len(study.best_params) == len(SPACES[kind]) + (kind == "deep")  # a shape is two
    models = [BoostBPRegressor(**{"hidden_layer_sizes": sizes, "random_state": 0} | how) for how in ({}, seen[0])]
    settings = [Request.of(model).settings(100, 1, 0) for model in models]
    assert settings[0] == replace(settings[1], given=settings[0].given)  # what is given counts in first layers, too
    of_ones_own = {"kind": Choice((1, 2)), "max_depth": Integer(5, 9), "epochs": Choice((300,))}
    assert search.start(of_ones_own) == {"epochs": 300}
    assert "hidden__max_depth" not in search.start(SPACES["deep"], {"max_depth": 2})


def test_names_of_a_space_become_parameters():
    drawn = {"layers": 2, "units": 8, "hidden__n_estimators": 0, "output__max_depth": 3, "reg_lambda": 2.0}
    assert search.nested(drawn) == {
        "hidden_layer_sizes": (8, 8),
        "hidden": {"n_estimators": 0},
        "output": {"max_depth": 3},
        "reg_lambda": 2.0,  # of another library, say
    }
    fixed = {"hidden_layer_sizes": (4, 4), "hidden": {"max_depth": 2}, "hidden__n_estimators": 7}
    assert search.nested(fixed) == {"hidden_layer_sizes": (4, 4), "hidden": {"max_depth": 2, "n_estimators": 7}}


def test_fields_by_their_bare_names_are_for_every_layer():
    flat = {"max_depth": 2, "basis": "linear", "hidden__basis": "quadratic", "skip": True, "output": {"base": "zero"}}
    assert search.parameters(flat) == {
        "max_depth": 2,
        "hidden": {"basis": "quadratic"},
        "output": {"basis": "linear", "base": "zero"},
        "backprop": {"skip": True},
    }
    BoostBPRegressor(**search.parameters(flat))
    held = {"base": "zero", "hidden": [{"base": "ridge"}, None], "hidden__clip": False}
    assert search.parameters(held)["hidden"] == [{"base": "ridge", "clip": False}, {"base": "zero", "clip": False}]


def test_what_is_given_is_not_searched():
    given = {"hidden_layer_sizes": (4, 4), "hidden__n_estimators": 0, "max_depth": 4, "backprop": {"skip": True}}
    rng = np.random.default_rng(0)
    drawn = [search.sample(rng, SPACES["deep"], given) for _ in range(20)]
    assert {value["hidden_layer_sizes"] for value in drawn} == {(4, 4)}
    assert {value["hidden"]["n_estimators"] for value in drawn} == {0}
    assert {value["output"]["n_estimators"] for value in drawn} == {100, 300}
    assert not any("max_depth" in value["hidden"] or "max_depth" in value["output"] for value in drawn)
    assert all(value["backprop"] == {"skip": True} for value in drawn)
    assert len({value["hidden"]["reg_lambda"] for value in drawn}) == len(drawn)


@pytest.mark.parametrize("kind", ["deep", "single"])
def test_every_corner_of_our_spaces_can_be_fitted(kind):
    X = np.random.default_rng(0).uniform(size=(400, 4))
    ends = [
        lambda d: d.options[0] if isinstance(d, Choice) else d.low,
        lambda d: d.options[-1] if isinstance(d, Choice) else d.high,
    ]
    for end in ends:
        space = dict(SPACES[kind])
        shape = space.pop("hidden_layer_sizes", Shape(Integer(0, 0), Choice((4,))))
        chosen = search.nested({name: end(each) for name, each in space.items()})
        chosen["hidden_layer_sizes"] = (4,) * end(shape.layers)
        model = BoostBPRegressor(**{**chosen, "epochs": 1}).fit(X, X[:, 0])
        assert model.score(X, X[:, 0]) > 0.5


def test_optuna_is_told_the_metric_of_each_epoch_and_prunes_by_it():
    X = np.random.default_rng(0).uniform(size=(200, 3))
    seen = []

    def fit(trial):
        shape = {"hidden_layer_sizes": (2,), "n_estimators": 3, "epochs": 3, "deep": True, "random_state": 0}
        model = BoostBPRegressor(**parameters(**shape))
        model.fit(X, X[:, 0], eval_set=[(X[:50], X[:50, 0])], callbacks=[callbacks.optuna_pruning(trial)])
        seen.append(model.history_.metrics("valid_0"))
        return seen[-1][-1]

    study = optuna.create_study()
    study.optimize(fit, n_trials=1)
    told = study.trials[0].intermediate_values
    assert [told[epoch] for epoch in sorted(told)] == seen[0]
    study = optuna.create_study(pruner=optuna.pruners.ThresholdPruner(upper=0.0, n_warmup_steps=1))
    study.optimize(fit, n_trials=1)
    assert study.trials[0].state is optuna.trial.TrialState.PRUNED
    assert list(study.trials[0].intermediate_values) == [0, 1]
    assert len(seen) == 1


def test_pruning_wants_a_study_that_goes_the_way_of_the_metric():
    X = np.random.default_rng(0).uniform(size=(60, 3))
    given = [(X[:20], X[:20, 0]), (X[20:], X[20:, 0])]

    def fit(trial, name=None, eval_set=given):
        shape = {"hidden_layer_sizes": (2,), "n_estimators": 2, "epochs": 1, "deep": True, "random_state": 0}
        model = BoostBPRegressor(**parameters(**shape), eval_metric="r2", early_stopping=False)
        prune = callbacks.optuna_pruning(trial, name=name)
        return model.fit(X, X[:, 0], eval_set=eval_set, callbacks=[prune]).history_

    with pytest.raises(ValueError, match=r"\['MINIMIZE'\], .*'r2': use create_study\(direction='maximize'\)"):
        optuna.create_study().optimize(fit, n_trials=1)
    with pytest.raises(ValueError, match=r"\['MAXIMIZE', 'MAXIMIZE'\]"):
        optuna.create_study(directions=["maximize"] * 2).optimize(fit, n_trials=1)
    study = optuna.create_study(direction="maximize")
    with pytest.raises(
        ValueError, match=r"optuna_pruning\(name='late'\): the evaluation sets are 'valid_0', 'valid_1'"
    ):
        fit(study.ask(), "late")
    with pytest.raises(ValueError, match=r"optuna_pruning\(...\) has no evaluation set: pass eval_set to fit"):
        fit(study.ask(), eval_set=None)
    trial = study.ask()
    history = fit(trial, "valid_1")
    assert list(study.trials[trial.number].intermediate_values.values()) == history.metrics("valid_1")
    assert fit(optuna.trial.FixedTrial({})).metrics("valid_0") == history.metrics("valid_0")


def test_trials_that_say_what_they_want_get_it():
    fixed = {"kind": None, "few": 2, "many": 64, "share": 0.75, "penalty": 0.5}
    assert search.suggest(optuna.trial.FixedTrial(fixed), DIMENSIONS) == fixed
    study, seen = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0)), []
    study.enqueue_trial({"few": 3})
    study.optimize(lambda trial: seen.append(search.suggest(trial, DIMENSIONS)) or 0.0, n_trials=1)
    assert seen[0]["few"] == 3
