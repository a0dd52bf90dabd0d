"""Safeguard: no model is worse on its held-out rows than the constant that boosting starts from.

On noise the model is shrunk towards that constant. A model that fits even its training rows worse than the constant has
not learned. If it uses a custom loss, backend, basis or step, that part is broken, and the fit raises an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from boostbp.ensemble.problem import Problem
from boostbp.ensemble.weighted_sum import weighted_sum
from boostbp.inputs.rows import Rows
from boostbp.losses import traits_of
from boostbp.network.choice import CONSTANT, NETWORK, CandidateResult, ModelChoice
from boostbp.network.history import History
from boostbp.network.network import Network
from boostbp.runtime.arrays import Floats
from boostbp.runtime.group import workers
from boostbp.trees.basis import Elementwise

WEIGHTS_TRIED = np.linspace(
    0.0, 1.0, 21
)  # weights that are tried for a model; the rest goes to the constant. Not varied
# Number of training rows on which the training loss is computed if no network reports it; all rows would take a tenth
# of the time of some fits. Not varied.
JUDGED_ROWS = 250
LOSS_ROUNDING = 1e-9  # losses that differ by less, relatively, are the same


def best_share(raw: Floats, problem: Problem) -> float:
    """Return the weight of a model by its raw output: 1, or less if the constant is better on the held-out rows."""
    constant = problem.constant_raw
    if problem.score(raw) <= problem.score(constant):
        return 1.0
    moved = np.where(np.isfinite(raw), raw - constant, 0.0)
    return float(WEIGHTS_TRIED[np.argmin([problem.score(constant + share * moved) for share in WEIGHTS_TRIED])])


def no_worse_than_constant(network: Network, history: History, problem: Problem) -> Network:
    """Return a network that was trained alone, shrunk if it is worse than the constant; the history has the weight."""
    if not problem.evaluation.sets:
        refuse_unlearned([network], problem)
        return network
    raw = network.predict(problem.held_out.X, n_jobs=problem.settings.n_threads)
    share = workers().agree(best_share(raw, problem))
    if share == 1.0:
        return network
    refuse_unlearned([network], problem)
    model = weighted_sum([network], [share])
    model = replace(model, baseline=model.baseline + (1.0 - share) * problem.baseline)
    name = NETWORK if problem.settings.units else "single layer"
    results = (
        CandidateResult(CONSTANT, problem.score(problem.constant_raw), 1.0 - share, None),
        CandidateResult(name, problem.score(raw), share, NETWORK if problem.settings.units else None),
    )
    history.choice = ModelChoice(results, 0.0, 0.0, metrics=problem.metrics_of(model))
    return model


def refuse_unlearned(models: Sequence[Network], problem: Problem) -> None:
    """Refuse models that fit their training rows worse than the constant, if they use the user's own code.

    Raises ValueError with both losses and the user's parts. Models of noise or of too few rows pass, as they fit their
    training rows.
    """
    if not (user_parts := _user_parts(problem)):
        return
    constant = training_loss(None, problem)
    lowest = min([training_loss(model, problem) for model in models])
    if lowest - constant <= LOSS_ROUNDING * max(abs(constant), 1.0):
        return
    held_out = ""
    if problem.evaluation.sets:
        score = problem.score(problem.constant_raw)
        held_out = f"; on the held-out rows it is also worse than the constant, whose mean loss is {score:.6g}"
    raise ValueError(
        f"the trained model is worse than a constant: on training rows the mean loss is {lowest:.6g}, that of the "
        f"constant {constant:.6g}{held_out}. Check your own parts: {'; '.join(user_parts)}."
    )


def refuse_undefined(network: Network, problem: Problem) -> None:
    """Refuse a link that is NaN for a raw output of the model.

    Held-out rows are checked or, without them, some training rows. Raises ValueError with the row and the raw output.
    """
    judged = bool(problem.evaluation.sets)
    rows = replace(problem.held_out, y=problem.target) if judged else _some_training_rows(problem)
    raw = network.predict(rows.X, n_jobs=problem.settings.n_threads) + rows.offset
    link = problem.loss.link(raw)
    if np.isnan(link).any():
        nan = np.where(np.isnan(link) & np.isfinite(raw).all(axis=1, keepdims=True), np.nan, 0.0)
        problem.loss.refuse_unusable({"link": nan}, raw, rows.y, "of the trained model")


def _some_training_rows(problem: Problem) -> Rows:
    if traits_of(problem.loss).joint:  # the loss of some rows would be that of other queries or risk sets
        return problem.rows
    return problem.rows.take(workers().sampled_rows(len(problem.rows), JUDGED_ROWS))


def training_loss(model: Network | None, problem: Problem) -> float:
    """Return the mean loss of a model, or of the constant, on some training rows; NaN counts as infinite."""
    rows = _some_training_rows(problem)
    raw = problem.baseline if model is None else model.predict(rows.X, n_jobs=problem.settings.n_threads)
    with np.errstate(all="ignore"):
        raw = np.broadcast_to(raw + rows.offset, (len(rows), len(problem.baseline)))
        values = problem.loss.prepared(rows.y, rows.weight).value(raw, rows.y)
    loss, total = workers().sum(rows.weight @ np.where(np.isnan(values), np.inf, values), rows.weight.sum())
    return float(loss / total)


def _user_parts(problem: Problem) -> list[str]:
    """Return the parts of a fit that are the user's own code, each with a way to check it."""
    parts: list[tuple[str, object]] = [
        ("loss={}, which boostbp.check_loss(loss, y) checks", problem.loss.loss),
        ("backend={}, which boostbp.check_backend(backend) checks", problem.backend),
        *(("basis={}, whose vjp must be the derivative of expand", layer.basis) for layer in problem.settings.layers),
        *(("step={}, which must move against the gradient", problem.settings.step) for _ in problem.settings.units),
    ]

    def is_own(part: object) -> bool:
        return isinstance(part, Elementwise) or not type(part).__module__.startswith("boostbp.")

    return list(dict.fromkeys(words.format(type(part).__name__) for words, part in parts if is_own(part)))
