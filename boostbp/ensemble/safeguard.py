"""Safeguard: no model is worse on its held-out rows than the constant that boosting starts from.

On noise the model is shrunk towards that constant. A model that fits even its training rows worse has not learned: a
part of the user's own is broken, and the fit raises an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from boostbp.ensemble.problem import Problem, back_propagate
from boostbp.ensemble.weighted_sum import weighted_sum
from boostbp.inputs.rows import Rows
from boostbp.network.choice import CONSTANT, NETWORK, CandidateResult, Choice
from boostbp.network.history import History
from boostbp.network.network import Network
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import workers
from boostbp.trees.basis import Elementwise

SHARES = np.linspace(0.0, 1.0, 21)  # of a model; the constant has the rest
JUDGED_ROWS = 250  # training rows that show whether a model has learned
ROUNDING = 1e-9  # relative difference of losses that are the same


def best_share(raw: Floats, problem: Problem) -> float:
    """Return the weight of a model, beside the constant, that is best on the held-out rows; 1 unless it is worse.

    Parameters
    ----------
    raw : (held-out rows, outputs) float64
        Its raw output there.
    """
    constant = problem.constant_raw
    score = problem.score(raw)
    if score <= problem.score(constant):
        return 1.0
    moved = np.where(np.isfinite(raw), raw - constant, 0.0)
    return float(SHARES[np.argmin([problem.score(constant + share * moved) for share in SHARES])])


def no_worse_than_constant(network: Network, history: History, problem: Problem) -> Network:
    """Return a network that was trained alone, shrunk if it is worse than the constant; the history says so."""
    if not problem.evaluation.sets:
        refuse_unlearned([network], problem)
        return network
    raw = network.predict(problem.held_out.X, n_jobs=problem.settings.n_threads)
    share = workers().agree(best_share(raw, problem))
    if share == 1.0:
        return network
    refuse_unlearned([network], problem)
    model = beside_constant([network], [share], problem.baseline)
    name = NETWORK if problem.settings.units else "single layer"
    results = (
        CandidateResult(CONSTANT, problem.score(problem.constant_raw), 1.0 - share, None),
        CandidateResult(name, problem.score(raw), share, NETWORK if problem.settings.units else None),
    )
    history.choice = Choice(results, 0.0, 0.0, metrics=problem.metrics_of(model))
    return model


def back_propagate_alone(problem: Problem) -> tuple[Network, History]:
    """Train a network whose hidden units are the model, so that no constant may stand in its place.

    Raises ValueError as `refuse_unlearned` does.
    """
    network, history = back_propagate(problem)
    refuse_unlearned([network], problem)
    return network, history


def beside_constant(networks: Sequence[Network], weights: Sequence[float], baseline: Floats) -> Network:
    """Return the weighted sum of networks and of the constant, which has the rest of the weight."""
    whole = weighted_sum(networks, weights)
    return replace(whole, baseline=whole.baseline + (1.0 - sum(weights)) * baseline)


def refuse_unlearned(models: Sequence[Network], problem: Problem) -> None:
    """Refuse models that fit their training rows worse than the constant, if they use a part of the user's own.

    Raises
    ------
    ValueError
        With the losses and the parts. Models that overfit or fit noise do not raise: they fit their training rows.
    """
    own = _own_parts(problem)
    if not own:
        return
    rows, n_threads = _some_training_rows(problem), problem.settings.n_threads
    constant = _loss(np.broadcast_to(problem.baseline, rows.y.shape), rows, problem)
    lowest = min(_loss(model.predict(rows.X, n_jobs=n_threads), rows, problem) for model in models)
    if lowest - constant <= ROUNDING * max(abs(constant), 1.0):
        return
    held_out = ""
    if problem.evaluation.sets:
        held_out = f"; on the held-out rows it is worse than the constant, too, which has {_held_out(problem):.6g}"
    raise ValueError(
        f"the trained model is worse than a constant: on training rows the mean loss is {lowest:.6g}, that of the "
        f"constant {constant:.6g}{held_out}. Check your own parts: {'; '.join(own)}."
    )


def refuse_undefined(network: Network, problem: Problem) -> None:
    """Refuse a link that is NaN for a raw output of the model, on held-out rows or on some training rows.

    Raises ValueError with the row and the raw output.
    """
    judged = bool(problem.evaluation.sets)
    rows = replace(problem.held_out, y=problem.target) if judged else _some_training_rows(problem)
    raw = network.predict(rows.X, n_jobs=problem.settings.n_threads) + rows.offset
    link = problem.loss.link(raw)
    if np.isnan(link).any():
        nan = np.where(np.isnan(link) & np.isfinite(raw).all(axis=1, keepdims=True), np.nan, 0.0)
        problem.loss.refuse_unusable({"link": nan}, raw, rows.y, "of the trained model")


def _held_out(problem: Problem) -> float:
    return problem.score(problem.constant_raw)


def _some_training_rows(problem: Problem) -> Rows:
    return problem.rows.take(workers().sampled_rows(len(problem.rows), JUDGED_ROWS))


def _loss(raw: Floats, rows: Rows, problem: Problem) -> float:
    """Return the mean loss of a raw output on some training rows; infinite where it is not finite."""
    with np.errstate(all="ignore"):
        values = problem.loss.value(raw + rows.offset, rows.y)
    loss, total = workers().sum(rows.weight @ np.where(np.isnan(values), np.inf, values), rows.weight.sum())
    return float(loss / total)


def _own_parts(problem: Problem) -> list[str]:
    """Return the parts of a fit that are the user's own, each with how to check it."""
    parts: list[tuple[str, object]] = [
        ("loss={}, which boostbp.check_loss(loss, y) checks", problem.loss.loss),
        ("backend={}, which boostbp.check_backend(backend) checks", problem.backend),
        *(("basis={}, whose vjp must be the derivative of expand", layer.basis) for layer in problem.settings.layers),
        *(("step={}, which must move against the gradient", problem.settings.step) for _ in problem.settings.units),
    ]
    own = [words.format(type(part).__name__) for words, part in parts if _is_of_the_user(part)]
    return list(dict.fromkeys(own))


def _is_of_the_user(part: object) -> bool:
    return not type(part).__module__.startswith("boostbp.") or isinstance(part, Elementwise)
