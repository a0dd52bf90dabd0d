"""Tuning: random search over a model's space, chosen by validation rows; the same care for every model."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, log_loss, root_mean_squared_error

from benchmarks.rivals.contenders import TRAINERS, train, trees_of
from benchmarks.rivals.spaces import SPACES
from boostbp.comparison.contenders import Contender, Fitted, Split, Trainer
from boostbp.search import Space, nested, sample

__all__ = ["Metric", "Trial", "Tuned", "candidates", "score_of", "tune"]

Metric = Literal["rmse", "log_loss", "error"]


@dataclass(frozen=True, slots=True)
class Trial:
    """One candidate.

    Attributes
    ----------
    params : mapping
        Of the model, the contender's own among them.
    score : float
        Of the validation rows, less is better; infinite if it failed.
    seconds : float
        To train it.
    reason : str
        Why it failed; empty if it did not.
    """

    params: Mapping[str, Any]
    score: float
    seconds: float
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Tuned:
    """The best candidate as it was trained, and how it was found.

    Attributes
    ----------
    model : estimator
    length : int or None
        Rounds or epochs that it kept.
    params, score : mapping, float
        Of its trial.
    trees : int or None
        Trees in it.
    trials : tuple of Trial
    seconds : float
        All trials together.
    """

    model: Any
    length: int | None
    params: Mapping[str, Any]
    score: float
    trees: int | None
    trials: tuple[Trial, ...]
    seconds: float


def tune(
    contender: Contender,
    split: Split,
    *,
    task: str,
    trials: int,
    seed: int,
    n_jobs: int = 1,
    metric: Metric | None = None,
    min_seconds: float = 0.0,
    trainers: Mapping[str, Trainer] = TRAINERS,
) -> Tuned:
    """Train a contender with its own parameters, then with parameters drawn at random, and keep what validates best.

    Parameters
    ----------
    contender : Contender
        Its parameters are given; the rest of its search space is searched.
    split : Split
        Candidates learn from ``X, y``; the validation rows choose their length, and among them.
    task : {"classification", "regression"}
    trials : int
        Number of candidates; 1 is the contender as it is.
    seed : int
        Of the draws and of the models.
    n_jobs : int
    metric : {"rmse", "log_loss", "error"}, optional
        What chooses among candidates. By default RMSE, or the log-loss of classes.
    min_seconds : float
        Go on drawing candidates until so many seconds of training are used up.
    trainers : mapping of str to callable
        A trainer for each kind of contender.

    Raises
    ------
    ValueError
        If `trials` is no positive number, or there are no validation rows.
    ImportError
        If its library is not installed.
    RuntimeError
        If no candidate could be trained; the message says why.
    """
    if trials < 1:
        raise ValueError(f"trials={trials!r} is not allowed: give at least 1.")
    if split.y_valid is None:
        raise ValueError("split has no rows to validate on, by which candidates are chosen: give some.")
    metric = metric or ("log_loss" if task == "classification" else "rmse")
    best: Fitted | None = None
    done: list[Trial] = []
    space = SPACES[contender.space or contender.kind]
    for params in candidates(np.random.default_rng(seed), space, contender.params):
        begun = time.perf_counter()
        try:
            drawn = replace(contender, params=params)
            fitted = train(drawn, split, task=task, n_jobs=n_jobs, seed=seed, trainers=trainers)
            seconds = time.perf_counter() - begun
            trial = Trial(params, score_of(metric, fitted.model, split.X_valid, split.y_valid), seconds)
            if trial.score < min((each.score for each in done), default=np.inf):
                best = fitted
        except ImportError:
            raise
        except Exception as error:  # a bad candidate is no reason to end a search
            trial = Trial(params, np.inf, time.perf_counter() - begun, f"{type(error).__name__}: {error}")
        done.append(trial)
        spent = sum(each.seconds for each in done)
        if len(done) >= trials and (best is None or spent >= min_seconds):
            break
    if best is None:
        raise RuntimeError(f"{contender.label} could not be trained: {done[0].reason or 'its scores are not finite'}")
    chosen = min(done, key=lambda trial: trial.score)
    return Tuned(best.model, best.length, chosen.params, chosen.score, trees_of(best.model), tuple(done), spent)


def candidates(
    rng: np.random.Generator, space: Space, given: Mapping[str, Any] | None = None
) -> Iterator[dict[str, Any]]:
    """Candidates of a random search without end, the first of which takes what is given alone."""
    yield nested(given or {})
    while True:
        yield sample(rng, space, given)


def score_of(metric: Metric, model: Any, X: Any, y: NDArray[Any]) -> float:
    """Score of a model on some rows, less is better; infinite where its predictions are not finite.

    Parameters
    ----------
    y : (rows,)
        Numbers, or labels 0 .. classes - 1, all of which the model knows.
    """
    predicted = model.predict(X) if metric == "rmse" else model.predict_proba(X)
    if not np.isfinite(predicted).all():
        return float("inf")
    if metric == "rmse":
        return float(root_mean_squared_error(y, predicted))
    if metric == "error":
        return float(1.0 - accuracy_score(y, predicted.argmax(axis=1)))
    return float(log_loss(y, predicted, labels=np.arange(predicted.shape[1])))
