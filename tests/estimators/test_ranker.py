"""BoostBPRanker: queries, weights, held-out queries, metrics, files, exports and workers."""

from __future__ import annotations

import io
import pickle
import warnings
from contextlib import suppress
from functools import partial
from typing import Any, Literal
from unittest import SkipTest

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, GroupShuffleSplit, cross_validate
from sklearn.utils.estimator_checks import estimator_checks_generator
from thread_workers import Everywhere, in_group

import boostbp
from boostbp import BoostBPRanker, BoostBPRegressor
from boostbp.distributed import Address, fit_worker
from boostbp.losses import LambdaRank, ListwiseRanking
from boostbp.metrics import mean_average_precision, ndcg

RNG = np.random.default_rng(0)
SIZES = RNG.integers(1, 14, 90)
QID = np.repeat(np.arange(90) * 7 + 3, SIZES)
X = RNG.standard_normal((len(QID), 5)) + RNG.standard_normal((90, 5)).repeat(SIZES, axis=0)
X[:, 4] = np.round(X[:, 4])
SIGNAL = X[:, 0] + np.abs(X[:, 1])
Y = np.clip(np.round(SIGNAL + 0.5 * RNG.standard_normal(len(QID))), 0, 4)
SMALL: dict[str, Any] = {"deep": False, "quality": 1, "n_estimators": 20, "random_state": 0}
KINDS: dict[str, dict[str, Any]] = {
    "layers": SMALL,
    "network": {"hidden_layer_sizes": (4,), "deep": True, "epochs": 2, "random_state": 0, "n_estimators": 20},
    "average": {"hidden_layer_sizes": (4,), "quality": 2, "epochs": 4, "random_state": 0, "n_estimators": 20},
    "lambdas": SMALL | {"loss": "lambdarank"},
    "pairs on XGBoost": SMALL | {"loss": "rank:pairwise", "backend": "xgboost"},
}


def same(a: BoostBPRanker, b: BoostBPRanker) -> bool:
    return bool((a.predict(X) == b.predict(X)).all())


@pytest.mark.parametrize("kind", KINDS)
def test_scores_order_the_rows_of_new_queries(kind: str) -> None:
    new = np.random.default_rng(1).standard_normal((600, 5))
    relevance, qid = np.clip(np.round(new[:, 0] + np.abs(new[:, 1])), 0, 4), np.arange(600) // 12
    model = BoostBPRanker(**KINDS[kind]).fit(X, Y, qid=QID)
    assert model.predict(new).shape == (600,)
    random = ndcg(relevance, np.zeros(600), qid=qid, k=10)
    assert model.score(new, relevance, qid=qid) > 0.5 + 0.5 * random
    assert model.score(new, relevance, group=np.full(50, 12)) == model.score(new, relevance, qid=qid)
    assert list(model.best_score_) == ["held_out"]
    assert list(model.best_score_["held_out"]) == ["ndcg@10"]


def test_sizes_and_numbers_of_queries_in_any_order_give_the_same_model() -> None:
    model = BoostBPRanker(**SMALL, early_stopping=False).fit(X, Y, qid=QID)
    assert same(model, BoostBPRanker(**SMALL, early_stopping=False).fit(X, Y, group=SIZES))
    assert same(model, BoostBPRanker(**SMALL, early_stopping=False).fit(X, Y, qid=[f"q{number:09}" for number in QID]))
    order = np.random.default_rng(0).permutation(len(Y))
    shuffled = BoostBPRanker(**SMALL, early_stopping=False).fit(X[order], Y[order], qid=QID[order])
    np.testing.assert_allclose(shuffled.predict(X), model.predict(X), atol=0.05)  # ties of splits are broken by rows


