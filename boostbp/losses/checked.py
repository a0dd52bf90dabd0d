"""Checked losses: calls a loss, perhaps the user's, and checks the shapes and kinds of what it returns.

Compiled code reads these arrays without looking at their sizes: a wrong shape there would end the process.
"""

from __future__ import annotations

from numbers import Number
from typing import Any

import numpy as np

from boostbp.floats import Floats
from boostbp.losses.base import Loss

Shape = tuple[int, ...]


def value(loss: Loss, h: Floats, y: Floats) -> Floats:
    """Return the loss of each row, (rows,); like all below, raise ValueError if the array has another shape."""
    return _of_shape(loss, "value", loss.value(h, y), h.shape[:1])


def gradient(loss: Loss, h: Floats, y: Floats) -> Floats:
    """Return the derivative of the value by `h`, (rows, outputs)."""
    return _of_shape(loss, "gradient", loss.gradient(h, y), h.shape)


def hessian(loss: Loss, h: Floats, y: Floats) -> Floats:
    """Return the Newton weight, (rows, outputs)."""
    return _of_shape(loss, "hessian", loss.hessian(h, y), h.shape)


def derivatives(loss: Loss, h: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
    """Return value, gradient and hessian; by the loss's own method `derivatives`, if it has one."""
    together = getattr(loss, "derivatives", None)
    if together is None:
        return value(loss, h, y), gradient(loss, h, y), hessian(loss, h, y)
    triple = together(h, y)
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
    constant = _of_shape(loss, "baseline", loss.baseline(y, weight), y.shape[1:])
    if not np.isfinite(constant).all():
        raise ValueError(f"loss={loss.name!r}: its baseline is {constant}: let it be finite, or let check() refuse y.")
    return np.asarray(constant, np.float64)


def check(loss: Loss, baseline: Floats, y: Floats) -> None:
    """Refuse a loss whose arrays are not as `Loss` promises, at the outputs from which training begins.

    Raises ValueError if anything is of another shape, no step from there would give a number, or the loss writes into
    `h` or `y`.
    """
    h, y = np.broadcast_to(baseline, y.shape), np.broadcast_to(y, y.shape)  # neither can be written to
    try:
        returned = {
            "value": value(loss, h, y),
            "gradient": gradient(loss, h, y),
            "hessian": hessian(loss, h, y),
            "link": _of_shape(loss, "link", loss.link(h), h.shape),
        }
        if hasattr(loss, "derivatives"):
            of_all = zip(("value", "gradient", "hessian"), derivatives(loss, h, y), strict=True)
            returned |= {f"{what} of derivatives()": array for what, array in of_all}
    except ValueError as error:
        if "read-only" not in str(error):
            raise
        raise ValueError(f"loss={loss.name!r} writes into h or y, which are not its own: work on a copy.") from error
    for what, array in returned.items():
        by_row = array.reshape(len(y), -1 if len(y) else 1)  # a worker may have no rows
        wrong, cure = ~np.isfinite(by_row).all(axis=1), "finite there, or let check() refuse it"
        if what.startswith("hessian") and not wrong.any():
            wrong, cure = ~(by_row > 0).all(axis=1), "above 0 there, such as by np.maximum(hessian, 1e-6)"
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ValueError(
                f"loss={loss.name!r}: its {what} is {array[row]} in row {row}, where y is {y[row]} and the raw output "
                f"is that which training begins from, {h[row]}: let it be {cure}."
            )


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
