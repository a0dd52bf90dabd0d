"""Checked losses: calls of a loss, perhaps the user's, whose results are checked before anything reads them.

Compiled code reads these arrays without looking at their sizes: a wrong shape there would end the process.
"""

from __future__ import annotations

from numbers import Number
from typing import Any

import numpy as np

from boostbp.floats import Floats
from boostbp.losses.base import Loss
from boostbp.read_only import read_only, refuse_writes

Shape = tuple[int, ...]


def value(loss: Loss, h: Floats, y: Floats) -> Floats:
    """Return the loss of each row, (rows,); like all below, raise ValueError if the array has another shape."""
    return _of_shape(loss, "value", _call(loss, "value", h, y), h.shape[:1])


def gradient(loss: Loss, h: Floats, y: Floats) -> Floats:
    """Return the derivative of the value by `h`, (rows, outputs)."""
    return _of_shape(loss, "gradient", _call(loss, "gradient", h, y), h.shape)


def hessian(loss: Loss, h: Floats, y: Floats) -> Floats:
    """Return the Newton weight, (rows, outputs)."""
    return _of_shape(loss, "hessian", _call(loss, "hessian", h, y), h.shape)


def link(loss: Loss, h: Floats) -> Floats:
    """Return the prediction, (rows, outputs)."""
    return _of_shape(loss, "link", _call(loss, "link", h), h.shape)


def derivatives(loss: Loss, h: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
    """Return value, gradient and hessian; by the loss's own method `derivatives`, if it has one."""
    if getattr(loss, "derivatives", None) is None:
        return value(loss, h, y), gradient(loss, h, y), hessian(loss, h, y)
    triple = _call(loss, "derivatives", h, y)
    if not isinstance(triple, tuple | list) or len(triple) != 3:
        received = f"{len(triple)} members" if isinstance(triple, tuple | list) else f"type {type(triple).__name__}"
        raise ValueError(
            f"loss={loss.name!r}: what its derivatives() returns has {received}, not 3: "
            "return (value, gradient, hessian)."
        )
    return (
        _of_shape(loss, "value", triple[0], h.shape[:1], " of derivatives()"),
        _of_shape(loss, "gradient", triple[1], h.shape, " of derivatives()"),
        _of_shape(loss, "hessian", triple[2], h.shape, " of derivatives()"),
    )


def baseline(loss: Loss, y: Floats, weight: Floats) -> Floats:
    """Return the best constant raw output, (outputs,); ValueError if it is of another shape, or not finite."""
    constant = _of_shape(loss, "baseline", _call(loss, "baseline", y, weight), y.shape[1:])
    if not np.isfinite(constant).all():
        raise ValueError(f"loss={loss.name!r}: its baseline is {constant}: let it be finite, or let check() refuse y.")
    return np.asarray(constant, np.float64)


def check_target(loss: Loss, y: Floats) -> None:
    """Let a loss refuse a target, (rows, outputs), that it cannot take."""
    _call(loss, "check", y)


def refuse_unusable(
    loss: Loss, returned: dict[str, Floats], h: Floats, y: Floats, when: str, what_to_do: str = ""
) -> None:
    """Refuse numbers that are not finite, and a hessian that is not above 0.

    Parameters
    ----------
    returned : dict of str to array
        By the name of the member that returned it; (rows,) or (rows, outputs).
    when : str
        Where in training this is, for the message.
    what_to_do : str
        A cure beside that of the member.

    Raises
    ------
    ValueError
        With the first wrong row, its target and its raw output.
    """
    for what, array in returned.items():
        by_row = array.reshape(len(y), -1 if len(y) else 1)  # a worker may have no rows
        wrong, cure = ~np.isfinite(by_row).all(axis=1), f"let it be finite there{what_to_do}"
        if what.startswith("hessian") and not wrong.any():
            wrong, cure = ~(by_row > 0).all(axis=1), "let it be above 0 there, such as by np.maximum(hessian, 1e-6)"
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ValueError(
                f"loss={loss.name!r}: its {what} is {array[row]} in row {row}, where y is {y[row]} and the raw output "
                f"is {h[row]}, {when}: {cure}."
            )


def _call(loss: Loss, what: str, *arrays: Floats) -> Any:
    """Call a member of a loss on read-only arrays; a ValueError names the loss if it writes to them."""
    with refuse_writes(
        f"loss={loss.name!r} writes into h or y, or another array that its {what}() receives: work on a copy."
    ):
        return getattr(loss, what)(*map(read_only, arrays))


def _of_shape(loss: Loss, what: str, returned: Any, shape: Shape, where: str = "") -> Floats:
    """Return the result of a loss as an array; raise ValueError unless it holds numbers and has this shape.

    It is called in every round: two attributes and a call that copies nothing.
    """
    if getattr(returned, "shape", None) == shape:
        array = np.asarray(returned)
        if array.dtype.kind in "fiub":
            return array
        received, wanted = f"dtype {array.dtype}", "numbers"
        cure = "return float64"
    else:
        got = () if isinstance(returned, Number) else getattr(returned, "shape", None)
        received = f"type {type(returned).__name__}" if got is None else f"shape {tuple(got)}"
        wanted = f"{'an array of shape ' if got is None else ''}{shape}, which is {_NAMES[what]}"
        cure = _cure(what, got, shape)
    raise ValueError(f"loss={loss.name!r}: its {what}{where} has {received}, not {wanted}: {cure}.")


_NAMES = {"value": "(rows,)", "baseline": "(outputs,)"} | dict.fromkeys(
    ("gradient", "hessian", "link"), "(rows, outputs)"
)


def _cure(what: str, got: Shape | None, shape: Shape) -> str:
    """Return the advice for a loss that returned an array of shape `got`."""
    if got == shape[:1] and shape[1:] == (1,):
        return f"return {what}[:, None]"
    if what == "value" and got is not None and len(got) == 2 and got[:1] == shape:
        return "return value.sum(axis=1)"
    if what == "baseline":
        return "return one number for each output, as y.mean(axis=0) has them"
    if got is not None and got == shape[::-1]:
        return f"return {what}.T"
    if what == "value":
        return "return one number for each row, not their sum or mean"
    constant = f", such as np.full(h.shape, {what})" if got == () else ""
    return f"return one number for each row and output, as h has them{constant}"
