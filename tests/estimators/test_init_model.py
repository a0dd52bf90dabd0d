"""Training goes on from a fitted model, on other rows: against more rounds at once, and LightGBM's initial scores."""

from __future__ import annotations

from itertools import product

import lightgbm
import numpy as np
import pandas as pd
import pytest
from flat_parameters import parameters
from helpers import BACKENDS
from scipy.sparse import csr_matrix
from sklearn.datasets import load_iris, make_friedman1
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression

import boostbp
from boostbp import BoostBPAutoencoder, BoostBPClassifier, BoostBPRegressor, load, save
from boostbp.distributed.worker import refuse_unsupported
from boostbp.losses import Quantile

X, y = make_friedman1(600, n_features=5, noise=1.0, random_state=0)
OLD, NEW, TEST = slice(0, 150), slice(150, 450), slice(450, 600)
MODELS = {
    "network": {"hidden_layer_sizes": (3,), "deep": True, "epochs": 3},
    "skip": {"hidden_layer_sizes": (3, 2), "deep": True, "epochs": 2, "skip": True},
    "single": {"hidden_layer_sizes": ()},
    "layers": {"hidden_layer_sizes": (3,), "deep": False},
    "average": {"hidden_layer_sizes": (3,), "n_estimators": 12, "epochs": 2},
    "mean": {"hidden_layer_sizes": (3,), "n_estimators": 5, "epochs": 1, "quality": 5},
}
QUICK = [("lightgbm", "network"), ("lightgbm", "average"), *((backend, "single") for backend in BACKENDS)]
PAIRS = [
    pytest.param(backend, kind, marks=[] if (backend, kind) in QUICK else pytest.mark.slow)
    for backend, kind in product(BACKENDS, MODELS)
    if backend == "lightgbm" or kind in ("network", "single")
]
PLAIN = {"hidden_layer_sizes": (), "basis": "constant", "base": "zero", "reg_lambda": 0.0, "early_stopping": False}
PLAIN |= {"extra_trees": False, "max_bins": 255, "learning_rate": 0.1, "max_depth": 3, "random_state": 0}


def model_of(kind, **changes):
    fast = {"n_estimators": 20, "random_state": 0}
    return BoostBPRegressor(**parameters(**(fast | MODELS[kind] | changes)))


def rmse(model, rows=TEST):
    return float(np.sqrt(np.mean((model.predict(X[rows]) - y[rows]) ** 2)))


@pytest.mark.parametrize("backend", BACKENDS)
def test_rounds_go_on_as_if_they_had_never_ended(backend):
    first = BoostBPRegressor(**parameters(n_estimators=13, backend=backend, **PLAIN)).fit(X, y)
    more = BoostBPRegressor(**parameters(n_estimators=17, backend=backend, **PLAIN)).fit(X, y, init_model=first)
    whole = BoostBPRegressor(**parameters(n_estimators=30, backend=backend, **PLAIN)).fit(X, y)
    np.testing.assert_allclose(more.predict(X), whole.predict(X), rtol=1e-6)
    assert more.network_.layers[0].forest.n_trees == 30


def test_new_rows_get_the_trees_of_lightgbm_with_the_old_prediction_as_its_initial_score():
    counts = np.random.default_rng(0).poisson(np.exp(y / 10))
    how = parameters(n_estimators=20, loss="poisson", **PLAIN)
    first = BoostBPRegressor(**how).fit(X[OLD], counts[OLD])
    more = BoostBPRegressor(**how).fit(X[NEW], counts[NEW], init_model=first)
    start = np.log(first.predict(X[NEW])) + more.network_.baseline - first.network_.baseline
    native = {"objective": "poisson", "learning_rate": 0.1, "max_depth": 3, "num_leaves": 8, "verbosity": -1}
    native |= {"min_sum_hessian_in_leaf": 0.0, "num_threads": 1, "boost_from_average": False}
    booster = lightgbm.train(native, lightgbm.Dataset(X[NEW], counts[NEW], init_score=start), 20)
    expected = start + booster.predict(X[NEW], raw_score=True)
    np.testing.assert_allclose(np.log(more.predict(X[NEW])), expected, rtol=0, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "kind"), PAIRS)