@pytest.mark.parametrize("loss", ["rank_xendcg", "lambdarank", "rank:pairwise"])
def test_files_that_are_sorted_by_relevance_give_as_good_a_model(loss: str) -> None:
    def drawn(seed: int, n_rows: int) -> tuple[Any, Any, Any]:
        rng = np.random.default_rng(seed)
        table = rng.standard_normal((n_rows, 5))
        signal = table[:, 0] + np.abs(table[:, 1]) + rng.standard_normal(n_rows)
        return table, np.clip(np.floor(signal + 1.0), 0, 4), np.arange(n_rows) // 10

    table, relevance, qid = drawn(0, 3000)
    new, expected, of_new = drawn(1, 5000)
    quality = {}
    for name, key in {"best first": -relevance, "worst first": relevance, "as drawn": np.zeros(3000)}.items():
        order = np.lexsort((key, qid))
        model = BoostBPRanker(**SMALL | {"loss": loss}).fit(table[order], relevance[order], qid=qid[order])
        quality[name] = ndcg(expected, model.predict(new), qid=of_new, k=10)
        assert model.best_score_["held_out"]["ndcg@10"] < 0.95
    assert max(quality.values()) - min(quality.values()) < 0.015, quality
    assert min(quality.values()) > 0.85, quality


@pytest.mark.parametrize("relevance", [SIGNAL - 2.0, 13.0 * Y, np.exp(Y) - 50.0], ids=["real", "0 to 52", "negative"])
def test_pairs_take_any_relevance(relevance: Any, tmp_path: Any) -> None:
    options: dict[str, Any] = SMALL | {"loss": "rank:pairwise"}
    model = BoostBPRanker(**options).fit(X, relevance, qid=QID, eval_set=[(X, relevance)], eval_qid=[QID])
    expected = ndcg(relevance, model.predict(X), qid=QID, k=10, label_gain="relevance")
    assert model.score(X, relevance, qid=QID) == model.best_score_["valid_0"]["ndcg@10"] == pytest.approx(expected)
    assert expected > 0.9
    boostbp.save(model, tmp_path / "model")
    assert boostbp.load(tmp_path / "model").score(X, Y, qid=QID) == model.score(X, Y, qid=QID)
    more = BoostBPRanker(**options).fit(X, Y, qid=QID, init_model=model)  # whose grades have the gains of the first fit
    assert more.score(X, relevance, qid=QID) > 0.9
    assert model.refit(X, Y, qid=QID).score(X, relevance, qid=QID) > 0.9
    by_grade = BoostBPRanker(**options).fit(X, Y, qid=QID)
    assert by_grade.score(X, Y, qid=QID) == ndcg(Y, by_grade.predict(X), qid=QID, k=10)


@pytest.mark.parametrize("loss", ["rank_xendcg", "lambdarank", "rank:pairwise", LambdaRank(label_gain=(1,) * 5)])
def test_queries_that_teach_no_order_are_refused(loss: Any) -> None:
    flat = isinstance(loss, LambdaRank)
    taught = np.isin(QID, QID[Y[np.searchsorted(QID, QID)] != Y])
    for y, weight in ((np.full(len(Y), 3.0), None), (Y, np.where(taught, 0.0, 1.0)), (Y, 1.0)):
        if flat or np.ndim(weight) or weight is None:
            with pytest.raises(
                ValueError, match=r"^y has no query with rows of different relevance.* check group or qid"
            ):
                BoostBPRanker(**SMALL | {"loss": loss}).fit(X, y, weight, qid=QID)


def test_queries_are_held_out_whole() -> None:
    seen: list[tuple[Any, Any]] = []
    model = BoostBPRanker(**SMALL, eval_metric=("kept", lambda y, s: seen.append(y) or 0.0, True))
    model.fit(X, Y, qid=QID)
    held = seen[0][:, 1]
    assert 0 < len(np.unique(held)) < 90
    assert all((held == query).sum() == (query == QID).sum() for query in np.unique(held))


def test_a_splitter_gets_the_queries() -> None:
    BoostBPRanker(**SMALL, validation=GroupShuffleSplit(1, test_size=0.3, random_state=0)).fit(X, Y, qid=QID)
    for validation in ("last", (np.arange(100), np.arange(100, 200))):
        with pytest.raises(ValueError, match=r"groups with validation=.* is not supported: use a share of the groups"):
            BoostBPRanker(**SMALL, validation=validation).fit(X, Y, qid=QID)


