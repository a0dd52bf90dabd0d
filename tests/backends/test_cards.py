"""Trees that grow on a card: what the libraries are told, by stand-ins on the CPU; and the duties, where a card is."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pytest
from leaf_oracles import ORACLES, table, target

import boostbp
from boostbp import BoostBPRegressor, fit_layer
from boostbp.backends import _lightgbm_calls, check_backend, load_backend, native_params
from boostbp.backends import lightgbm as ours_lightgbm
from boostbp.backends import xgboost as ours_xgboost
from boostbp.backends.base import TreeParams

DATA = table(np.random.default_rng(0), 300)
GRAD = target(np.random.default_rng(1), DATA)
X = np.random.default_rng(2).normal(size=(200, 3))
Y = X[:, 0] * X[:, 1]
REFUSE_FATAL_CARD = ours_lightgbm.refuse_fatal_card
MODULES: dict[str, Any] = {"lightgbm": ours_lightgbm, "xgboost": ours_xgboost}


class StandIn:
    """A library that seems to have a card: it notes what it is told, and does the work on the CPU."""

    def __init__(self, real: Any) -> None:
        self.real = real
        self.told: list[tuple[str, dict[str, Any]]] = []
        self.gradients: list[np.ndarray] = []
        self.at_once = self.most_at_once = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def on_cpu(self, kind: str, params: dict[str, Any]) -> dict[str, Any]:
        self.told.append((kind, dict(params)))
        return {name: value for name, value in params.items() if name not in ("device", "device_type")}

    @contextmanager
    def growing(self, *gradients: np.ndarray) -> Iterator[None]:
        self.gradients += gradients
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        threading.Event().wait(0.001)  # others may come
        yield
        self.at_once -= 1

    def Dataset(self, X: Any, *, params: dict[str, Any], **how: Any) -> Any:
        return self.real.Dataset(X, params=self.on_cpu("Dataset", params), **how)

    def Booster(self, params: dict[str, Any], *data: Any) -> Any:
        stand_in = self

        class Booster(self.real.Booster):  # type: ignore[misc, name-defined]
            def boost(self, matrix: Any, iteration: int, *, grad: Any, hess: Any) -> None:
                with stand_in.growing(grad, hess):
                    super().boost(matrix, iteration, grad=grad, hess=hess)

            def save_config(self) -> str:
                config = json.loads(super().save_config())
                config["learner"]["generic_param"]["device"] = params.get("device", "cpu")
                return json.dumps(config)

        return Booster(self.on_cpu("Booster", params), *data)


@contextmanager
def stand_in_for(name: str) -> Iterator[StandIn]:
    stand_in = StandIn(MODULES[name]._library())
    update = _lightgbm_calls.update

    def noted(library: Any, booster: Any, grad: np.ndarray, hess: np.ndarray) -> None:
        with stand_in.growing(grad, hess):
            update(library, booster, grad, hess)

    with (
        mock.patch.object(MODULES[name], "_library", return_value=stand_in),
        mock.patch.object(_lightgbm_calls, "update", noted),
    ):
        yield stand_in


@pytest.fixture(params=MODULES)
def card(request: pytest.FixtureRequest) -> Any:
    with stand_in_for(request.param) as stand_in:
        yield SimpleNamespace(name=request.param, stand_in=stand_in)


@pytest.fixture(autouse=True)
def no_other_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand-ins have a card, which the process that tries LightGBM's would not find."""
    monkeypatch.setattr(ours_lightgbm, "refuse_fatal_card", lambda device: None)


def grown(name: str, params: dict[str, Any]) -> Any:
    grower = load_backend(name).bind(DATA, TreeParams(max_depth=4, min_samples_leaf=5, params=params))
    return grower.grow(GRAD, np.ones_like(GRAD))


def test_the_library_is_told_of_the_card_wherever_it_bins_and_grows(card: Any) -> None:
    device = {"lightgbm": {"device_type": "cuda"}, "xgboost": {"device": "cuda:1"}}[card.name]
    trees = grown(card.name, device)
    told = card.stand_in.told
    assert {kind for kind, _ in told} == ({"Dataset", "Booster"} if card.name == "lightgbm" else {"Booster"})
    for _, params in told:
        assert device.items() <= params.items()
        if card.name == "lightgbm":
            assert params["force_row_wise"]
            assert "force_col_wise" not in params
        else:
            assert params["fail_on_invalid_gpu_id"]
            assert params["tree_method"] == "hist"
    assert card.stand_in.gradients
    assert {part.dtype for part in card.stand_in.gradients} == {np.dtype(np.float32)}
    for tree, other in zip(trees, grown(card.name, {"device": "cpu"}), strict=True):
        np.testing.assert_array_equal(tree.threshold, other.threshold)


def test_opencl_of_lightgbm_bins_by_columns() -> None:
    which = {"gpu_platform_id": 0, "gpu_device_id": -1, "gpu_use_dp": True}
    with stand_in_for("lightgbm") as stand_in:
        grown("lightgbm", {"device": "gpu", **which})
    for _, params in stand_in.told:
        assert (which | {"device_type": "gpu", "force_col_wise": True}).items() <= params.items()