def test_new_rows_teach_every_kind_of_model_more(backend, kind, tmp_path):
    first = model_of(kind, backend=backend).fit(X[OLD], y[OLD])
    before = first.predict(X)
    more = model_of(kind, backend=backend).fit(X[NEW], y[NEW], init_model=first)
    np.testing.assert_array_equal(first.predict(X), before)
    assert rmse(more) < rmse(first)
    rest = model_of(kind, backend=backend).fit(X[NEW], y[NEW] - before[NEW])
    assert rmse(more) == pytest.approx(np.sqrt(np.mean((before + rest.predict(X) - y)[TEST] ** 2)), rel=0.1)
    save(first, tmp_path / "first")
    again = model_of(kind, backend=backend).fit(X[NEW], y[NEW], init_model=load(tmp_path / "first"))
    np.testing.assert_array_equal(again.predict(X), more.predict(X))
    save(more, tmp_path / "more")
    loaded = load(tmp_path / "more")
    np.testing.assert_array_equal(loaded.predict(X), more.predict(X))
    third = model_of(kind, backend=backend).fit(X, y, init_model=loaded)
    assert rmse(third, NEW) < rmse(first, NEW)


@pytest.mark.parametrize(("old", "new"), [("single", "network"), ("network", "layers"), ("average", "single")])
def test_single_layers_and_networks_join(old, new):
    first = model_of(old).fit(X[OLD], y[OLD])
    more = model_of(new).fit(X[NEW], y[NEW], init_model=first)
    assert rmse(more) < rmse(first)
    total = more.attributions(X[:5])
    np.testing.assert_allclose(total.values.sum(axis=2)[:, 0] + total.base_values[:, 0], more.predict(X[:5]))


def test_hidden_units_of_the_first_model_stay_and_are_used():
    first = model_of("network").fit(X[OLD], y[OLD])
    more = model_of("layers").fit(X[NEW], y[NEW], init_model=first)
    np.testing.assert_array_equal(more.transform(X), first.transform(X))  # without a warning that they have no weight
    wider = model_of("network").fit(X[NEW], y[NEW], init_model=first)
    np.testing.assert_array_equal(wider.transform(X)[:, :3], first.transform(X))
    assert len(wider.hidden_names()) == 6


def test_summary_tells_of_the_new_layers():
    first = model_of("network").fit(X[OLD], y[OLD])
    single = model_of("single").fit(X[NEW], y[NEW], init_model=first)
    assert "were not compared" not in single.summary()  # none was asked for
    layers = model_of("layers", early_stopping=False).fit(X[NEW], y[NEW], init_model=first)
    assert "Candidates of a single layer were not compared" in layers.summary()


@pytest.mark.parametrize(("old", "new"), [("single", "network"), ("network", "single")])
def test_sparse_rows_teach_what_dense_ones_do(old, new):
    A = np.where(X > 0.5, X, 0.0)
    sparse = csr_matrix(A)
    dense = model_of(new).fit(A[NEW], y[NEW], init_model=model_of(old).fit(A[OLD], y[OLD]))
    first = model_of(old).fit(sparse[OLD], y[OLD])
    more = model_of(new).fit(sparse[NEW], y[NEW], init_model=first)
    np.testing.assert_array_equal(more.predict(sparse), dense.predict(A))


@pytest.mark.parametrize("kind", ["network", "single"])
def test_scores_are_those_of_the_sum(kind):
    first = model_of(kind).fit(X[OLD], y[OLD])
    sets = {"eval_set": (X[TEST], y[TEST])}
    more = model_of(kind).fit(X[NEW], y[NEW], init_model=first, **sets)
    assert more.best_score_ == {"valid_0": {"rmse": pytest.approx(rmse(more))}}


def test_an_offset_stands_beside_the_earlier_model():
    offset = 10.0 * X[:, 0]
    first = model_of("network").fit(X[OLD], y[OLD], offset=offset[OLD])
    more = model_of("network").fit(X[NEW], y[NEW], init_model=first, offset=offset[NEW])
    plain = model_of("network").fit(X[OLD], (y - offset)[OLD])
    plain = model_of("network").fit(X[NEW], (y - offset)[NEW], init_model=plain)
    np.testing.assert_allclose(more.predict(X, offset=0), plain.predict(X), rtol=0, atol=1e-6)


def test_many_rows(tune):
    tune(MANY_ROWS=200, MANY_ROWS_SAMPLE=150)
    first = model_of("average").fit(X[OLD], y[OLD])
    assert rmse(model_of("average").fit(X[NEW], y[NEW], init_model=first)) < rmse(first)


def test_a_model_goes_on_from_itself_and_is_whole_if_that_fails():
    model = model_of("network").fit(X[OLD], y[OLD])
    copy, before = load_of(model), model.predict(X)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(X[NEW], np.full(300, np.nan), init_model=model)
    np.testing.assert_array_equal(model.predict(X), before)
    model.fit(X[NEW], y[NEW], init_model=model, keep_state=True)
    np.testing.assert_array_equal(model.predict(X), model_of("network").fit(X[NEW], y[NEW], init_model=copy).predict(X))
    model.fit_more(2)
    longer = model_of("network", epochs=5).fit(X[NEW], y[NEW], init_model=copy)
    np.testing.assert_array_equal(model.predict(X), longer.predict(X))