def test_weights_are_of_queries() -> None:
    by_query = RNG.integers(0, 3, 90).astype(float)
    options: dict[str, Any] = {**SMALL, "early_stopping": False}
    model = BoostBPRanker(**options).fit(X, Y, by_query, group=SIZES)
    assert same(model, BoostBPRanker(**options).fit(X, Y, np.repeat(by_query, SIZES), qid=QID))
    assert not same(model, BoostBPRanker(**options).fit(X, Y, qid=QID))
    kept = np.repeat(by_query, SIZES) > 0
    scores = BoostBPRanker(**options).fit(X[kept], Y[kept], np.repeat(by_query, SIZES)[kept], qid=QID[kept]).predict(X)
    np.testing.assert_allclose(scores, model.predict(X))
    wrong = np.ones(len(Y))
    wrong[np.flatnonzero(SIZES.repeat(SIZES) > 3)[1]] = 2.0
    with pytest.raises(
        ValueError, match=r"sample_weight is 2 in row \d+ and 1 in row \d+ of one query: give one weight"
    ):
        BoostBPRanker(**SMALL).fit(X, Y, wrong, qid=QID)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, r"^group and qid are missing: give one of them: group, the number of rows .*qid, the query of each row"),
        ({"group": SIZES, "qid": QID}, "^group and qid are both given: give one of them"),
        ({"group": SIZES[1:]}, rf"group must hold sizes of queries, .* that sum to {len(Y)}"),
        ({"group": SIZES - 0.5}, "group must hold sizes of queries"),
        ({"qid": QID[1:]}, "inconsistent numbers of samples"),
        ({"qid": np.where(QID == 3, np.nan, QID)}, "Input qid contains NaN"),
        ({"qid": QID, "eval_set": (X, Y)}, r"^eval_set\[0\]: eval_group and eval_qid are missing: give one of them"),
        ({"qid": QID, "eval_set": [(X, Y)], "eval_qid": [QID, QID]}, "eval_qid holds 2 entries for 1 evaluation sets"),
        ({"qid": QID, "eval_at": 0}, "eval_at=0"),
        ({"group": [len(Y)]}, "group or qid has one query: give two or more, an eval_set, or early_stopping=False"),
    ],
)
def test_wrong_queries_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BoostBPRanker(**SMALL).fit(X, Y, **arguments)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.where(np.arange(len(Y)) == 5, 1.5, Y), r"y=1.5 in row 5, .*whole number from 0 to 30"),
        (np.where(np.arange(len(Y)) == 5, 31, Y), r"y=31 in row 5, .*label_gain of the loss"),
        (np.column_stack([Y, QID]), "y has 2 columns: give the relevance of each row"),
        (Y.astype(str), "y holds text"),
        (None, "requires y"),
    ],
)
def test_other_relevance_is_refused(y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BoostBPRanker(**SMALL).fit(X, y, qid=QID)


def test_evaluation_sets_and_metrics() -> None:
    train, valid = QID < 400, QID >= 400
    sizes = np.unique(QID[valid], return_counts=True)[1]

    def fit(metric: str | None = None, **arguments: Any) -> BoostBPRanker:
        model = BoostBPRanker(**SMALL, eval_metric=metric)
        sets = {"eval_set": [(X[valid], Y[valid])], "eval_names": ["later"]}
        return model.fit(X[train], Y[train], qid=QID[train], **sets, **arguments)

    by_sizes, by_number = fit(eval_group=[sizes], eval_at=(1, 3)), fit(eval_qid=QID[valid], eval_at=3)
    assert by_sizes.best_score_ == by_number.best_score_
    scores = by_sizes.predict(X[valid])
    expected = ndcg(Y[valid], scores, qid=QID[valid], k=3)
    assert by_sizes.best_score_["later"] == {"ndcg@3": pytest.approx(expected)}
    model = fit("map@2", eval_group=[sizes])
    expected = mean_average_precision(Y[valid], model.predict(X[valid]), qid=QID[valid], k=2)
    assert model.best_score_["later"] == {"map@2": pytest.approx(expected)}
    for metric in ("rmse", "ndcg@0", "ndcg@x"):
        with pytest.raises(ValueError, match=rf"eval_metric='{metric}' is not of rankings: use 'ndcg' or 'map'"):
            fit(metric, eval_group=[sizes])


def test_other_losses_and_intervals_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"loss='huber' is not for ranking: use loss='rank_xendcg'"):
        BoostBPRanker(loss="huber").fit(X, Y, qid=QID)
    with pytest.raises(ValueError, match=r"is for ranking: use BoostBPRanker"):
        BoostBPRegressor(loss=LambdaRank()).fit(X, Y)
    with pytest.raises(ValueError, match=r"BoostBPRanker has no intervals: .* Use BoostBPRegressor"):
        BoostBPRanker().predict_interval(X)
    with pytest.raises(ValueError, match="BoostBPRanker has no calibration"):
        BoostBPRanker().calibrate(X, Y)


