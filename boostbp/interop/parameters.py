"""Constructor parameters of an estimator as JSON holds them, and back."""

from __future__ import annotations

from typing import Any

from boostbp import plain
from boostbp.estimators.parameters import settings_of
from boostbp.learning.losses import Loss
from boostbp.learning.stored import loss_from, loss_of
from boostbp.trees.basis import Constant, Linear, Quadratic

__all__ = ["check_parameters", "parameters_from", "parameters_of"]

_OF_A_RUN = ("callbacks", "checkpoint")  # belong to the process that trained, not to the model
_ROWS_OF_A_RUN = "validation"  # and so does this, unless it is a word
_BASES: dict[str, Any] = {"constant": Constant, "linear": Linear, "quadratic": Quadratic}


def parameters_of(estimator: Any) -> dict[str, Any]:
    """Parameters as plain values; `callbacks`, `checkpoint` and rows or splitters in `validation` are left out.

    Raises
    ------
    ValueError
        If a parameter holds an object of the user's own; it is named.
    """
    found = {}
    for name, value in estimator.get_params(deep=False).items():
        if name in _OF_A_RUN or (name == _ROWS_OF_A_RUN and not isinstance(value, str)):
            continue
        try:
            found[name] = _encoded(value)
        except TypeError as error:
            raise ValueError(
                f"{name} cannot be stored: {error}. Set a name instead where there is one, "
                f"or keep the model by pickle or joblib."
            ) from error
    return found


def parameters_from(facts: dict[str, Any]) -> dict[str, Any]:
    """The parameters that `parameters_of` described.

    Raises
    ------
    ValueError
        If a value is none, or belongs to a run: a file must not say where the next fit writes.
    """
    of_a_run = sorted(set(facts) & set(_OF_A_RUN))
    if of_a_run:
        raise ValueError(f"it holds the parameters {', '.join(of_a_run)}, which are never stored")
    return {name: _decoded(value) for name, value in facts.items()}


def check_parameters(estimator: Any) -> None:
    """Check the parameters of a fitted estimator as `fit` would.

    Raises
    ------
    ValueError
        If one is out of bounds; it is named.
    """
    settings_of(estimator, 1, len(estimator.network_.baseline), 0)


def _encoded(value: Any) -> Any:
    for name, basis in _BASES.items():
        if type(value) is basis:
            return {"basis": name}
    # what says like a loss how it bends is a loss
    if hasattr(value, "hessian") and hasattr(value, "gradient") and not isinstance(value, type):
        loss: Loss = value
        return {"loss": loss_of(loss)}
    return plain.encode(value)


def _decoded(value: Any) -> Any:
    if isinstance(value, dict) and set(value) == {"basis"} and value["basis"] in _BASES:
        return _BASES[value["basis"]]()
    if isinstance(value, dict) and set(value) == {"loss"}:
        return loss_from(value["loss"])
    return plain.decode(value)