def load_of(model):
    copy = BoostBPRegressor(**model.get_params(deep=False))
    vars(copy).update({name: value for name, value in vars(model).items() if name.endswith("_") or name[0] == "_"})
    return copy


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_stay_those_of_the_first_model(n_classes):
    A, labels = load_iris(return_X_y=True)
    A, labels = A[labels < n_classes], np.array(["a", "b", "c"])[labels[labels < n_classes]]
    how = {"hidden_layer_sizes": (3,), "deep": True, "epochs": 2, "n_estimators": 5, "random_state": 0}
    first = BoostBPClassifier(**how).fit(A[::2], labels[::2])
    rows = labels == "b"
    more = BoostBPClassifier(**how).fit(A[rows], labels[rows], init_model=first)
    assert more.classes_.tolist() == first.classes_.tolist()
    assert more.predict_proba(A[rows])[:, 1].mean() > first.predict_proba(A[rows])[:, 1].mean()
    raw = more.decision_function(A) - first.decision_function(A)
    assert np.isfinite(raw).all()
    with pytest.raises(ValueError, match=r"classes unknown to the old model, \['d'\]"):
        BoostBPClassifier(**how).fit(A, np.where(rows, "d", labels), init_model=first)


def test_tables_are_read_as_the_first_model_reads_them():
    frame = pd.DataFrame({"shop": pd.Categorical(np.where(X[:, 0] > 0.5, "far", "near")), "size": X[:, 1]})
    first = model_of("network").fit(frame[OLD], y[OLD])
    other = frame[NEW].assign(shop=pd.Categorical(np.where(X[NEW, 0] > 0.5, "far", "new")))
    more = model_of("network", categorical_features=None).fit(other, y[NEW], init_model=first)
    assert more.schema_ == first.schema_
    assert more.feature_names_in_.tolist() == ["shop", "size"]
    with pytest.raises(ValueError, match="feature names"):
        model_of("network").fit(frame[["size", "shop"]], y, init_model=first)
    unnamed = model_of("network").fit(X, y)
    with pytest.raises(ValueError, match="5 features"):
        model_of("network").fit(X[:, :4], y, init_model=unnamed)


def test_sums_leave_python_as_one_model():
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    first = model_of("single").fit(X[OLD], y[OLD])
    more = model_of("network").fit(X[NEW], y[NEW], init_model=first)
    graph = boostbp.to_onnx(more).SerializeToString()
    [made] = runtime.InferenceSession(graph, providers=["CPUExecutionProvider"]).run(None, {"X": X})
    np.testing.assert_allclose(made, more.predict(X), rtol=1e-9)


def fitted(**changes):
    return model_of("network", **changes).fit(X[OLD], y[OLD])


@pytest.mark.parametrize(
    ("kind", "changes", "init_model", "error", "message"),
    [
        ("network", {}, "a.boostbp", TypeError, "is a path: load the model, init_model=boostbp.load"),
        ("network", {}, LinearRegression(), TypeError, r"LinearRegression.* give a fitted BoostBPRegressor"),
        ("network", {}, BoostBPAutoencoder((2,)), TypeError, "give a fitted BoostBPRegressor"),
        ("network", {}, BoostBPClassifier(), TypeError, "give a fitted BoostBPRegressor"),
        ("network", {}, BoostBPRegressor(), NotFittedError, "not fitted yet"),
        ("network", {"loss": "poisson"}, fitted, ValueError, r"has loss=SquaredError.*, this .* loss=Poisson"),
        ("network", {"loss": Quantile(0.9)}, lambda: fitted(loss=Quantile(0.8)), ValueError, r"alpha=0\.8.*alpha=0\.9"),
        ("skip", {}, fitted, ValueError, r"hidden_layer_sizes=\(3, 2\) has 2 hidden layers, init_model has 1"),
        ("network", {"clip": False}, fitted, ValueError, r"with clip=True, this .* clip=False.*: use the same"),
    ],
)  # fmt: skip
def test_what_cannot_go_on_is_refused(kind, changes, init_model, error, message):
    init_model = init_model() if callable(init_model) else init_model
    with pytest.raises(error, match=message):
        model_of(kind, **changes).fit(X, y, init_model=init_model)


def test_other_outputs_are_refused():
    with pytest.raises(ValueError, match="y has 2 outputs, init_model has 1"):
        model_of("network").fit(X, np.column_stack([y, y]), init_model=fitted())


def test_several_workers_refuse_an_earlier_model():
    with pytest.raises(ValueError, match="init_model='a model' is not supported on several workers: leave it out"):
        refuse_unsupported(model_of("network", backend="xgboost"), fit={"init_model": fitted()})
