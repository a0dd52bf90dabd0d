"""Checked loss: takes the place of a loss in training, and tries it before training begins.

It finds out on a few rows whether the hessian varies and whether outputs can be boosted side by side, so authors of
losses need not declare either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from boostbp.floats import Floats
from boostbp.group import workers
from boostbp.losses import checked
from boostbp.losses.base import Loss

TRIED_ROWS = 64  # rows on which a loss is tried
SHIFTS = (0.1, -0.1, 1.0, -1.0)  # of raw outputs, in units of the target, at which the hessian is compared
SAME = 1e-9  # relative difference of numbers that differ by rounding alone
STEP = 1e-4  # of central differences, relative to a raw output; their error is its square
TOO_LONG = 4.0  # times the step to the minimum; from twice that step on, steps do not converge
UPHILL = -0.5  # correlation of the gradient with differences of the value below which steps raise the loss


@dataclass(frozen=True, slots=True, eq=False)
class CheckedLoss:
    """A loss whose every call is checked; it has all other attributes of the loss.

    Attributes
    ----------
    loss : Loss
    curved : bool
        Whether its hessian varies. The ridge regression under its layer then minimises the loss itself, as one Newton
        step from a constant would go too far, and rounds that raise the loss are shortened.
    separable : bool
        Whether outputs can be boosted side by side, as the loss is a sum over outputs.
    """

    loss: Loss
    curved: bool
    separable: bool

    @classmethod
    def of(cls, loss: Loss, start: Floats, y: Floats) -> CheckedLoss:
        """Try a loss at the raw outputs from which training begins, (outputs,) or (rows, outputs).

        Raises
        ------
        ValueError
            If an array has a wrong shape or is not finite; if the loss writes into its arguments; if its result for a
            row depends on other rows or on earlier calls; if the gradient does not point where the value rises; if
            steps by its hessian would be far too long; or if it declares `scale_free` and is not.
        """
        if isinstance(loss, cls):
            return loss
        h = np.broadcast_to(start, y.shape)
        _check_members(loss, h, y)
        rows = workers().spaced(len(y), TRIED_ROWS)
        h, y = workers().of(rows).together(np.ascontiguousarray(h[rows]), np.ascontiguousarray(y[rows]))
        checked.baseline(loss, y, np.ones(len(y)))
        with np.errstate(all="ignore"):  # a loss need not be defined wherever it is tried
            _check_calls(loss, h, y)
            _check_gradient(loss, h, y)
            if loss.scale_free:
                _check_scale_free(loss, h, y)
            if not (curved := _varies(loss, h, y)):
                _check_step_length(loss, h, y)
            return cls(loss, curved, y.shape[1] == 1 or _is_separable(loss, h, y))

    def __getattr__(self, name: str) -> Any:
        if name in self.__slots__:  # while the object is being copied
            raise AttributeError(name)
        return getattr(self.loss, name)

    def value(self, h: Floats, y: Floats) -> Floats:
        """Loss of each row, (rows,); ValueError if it is NaN where the raw output is a number."""
        values = checked.value(self.loss, h, y)
        if np.isnan(values.sum()):
            known = np.isfinite(h).all(axis=1)
            checked.refuse_unusable(
                self.loss, {"value": np.where(np.isnan(values) & known, np.nan, 0.0)}, h, y, "in training"
            )
        return values

    def gradient(self, h: Floats, y: Floats) -> Floats:
        """Derivative of `value`, (rows, outputs)."""
        return checked.gradient(self.loss, h, y)

    def hessian(self, h: Floats, y: Floats) -> Floats:
        """Newton weight, (rows, outputs)."""
        return checked.hessian(self.loss, h, y)

    def derivatives(self, h: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
        """Value, gradient and hessian."""
        return checked.derivatives(self.loss, h, y)

    def link(self, h: Floats) -> Floats:
        """Prediction on the scale of `y`, (rows, outputs)."""
        return checked.link(self.loss, h)


def _check_members(loss: Loss, h: Floats, y: Floats) -> None:
    """Refuse wrong shapes, and numbers that allow no step, on all rows."""
    returned = {
        "value": checked.value(loss, h, y),
        "gradient": checked.gradient(loss, h, y),
        "hessian": checked.hessian(loss, h, y),
        "link": checked.link(loss, h),
    }
    if hasattr(loss, "derivatives"):
        of_all = zip(("value", "gradient", "hessian"), checked.derivatives(loss, h, y), strict=True)
        returned |= {f"{what} of derivatives()": array for what, array in of_all}
    checked.refuse_unusable(loss, returned, h, y, "from which training begins", ", or let check() refuse the target")


def _check_calls(loss: Loss, h: Floats, y: Floats) -> None:
    """Refuse results that depend on other rows or on earlier calls."""
    half = slice(0, max(1, len(y) // 2))
    for what in ("value", "gradient", "hessian"):
        call = getattr(checked, what)
        first = call(loss, h, y)
        kept = first.copy()
        call(loss, h + 1.0, y)
        some = call(loss, h[half], y[half])
        if not _same(first, kept):
            raise ValueError(
                f"loss={loss.name!r}: an array that its {what}() returned was changed by a later call: return a new "
                "array from each call."
            )
        if not _same(call(loss, h, y), kept):
            raise ValueError(
                f"loss={loss.name!r}: its {what}() returned two results for the same h and y: let it depend on h and y "
                "alone."
            )
        if len(some) and not _same(some, kept[half]):
            row = int(np.argmax(~np.isclose(some, kept[half], SAME, SAME).reshape(len(some), -1).all(axis=1)))
            raise ValueError(
                f"loss={loss.name!r}: its {what} in row {row} is {kept[row]} among {len(y)} rows and {some[row]} among "
                f"{len(some)}: let it depend on its row alone, and do not divide by the number of rows."
            )


def _check_gradient(loss: Loss, h: Floats, y: Floats) -> None:
    """Refuse a gradient that points where the value falls."""
    slope, gradient = differences(lambda at: checked.value(loss, at, y), h), checked.gradient(loss, h, y)
    noise = np.finfo(float).eps * np.abs(checked.value(loss, h, y)).max(initial=0.0) / STEP
    known = np.isfinite(slope) & np.isfinite(gradient)
    slope, gradient = slope[known], gradient[known].astype(np.float64)
    size = np.sqrt((slope @ slope) * (gradient @ gradient))
    if not size > 0 or np.abs(slope).max() <= 1e3 * noise or slope @ gradient >= UPHILL * size:
        return
    worst = int(np.argmin(slope * gradient))
    raise ValueError(
        f"loss={loss.name!r}: its gradient is {gradient[worst]:g} where finite differences of its value are "
        f"{slope[worst]:g}, so each step raises the loss: let gradient() return the derivative of value() in h, such "
        "as h - y for squared error, not y - h. boostbp.check_loss(loss, y) compares all members."
    )


def _check_step_length(loss: Loss, h: Floats, y: Floats) -> None:
    """Refuse a constant hessian far below the second derivative: nothing shortens the steps of such a loss."""

    def gradient(at: Floats) -> Floats:
        return checked.gradient(loss, at, y)

    fine, coarse = differences(gradient, h), differences(gradient, h, 30.0 * STEP)
    curvature = fine[np.abs(fine - coarse) <= 0.1 * np.abs(fine)]  # at a kink it grows as steps become shorter
    hessian = checked.hessian(loss, h, y)
    if len(curvature) and (middle := float(np.median(curvature))) > TOO_LONG * float(np.median(hessian)):
        raise ValueError(
            f"loss={loss.name!r}: its hessian is {float(np.median(hessian)):g} where finite differences of its "
            f"gradient are {middle:g}, so each step is many times too long: let hessian() return the second "
            "derivative of value() in h, or more."
        )


def _check_scale_free(loss: Loss, h: Floats, y: Floats) -> None:
    """Refuse ``scale_free = True`` if the loss does not shift with the target."""
    cure = "set scale_free = False, and training does not scale the target"
    here, shifted = checked.gradient(loss, h, y), checked.gradient(loss, h + 1.0, y + 1.0)
    if not np.allclose(here, shifted, 1e-6, 1e-6, equal_nan=True):
        row = int(np.argmax(~np.isclose(here, shifted, 1e-6, 1e-6).all(axis=1)))
        raise ValueError(
            f"loss={loss.name!r} has scale_free=True, but its gradient in row {row} changes from {here[row]} to "
            f"{shifted[row]} if 1 is added to h and y: {cure}."
        )
    link, moved = checked.link(loss, h), checked.link(loss, 2.0 * h + 1.0)
    if not np.allclose(2.0 * link + 1.0, moved, 1e-6, 1e-6):
        raise ValueError(f"loss={loss.name!r} has scale_free=True, but its link is not linear: {cure}.")


def probes(loss: Loss, h: Floats, y: Floats) -> Iterator[Floats]:
    """Yield raw outputs around the start of training, and the target itself if it is on their scale."""
    identity = np.allclose(checked.link(loss, h), h)
    units = {1.0, float(np.std(y)) or 1.0} if identity else {1.0}
    yield h + _jitter(h)  # softmax does not change where all outputs move together
    yield from (h + shift * unit for unit in sorted(units) for shift in SHIFTS)
    if identity:
        yield y


def _jitter(h: Floats) -> Floats:
    """Return a shift that differs between rows and outputs."""
    return np.cos(np.arange(h.size)).reshape(h.shape)


def _varies(loss: Loss, h: Floats, y: Floats) -> bool:
    """Whether the hessian is not one number."""
    found = [checked.hessian(loss, h, y), *(checked.hessian(loss, at, y) for at in probes(loss, h, y))]
    known = np.concatenate([of_probe[np.isfinite(of_probe)] for of_probe in found])
    return len(known) > 0 and bool(np.ptp(known) > SAME * np.abs(known).max())


def _is_separable(loss: Loss, h: Floats, y: Floats) -> bool:
    """Whether an output has the same derivatives alone as among all outputs, whatever the others are."""
    for at in (h, h + _jitter(h)):
        whole = [checked.gradient(loss, at, y), checked.hessian(loss, at, y)]
        for output in range(y.shape[1]):
            alone = slice(output, output + 1)
            try:
                part = [call(loss, at[:, alone], y[:, alone]) for call in (checked.gradient, checked.hessian)]
            except Exception:  # the loss needs all outputs
                return False
            if not all(_same(of_part, of_all[:, alone]) for of_part, of_all in zip(part, whole, strict=True)):
                return False
    return True


def differences(function: Callable[[Floats], Floats], h: Floats, step: float = STEP) -> Floats:
    """Return central differences of a function by each output of its row, (rows, outputs).

    The function returns (rows,), or (rows, outputs), of which each output is taken by itself.
    """
    slopes = np.empty(h.shape)
    for output in range(h.shape[1]):
        width = np.zeros(h.shape)
        width[:, output] = step * np.maximum(1.0, np.abs(h[:, output]))
        up, down = h + width, h - width
        rise = function(up) - function(down)
        slopes[:, output] = (rise if rise.ndim == 1 else rise[:, output]) / (up - down)[:, output]
    return slopes


def _same(a: Floats, b: Floats) -> bool:
    return bool(np.allclose(a, b, SAME, SAME, equal_nan=True))
