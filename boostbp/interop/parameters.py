"""Constructor parameters of an estimator as JSON holds them, and back."""

from __future__ import annotations

from typing import Any

from boostbp import plain
from boostbp.learning.losses import Loss
from boostbp.learning.stored import loss_from, loss_of
from boostbp.trees.basis import Constant, Linear, Quadratic

__all__ = ["parameters_from", "parameters_of"]

_OF_A_RUN = ("callbacks", "checkpoint")  # belong to the process that trained, not to the model
_BASES: dict[str, Any] = {"constant": Constant, "linear": Linear, "quadratic": Quadratic}


def parameters_of(estimator: Any) -> dict[str, Any]:
    """Parameters as plain values; `callbacks` and `checkpoint` are left out.

    Raises
    ------
    ValueError
        If a parameter holds an object of the user's own; it is named.
    """
    found = {}
    for name, value in estimator.get_params(deep=False).items():
        if name in _OF_A_RUN:
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
        If a value is none.
    """
    return {name: _decoded(value) for name, value in facts.items()}


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