def test_one_grower_at_a_time_is_on_the_card(card: Any) -> None:
    H = np.random.default_rng(3).normal(size=(400, 3))
    layer = {"n_estimators": 5, "backend_params": {"device": "cuda"}}
    fit_layer(H, np.sin(H @ np.ones((3, 6)) + np.arange(6)), layer, backend=card.name, n_jobs=4)
    assert len(card.stand_in.gradients) >= 2 * 5
    assert card.stand_in.most_at_once == 1


def test_a_whole_model_trains_with_a_card(card: Any) -> None:
    how: dict[str, Any] = {"hidden_layer_sizes": (3,), "epochs": 2, "n_estimators": 20, "deep": True, "random_state": 0}
    model = BoostBPRegressor(**how, backend=card.name, backend_params={"device": "cuda"}).fit(X, Y)
    assert card.stand_in.told
    assert all(params.get("device", params.get("device_type")) == "cuda" for _, params in card.stand_in.told)
    assert model.score(X, Y) > 0.5


@pytest.mark.parametrize(
    ("name", "device", "says"),
    [
        ("lightgbm", "cuda", r"LightGBM failed with backend_params={'device': 'cuda'}: .*CUDA"),
        ("xgboost", "cuda:999", r"XGBoost (finds no card for|failed with) backend_params={'device': 'cuda:999'}"),
        ("xgboost", "gpu:999", r"XGBoost (finds no card for|failed with) backend_params={'device': 'gpu:999'}"),
    ],
)
def test_a_card_that_is_not_there_is_named_with_the_cure(name: str, device: str, says: str) -> None:
    with pytest.raises(ValueError, match=f"(?s){says}") as caught:  # where there is a card, it is not the thousandth
        grown(name, {"device": device})
    assert str(caught.value).endswith(native_params.NO_DEVICE)


@pytest.mark.parametrize("status", [-6, 0xC0000409])
def test_a_build_of_lightgbm_that_would_end_the_process_is_refused(status: int) -> None:
    with (
        mock.patch.object(subprocess, "run", return_value=SimpleNamespace(returncode=status, stderr=b"...\nno driver")),
        pytest.raises(
            ValueError, match=rf"ends the process \(status {status}\).*device_type='cuda': no driver\. Leave the"
        ),
    ):
        REFUSE_FATAL_CARD.__wrapped__("cuda")


@pytest.mark.slow
def test_the_process_that_tries_a_card_reaches_lightgbm() -> None:
    run, ran = subprocess.run, list[Any]()
    with mock.patch.object(subprocess, "run", lambda *args, **how: ran.append(run(*args, **how)) or ran[0]):
        REFUSE_FATAL_CARD.__wrapped__("cuda")  # a build without CUDA raises an error of Python
    assert b"CUDA" in ran[0].stderr


@pytest.mark.parametrize(
    ("name", "value"), [("xgboost", "cuda:x"), ("xgboost", "sycl"), ("xgboost", 3), ("lightgbm", "tpu")]
)
def test_devices_that_the_library_does_not_have_are_refused(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=r"backend_params\['device'\]=.*'cuda'"):
        load_backend(name).bind(DATA, TreeParams(params={"device": value}))


def test_linear_trees_of_lightgbm_do_not_grow_on_a_card() -> None:
    layer = {"leaves": "native", "basis": "linear", "backend_params": {"device": "cuda"}}
    refusal = pytest.raises(ValueError, match=r"leaves='native' .*backend_params=.*cuda.*leaves='refit'")
    with stand_in_for("lightgbm"), refusal:
        fit_layer(X, Y, layer)


class OnCard:
    """A backend that grows every tree on the first card."""

    def __init__(self, name: str) -> None:
        self.of = load_backend(name)
        self.capabilities = replace(self.of.capabilities, deterministic=False)

    def bind(self, data: Any, growth: TreeParams) -> Any:
        return self.of.bind(data, replace(growth, params={**growth.params, "device": "cuda"}))


@pytest.fixture(params=MODULES)
def with_card(request: pytest.FixtureRequest) -> str:
    try:
        grown(request.param, {"device": "cuda"})
    except ValueError as error:
        pytest.skip(str(error))
    return request.param


def test_the_duties_are_kept_on_a_card(with_card: str) -> None:
    check_backend(OnCard(with_card), leaf_of=ORACLES[with_card])


@pytest.mark.parametrize("quality", [1, 2])
def test_a_model_from_a_card_is_as_good_and_predicts_without_it(with_card: str, quality: int, tmp_path: Any) -> None:
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(3000, 6))
    rows[rng.random(rows.shape) < 0.05] = np.nan
    y = np.nan_to_num(rows[:, 0] * rows[:, 1]) + np.nan_to_num(rows[:, 2]) + rng.normal(size=len(rows)) / 5
    how: dict[str, Any] = {"quality": quality, "backend": with_card, "random_state": 0}
    kinds = [BoostBPRegressor(**how, backend_params=params) for params in ({"device": "cuda"}, {})]
    models = [model.fit(rows[:2000], y[:2000]) for model in kinds]
    on_card, on_cpu = (model.score(rows[2000:], y[2000:]) for model in models)
    assert on_card > on_cpu - 0.02
    boostbp.save(models[0], tmp_path / "model")
    with mock.patch.object(MODULES[with_card], "_library", side_effect=AssertionError("the library is not needed")):
        np.testing.assert_array_equal(boostbp.load(tmp_path / "model").predict(rows), models[0].predict(rows))
