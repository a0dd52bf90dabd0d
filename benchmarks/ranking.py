"""Rankings: NDCG at 10 and seconds, beside LightGBM's and XGBoost's rankers.

``python -m benchmarks.ranking --data-dir FOLDER`` reads ``FOLDER/rank/NAME.npz`` (docs/data.md): ``X``, grades ``y``,
``qid`` with the rows of a query together, and ``split``, 0 for training, 1 for validation, 2 for the test. Sets of few
queries are cross-validated: each fifth of all queries is the test once, and a sixth of the others the validation. All
models choose their rounds by NDCG at 10 of the validation rows. Seconds are of the processor, in one thread.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp import BoostBPRanker
from boostbp.metrics import ndcg

K = 10
FOLDS = 5
FEW_QUERIES = 1000  # sets with fewer are cross-validated
Floats = NDArray[np.float64]
Part = tuple[Floats, Floats, NDArray[Any]]  # X, y and qid
Fit = Callable[[Part, Part, Floats], Floats]  # of training rows, validation rows and test features to test scores


def sizes_of(qid: NDArray[Any]) -> NDArray[np.intp]:
    """Return the number of rows of each query."""
    return np.diff(np.append(np.flatnonzero(np.append(True, qid[1:] != qid[:-1])), len(qid)))


def lightgbm_ranker(train: Part, valid: Part, X: Floats, *, objective: str = "lambdarank") -> Floats:
    """Return the scores of LGBMRanker with its defaults, up to 1,000 rounds."""
    import lightgbm as lgb

    model = lgb.LGBMRanker(objective=objective, n_estimators=1000, verbose=-1, n_jobs=1, random_state=0)
    sets: dict[str, Any] = {"eval_set": [valid[:2]], "eval_group": [sizes_of(valid[2])], "eval_at": [K]}
    model.fit(*train[:2], group=sizes_of(train[2]), callbacks=[lgb.early_stopping(50, verbose=False)], **sets)
    return np.asarray(model.predict(X))


def xgboost_ranker(train: Part, valid: Part, X: Floats) -> Floats:
    """Return the scores of XGBRanker with its defaults, up to 1,000 rounds."""
    import xgboost as xgb

    model = xgb.XGBRanker(
        n_estimators=1000, early_stopping_rounds=50, eval_metric=f"ndcg@{K}", n_jobs=1, random_state=0
    )
    train_id, valid_id = (np.repeat(np.arange(len(sizes_of(q))), sizes_of(q)) for q in (train[2], valid[2]))
    model.fit(*train[:2], qid=train_id, eval_set=[valid[:2]], eval_qid=[valid_id], verbose=False)
    return np.asarray(model.predict(X), np.float64)


def boostbp_ranker(**parameters: Any) -> Fit:
    """Return the fit of BoostBPRanker."""

    def fit(train: Part, valid: Part, X: Floats) -> Floats:
        model = BoostBPRanker(n_jobs=1, random_state=0, **parameters)
        model.fit(*train[:2], qid=train[2], eval_set=[valid[:2]], eval_qid=[valid[2]])
        return model.predict(X)

    return fit


MODELS: dict[str, Fit] = {
    "LightGBM lambdarank": lightgbm_ranker,
    "LightGBM rank_xendcg": lambda *parts: lightgbm_ranker(*parts, objective="rank_xendcg"),
    "XGBoost rank:ndcg": xgboost_ranker,
    "boostbp": boostbp_ranker(),
    "boostbp quality=1": boostbp_ranker(quality=1),
    "boostbp lambdarank": boostbp_ranker(loss="lambdarank"),
    "boostbp rank:pairwise": boostbp_ranker(loss="rank:pairwise"),
}


def splits_of(qid: NDArray[Any], split: NDArray[Any]) -> Iterator[list[NDArray[np.bool_]]]:
    """Yield masks of training, validation and test rows."""
    queries = np.unique(qid)
    if len(queries) >= FEW_QUERIES:
        yield [split == number for number in range(3)]
        return
    shuffled = np.random.default_rng(0).permutation(queries)
    for fold in range(FOLDS):
        rest = np.delete(shuffled, np.s_[fold::FOLDS])
        yield [np.isin(qid, part) for part in (np.delete(rest, np.s_[::6]), rest[::6], shuffled[fold::FOLDS])]


def main() -> None:
    """Print a line for each set and model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--sets", nargs="*", help="names of sets (default: all)")
    parser.add_argument("--models", nargs="*", default=list(MODELS), choices=list(MODELS))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| set | model | NDCG@10 | minus LightGBM lambdarank | seconds |\n| --- | --- | --- | --- | --- |")
    for path in sorted((options.data_dir / "rank").glob("*.npz")):
        if options.sets and path.stem not in options.sets:
            continue
        with np.load(path) as data:
            X, y, qid, split = data["X"].astype(float), data["y"].astype(float), data["qid"], data["split"]
        first: Floats | None = None
        for name in options.models:
            values, seconds = [], 0.0
            for masks in splits_of(qid, split):
                train, valid, test = ((X[rows], y[rows], qid[rows]) for rows in masks)
                begun = time.process_time()
                scores = MODELS[name](train, valid, test[0])
                seconds += time.process_time() - begun
                values.append(ndcg(test[1], scores, qid=test[2], k=K, per_query=True))
            of_queries = np.concatenate(values)
            first = of_queries if first is None else first
            gain, error = of_queries - first, len(of_queries) ** -0.5
            shown = f"{gain.mean():+.4f} ± {error * gain.std():.4f}" if gain.any() else ""
            mean = f"{of_queries.mean():.4f} ± {error * of_queries.std():.4f}"
            print(f"| {path.stem} | {name} | {mean} | {shown} | {seconds / len(values):.1f} |", flush=True)


if __name__ == "__main__":
    main()