@pytest.mark.parametrize("kind", ["layers", "average"])
@pytest.mark.parametrize("loss", ["rank_xendcg", LambdaRank(label_gain=(0, 1, 3, 7, 20)), ListwiseRanking(gamma=0.2)])
def test_stored_models_have_the_same_scores(kind: str, loss: Any, tmp_path: Any) -> None:
    model = BoostBPRanker(**KINDS[kind] | {"loss": loss}).fit(X, Y, qid=QID)
    boostbp.save(model, tmp_path / "model")
    for copy in (boostbp.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert same(copy, model)
        assert copy.get_params() == model.get_params()
        assert copy.score(X, Y, qid=QID) == model.score(X, Y, qid=QID)
    assert same(clone(model).fit(X, Y, qid=QID), model)


def test_damaged_files_are_refused() -> None:
    file = io.BytesIO()
    boostbp.save(BoostBPRanker(**SMALL | {"n_estimators": 2}).fit(X, Y, qid=QID), file)
    data, rng = file.getvalue(), np.random.default_rng(0)
    for place in rng.integers(0, len(data), 60):
        damaged = bytearray(data)
        damaged[place] ^= int(rng.integers(1, 256))
        try:
            loaded = boostbp.load(io.BytesIO(bytes(damaged)))
        except ValueError:
            continue
        assert isinstance(loaded, BoostBPRanker)
        loaded.predict(X)


@pytest.mark.parametrize("kind", KINDS)
def test_the_model_does_not_depend_on_threads(kind: str) -> None:
    one, three = (BoostBPRanker(**KINDS[kind], n_jobs=n).fit(X, Y, qid=QID) for n in (1, 3))
    assert same(one, three)


@pytest.mark.parametrize("kind", ["layers", "network"])
def test_scores_are_exported(kind: str) -> None:
    model = BoostBPRanker(**KINDS[kind]).fit(X, Y, qid=QID)
    assert "predict" in boostbp.to_c(model)
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(boostbp.to_onnx(model).SerializeToString())
    scores, *_ = session.run(None, {session.get_inputs()[0].name: X})
    np.testing.assert_allclose(np.ravel(scores), model.predict(X), atol=1e-9)


def test_other_methods_take_rankers() -> None:
    model = BoostBPRanker(**SMALL, output={"monotone_constraints": [1, 0, 0, 0, 0]}, categorical_features=[4])
    model.fit(X, Y, qid=QID)
    assert model.attributions(X).values.shape == (len(X), 1, 5)
    np.testing.assert_allclose(list(model.staged_predict(X))[-1], model.predict(X), atol=1e-9)
    higher = X.copy()
    higher[:, 0] += 0.5
    assert (model.predict(higher) >= model.predict(X)).all()
    plain = BoostBPRanker(**SMALL).fit(X, Y, qid=QID)
    assert BoostBPRanker(**SMALL).fit(X, Y, qid=QID, init_model=plain).score(X, Y, qid=QID) > 0.9
    with_offset = BoostBPRanker(**SMALL).fit(X, Y, qid=QID, offset=np.zeros(len(X)))
    np.testing.assert_array_equal(with_offset.predict(X, offset=0), plain.predict(X))


@pytest.mark.parametrize("loss", ["rank_xendcg", "lambdarank", "rank:pairwise"])
def test_leaves_are_fitted_again_to_other_queries(loss: str) -> None:
    model = BoostBPRanker(**SMALL | {"loss": loss}).fit(X, Y, qid=QID)
    again = model.refit(X, 4 - Y, qid=QID, decay_rate=0.0)
    assert again.score(X, 4 - Y, qid=QID) > model.score(X, 4 - Y, qid=QID) + 0.1
    np.testing.assert_array_equal(again.predict(X), model.refit(X, 4 - Y, group=SIZES, decay_rate=0.0).predict(X))


def test_a_fit_continues_from_a_checkpoint(tmp_path: Any) -> None:
    whole = BoostBPRanker(**KINDS["network"]).fit(X, Y, qid=QID)
    BoostBPRanker(**KINDS["network"] | {"epochs": 1}).fit(X, Y, qid=QID, checkpoint=tmp_path / "state")
    assert same(BoostBPRanker(**KINDS["network"]).fit(X, Y, qid=QID, checkpoint=tmp_path / "state"), whole)


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_files_name_the_column_of_queries(tmp_path: Any, backend: Literal["lightgbm", "xgboost"]) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcde")).assign(grade=Y, query=QID)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    model = BoostBPRanker(**SMALL, backend=backend).fit(tmp_path / "rows.csv", "grade", qid="query")
    features = frame[list("abcde")]
    in_memory = BoostBPRanker(**SMALL, backend=backend).fit(features, Y, qid=QID)
    np.testing.assert_array_equal(model.predict(features), in_memory.predict(features))
    with pytest.raises(ValueError, match="needs the names of the columns: y='relevance', qid='query'"):
        BoostBPRanker(**SMALL).fit(tmp_path / "rows.csv", "grade", group=SIZES)


class OneQuery(BoostBPRanker):
    """A ranker that scikit-learn's checks can fit: all rows are one query, and targets become grades."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> OneQuery:
        values = np.asarray([] if y is None else y)
        if values.ndim == 1 and len(values) and values.dtype.kind in "iuf" and np.isfinite(values).all():
            y = np.digitize(values, np.quantile(values, [0.3, 0.6, 0.9]))
        return super().fit(X, y, qid=np.zeros(len(values)))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        return super().score(X, np.digitize(y, np.quantile(y, [0.3, 0.6, 0.9])), qid=np.zeros(len(y)))


@pytest.mark.slow
def test_checks_of_scikit_learn_pass() -> None:
    """Those of weights do not apply, as rows of a query have one weight."""
    model = OneQuery((2,), deep=True, epochs=1, n_estimators=3, early_stopping=False, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for checked, check in estimator_checks_generator(model):
            if "sample_weight" not in check.func.__name__:
                with suppress(SkipTest):
                    check(checked)


def test_searches_route_queries() -> None:
    with config_context(enable_metadata_routing=True):
        found = cross_validate(BoostBPRanker(**SMALL), X, Y, cv=GroupKFold(3), params={"qid": QID, "groups": QID})
    assert (found["test_score"] > 0.7).all()
    assert BoostBPRanker().__sklearn_tags__().estimator_type == "ranker"


def test_workers_with_whole_queries_train_the_model_of_one_machine() -> None:
    rng = np.random.default_rng(2)
    table, qid = rng.standard_normal((900, 4)), np.arange(900) // 10
    relevance = np.clip(np.round(table[:, 0] + table[:, 1] ** 2), 0, 4)
    how: dict[str, Any] = SMALL | {"n_estimators": 5, "early_stopping": False}

    def fit(table: Any, relevance: Any, qid: Any, *, by_size: bool = False) -> Any:
        queries = {"group": np.unique(qid, return_counts=True)[1]} if by_size else {"qid": qid}
        return BoostBPRanker(**how, backend=Everywhere()).fit(table, relevance, **queries)

    alone = BoostBPRanker(**how, backend="xgboost").fit(table, relevance, qid=qid).predict(table)
    for by_size in (False, True):  # sizes are of the queries of each worker, which differ
        for model in in_group(2, partial(fit, by_size=by_size), table, relevance, qid):
            np.testing.assert_allclose(model.predict(table), alone, atol=1e-6)
    with pytest.raises(ValueError, match=r"query 29 has rows on 2 workers: keep all of its rows on one worker"):
        in_group(2, fit, table, relevance, np.where(qid == 30, 29, qid))
    address = Address("127.0.0.1", 1, 2, 1.0)
    with pytest.raises(
        ValueError, match=r"early_stopping='auto' is not supported on several workers: pass an eval_set"
    ):
        fit_worker(BoostBPRanker(backend="xgboost"), table, relevance, qid=qid, address=address, rank=0)
