"""Checked losses: the results of a loss, which may be the user's, are checked before other code reads them.

The core reads these arrays without checks of their sizes, so a wrong shape could end the process. A trial on a few rows
before training refuses unusable losses, and finds out whether the hessian varies and the outputs are independent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from numbers import Number
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from boostbp.losses.base import Loss, traits_of
from boostbp.runtime.arrays import Floats, read_only, refuse_writes
from boostbp.runtime.group import workers

Shape = tuple[int, ...]
_MEMBERS = {"value", "gradient", "hessian", "derivatives"}


@dataclass(frozen=True, slots=True, eq=False)
class CheckedLoss:
    """A loss whose methods raise ValueError if it writes into its arguments, or returns a wrong shape or no numbers."""

    loss: Loss
    # Whether the hessian varies. The base of a layer then minimises the loss itself, as one Newton step from a constant
    # would be too long, and rounds that raise the loss are shortened.
    curved: bool = True
    separable: bool = False  # whether outputs can be boosted in parallel; `try_loss` determines both
    of_rows: Loss | None = None  # of a joint loss, what its `prepare` returned
    name = cast(str, property(lambda self: self.loss.name))  # protocols do not see the attributes of `__getattr__`
    scale_free = cast(bool, property(lambda self: self.loss.scale_free))

    def __getattr__(self, name: str) -> Any:
        if name in self.__slots__:  # while the object is being copied
            raise AttributeError(name)
        return getattr(self.loss, name)

    def prepared(self, y: Floats, weight: Floats) -> CheckedLoss:
        """Return the loss of some rows, whose methods must be called with this `y`; unchanged unless it is joint."""
        if traits_of(self.loss).joint is None:
            return self
        return replace(self, of_rows=replace(self, of_rows=None)._call("prepare", y, weight))

    def value(self, h: Floats, y: Floats) -> Floats:
        """Return the loss of each row, (rows,); raise ValueError if it is NaN where the raw output is a number."""
        values = self.raw_value(h, y)
        # One sum instead of a mask of all rows. An infinite value is valid for a raw output that is far off.
        if np.isnan(values.sum()):
            wrong = np.isnan(values) & np.isfinite(h).all(axis=1)
            self.refuse_unusable({"value": np.where(wrong, np.nan, 0.0)}, h, y, "in training")
        return values

    def raw_value(self, h: Floats, y: Floats) -> Floats:
        """Return the loss of each row, (rows,), which may be NaN."""
        return self._array("value", self._call("value", h, y), h.shape[:1])

    def gradient(self, h: Floats, y: Floats) -> Floats:
        """Return the derivative of the value in `h`, (rows, outputs)."""
        return self._array("gradient", self._call("gradient", h, y), h.shape)

    def hessian(self, h: Floats, y: Floats) -> Floats:
        """Return the Newton weight, (rows, outputs)."""
        return self._array("hessian", self._call("hessian", h, y), h.shape)

    def derivatives(self, h: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
        """Return value, gradient and hessian, by the method `derivatives` of the loss if it has one.

        If a subclass overrides one of the three, but not `derivatives`, each is called separately.
        """
        loss = self.of_rows or self.loss
        members = [getattr(loss, "__dict__", {}), *map(vars, type(loss).__mro__)]
        if next((names for names in members if _MEMBERS & names.keys()), {}).get("derivatives") is None:
            return self.raw_value(h, y), self.gradient(h, y), self.hessian(h, y)
        triple = self._call("derivatives", h, y)
        if not isinstance(triple, tuple | list) or len(triple) != 3:
            received = f"{len(triple)} members" if isinstance(triple, tuple | list) else f"type {type(triple).__name__}"
            raise self.error(f"what its derivatives() returns has {received}, not 3: return (value, gradient, hessian)")
        shapes = {"value": h.shape[:1], "gradient": h.shape, "hessian": h.shape}
        of_members = zip(shapes, triple, shapes.values(), strict=True)
        value, gradient, hessian = [self._array(*of_member, " of derivatives()") for of_member in of_members]
        return value, gradient, hessian

    def link(self, h: Floats) -> Floats:
        """Return the prediction, (rows, outputs)."""
        return self._array("link", self._call("link", h), h.shape)

    def baseline(self, y: Floats, weight: Floats) -> Floats:
        """Return the best constant raw output, (outputs,), float64; raise ValueError if it is not finite."""
        constant = self._array("baseline", self._call("baseline", y, weight), (traits_of(self.loss).n_outputs(y),))
        if not np.isfinite(constant).all():
            raise self.error(f"its baseline is {constant}: let it be finite, or let check() refuse y")
        return np.asarray(constant, np.float64)  # running fits start from it, and are float64

    def check(self, y: Floats, weight: Floats | None = None) -> None:
        """Raise the error of the loss if it refuses the target, (rows, outputs), or its rows of weight above 0."""
        self._call("check", y)  # all rows, as a loss is computed on each, and for the numbers of the rows in messages
        if weight is not None and workers().max(float((weight == 0).any()))[0]:
            self._call("check", y[weight > 0])

    def refuse_unusable(self, returned: dict[str, Floats], h: Floats, y: Floats, when: str, advice: str = "") -> None:
        """Refuse numbers that are not finite, and a hessian that is not above 0; the ValueError shows the first row.

        `returned` has arrays, (rows,) or (rows, outputs), by the member that returned them. The message names the place
        in training, `when`, and further `advice`.
        """
        for what, array in returned.items():
            by_row = array.reshape(len(y), -1 if len(y) else 1)  # a worker may have no rows
            wrong, cure = ~np.isfinite(by_row).all(axis=1), f"let it be finite there{advice}"
            if what.startswith("hessian") and not wrong.any():
                wrong, cure = ~(by_row > 0).all(axis=1), "let it be above 0 there, such as by np.maximum(hessian, 1e-6)"
            if wrong.any():
                row = int(np.argmax(wrong))
                where = f"in row {row}, where y is {y[row]} and the raw output is {h[row]}, {when}"
                raise self.error(f"its {what} is {array[row]} {where}: {cure}")

    def error(self, text: str) -> ValueError:
        """Return an error with the name of the loss, the fault and the cure."""
        return ValueError(f"loss={self.loss.name!r}: {text}.")

    def _call(self, member: str, *arrays: Floats) -> Any:
        """Call a member of the loss on read-only arrays."""
        received = f"h or y, or another array that its {member}() receives"
        with refuse_writes(f"loss={self.loss.name!r} writes into {received}: work on a copy."):
            return getattr(self.of_rows or self.loss, member)(*map(read_only, arrays))

    def _array(self, member: str, returned: object, shape: Shape, where: str = "") -> Floats:
        """Return the result of a member as an array; raise ValueError unless it holds numbers and has this shape."""
        if getattr(returned, "shape", None) == shape:
            array = np.asarray(returned)
            if array.dtype.kind in "fiub":
                return array
            raise self.error(f"its {member}{where} has dtype {array.dtype}, not numbers: return float64")
        got = () if isinstance(returned, Number) else getattr(returned, "shape", None)
        received = f"type {type(returned).__name__}" if got is None else f"shape {tuple(got)}"
        axes = {"value": "(rows,)", "baseline": "(outputs,)"}.get(member, "(rows, outputs)")
        expected = f"{'an array of shape ' if got is None else ''}{shape}, which is {axes}"
        raise self.error(f"its {member}{where} has {received}, not {expected}: {_cure(member, got, shape)}")


def _cure(member: str, got: Shape | None, shape: Shape) -> str:
    """Return the advice for a loss that returned an array of shape `got`."""
    # LightGBM and XGBoost accept (rows,) from a loss of one output.
    if got == shape[:1] and shape[1:] == (1,):
        return f"return {member}[:, None]"
    if member == "baseline":
        return "return one number for each output, as y.mean(axis=0) has them"
    if member == "value":
        by_output = got is not None and len(got) == 2 and got[:1] == shape
        return "return value.sum(axis=1)" if by_output else "return one number for each row, not their sum or mean"
    if got is not None and got == shape[::-1]:
        return f"return {member}.T"
    constant = f", such as np.full(h.shape, {member})" if got == () else ""
    return f"return one number for each row and output, as h has them{constant}"


TRIED_ROWS = 64  # few enough to take no time compared to a fit. Arbitrary
SHIFTS = (0.1, -0.1, 1.0, -1.0)  # shifts of raw outputs, in units of the target, at which hessians are compared
SAME = 1e-9  # relative difference of numbers that differ only by rounding errors
DIFFERENCE_STEPS = (
    1e-5,
    3e-4,
)  # steps of central differences relative to a raw output; their error is the square of the step
CLOSE = 1e-4  # absolute difference up to which slopes of two steps agree, in addition to a relative one
ALIKE = 0.1  # relative difference up to which slopes agree, as a loss may compute in single precision
TOO_LONG = 4.0  # refused ratio of a step to the step to the minimum; steps diverge from a ratio of 2 on
UPHILL = -0.5  # correlation of the gradient with differences of the value below which steps raise the loss


def try_loss(loss: Loss, start: Floats, y: Floats) -> CheckedLoss:
    """Try a loss at the raw outputs from which training starts, (outputs,) or (rows, outputs).

    Raises ValueError if an array has a wrong shape or is not finite; if the loss writes into its arguments; if its
    result for a row depends on other rows or on earlier calls; if the value falls along the gradient; if steps by its
    hessian would be far too long; or if it declares `scale_free` and is not.
    """
    if isinstance(loss, CheckedLoss):
        return loss
    checked, traits = CheckedLoss(loss), traits_of(loss)
    h = np.broadcast_to(start, (len(y), traits.n_outputs(y)))
    _check_members(checked.prepared(y, np.ones(len(y))), h, y)
    # Of a joint loss, the first rows of each worker, as evenly spaced ones would hardly share a group.
    rows = np.arange(min(len(y), TRIED_ROWS)) if traits.joint else workers().sampled_rows(len(y), TRIED_ROWS)
    h, y = workers().select_rows(rows).allgather_rows(np.ascontiguousarray(h[rows]), np.ascontiguousarray(y[rows]))
    checked.baseline(y, np.ones(len(y)))  # checks its shape
    checked = checked.prepared(y, np.ones(len(y)))
    with np.errstate(all="ignore"):  # a loss may be undefined at some points of the trial
        _check_calls(checked, h, y)
        _check_gradient(checked, h, y)
        if loss.scale_free and not traits.joint:
            _check_scale_free(checked, h, y)
        if not (curved := traits.exact_gradient and _is_curved(checked, h, y)) and traits.exact_gradient:
            _check_step_length(checked, h, y)
        return CheckedLoss(loss, curved, h.shape[1] == 1 or (not traits.joint and _is_separable(checked, h, y)))


def _check_members(loss: CheckedLoss, h: Floats, y: Floats) -> None:
    """Refuse wrong shapes, and numbers with which no step is possible, on all rows."""
    returned = {"value": loss.raw_value(h, y), "gradient": loss.gradient(h, y), "hessian": loss.hessian(h, y)}
    returned["link"] = loss.link(h)
    # All rows, as check() of the loss should refuse every bad target, but may have missed one.
    if hasattr(loss.loss, "derivatives"):
        names = (f"{member} of derivatives()" for member in ("value", "gradient", "hessian"))
        returned |= zip(names, loss.derivatives(h, y), strict=True)
    loss.refuse_unusable(returned, h, y, "from which training begins", ", or let check() refuse the target")


def _check_calls(loss: CheckedLoss, h: Floats, y: Floats) -> None:
    """Refuse results that depend on other rows or on earlier calls."""
    half = slice(0, max(1, len(y) // 2))
    for member, call in (("value", loss.raw_value), ("gradient", loss.gradient), ("hessian", loss.hessian)):
        returned = call(h, y)
        first = returned.copy()
        call(h + 1.0, y)  # a loss that reuses its array overwrites `returned` here
        if not _same(returned, first):
            raise loss.error(f"a later call changed an array that its {member}() returned: return a new one each time")
        if not _same(call(h, y), first):
            raise loss.error(f"its {member}() returned two results for the same h and y: let it depend on these alone")
        if loss.of_rows is not None:
            continue
        some = call(h[half], y[half])
        if len(some) and not _same(some, first[half]):
            row = int(np.argmax(~np.isclose(some, first[half], SAME, SAME).reshape(len(some), -1).all(axis=1)))
            both = f"{first[row]} among {len(y)} rows and {some[row]} among {len(some)}"
            cure = "let it depend on its row alone, and do not divide by the number of rows"
            raise loss.error(f"its {member} in row {row} is {both}: {cure}")


def _check_gradient(loss: CheckedLoss, h: Floats, y: Floats) -> None:
    """Refuse a gradient along which the value falls."""
    slope, smooth = slopes(lambda at: loss.raw_value(at, y), h, ALIKE, joint=loss.of_rows is not None)
    gradient = loss.gradient(h, y)
    known = smooth & np.isfinite(gradient)
    slope, gradient = slope[known], gradient[known].astype(np.float64)
    # slope @ gradient / size is the cosine of the angle between them; -1 if the gradient has the wrong sign everywhere.
    size = np.sqrt((slope @ slope) * (gradient @ gradient))
    # At a minimum, as of hazards of tied times, slopes are rounding errors.
    if not np.abs(slope).max(initial=0.0) > SAME or slope @ gradient >= UPHILL * size:
        return
    worst = int(np.argmin(slope * gradient))
    fault = f"its gradient is {gradient[worst]:g} where finite differences of its value are {slope[worst]:g}"
    cure = "let it be the derivative in h, such as h - y for squared error, not y - h; see boostbp.check_loss(loss, y)"
    raise loss.error(f"{fault}, so each step raises the loss: {cure}")


def _check_step_length(loss: CheckedLoss, h: Floats, y: Floats) -> None:
    """Refuse a constant hessian far below the second derivative, as steps of such a loss are not shortened."""
    curvature, smooth = slopes(lambda at: loss.gradient(at, y), h, ALIKE, joint=loss.of_rows is not None)
    # Medians, as the curvature of some rows may differ much, or have large rounding errors.
    curvature = curvature[smooth]
    hessian = float(np.median(loss.hessian(h, y)))
    if len(curvature) and (middle := float(np.median(curvature))) > TOO_LONG * hessian:
        fault = f"its hessian is {hessian:g} where finite differences of its gradient are {middle:g}"
        cure = "let hessian() return the second derivative of value() in h, or more"
        raise loss.error(f"{fault}, so each step is many times too long: {cure}")


def _check_scale_free(loss: CheckedLoss, h: Floats, y: Floats) -> None:
    """Refuse ``scale_free = True`` if the loss does not shift with the target."""
    # Training shifts and scales the target, so the gradient must depend only on h - y, and the link must be linear.
    problem = ""
    here, shifted = loss.gradient(h, y), loss.gradient(h + 1.0, y + 1.0)
    if not np.allclose(here, shifted, 1e-6, 1e-6, equal_nan=True):
        row = int(np.argmax(~np.isclose(here, shifted, 1e-6, 1e-6).all(axis=1)))
        problem = f"gradient in row {row} changes from {here[row]} to {shifted[row]} if 1 is added to h and y"
    elif not np.allclose(2.0 * loss.link(h) + 1.0, loss.link(2.0 * h + 1.0), 1e-6, 1e-6):
        problem = "link is not linear"
    if problem:
        raise ValueError(f"loss={loss.name!r} has scale_free=True, but its {problem}: set scale_free = False.")


def _is_curved(loss: CheckedLoss, h: Floats, y: Floats) -> bool:
    """Return whether the hessian varies."""
    # Hessians are compared where training will go: around the start, and up to the targets.
    units, points = {1.0}, [h, _uneven(h)]  # softmax does not change if all outputs move equally
    if h.shape == y.shape and np.allclose(loss.link(h), h):  # the target is on the scale of raw outputs
        units.add(float(np.std(y)) or 1.0)
        points.append(y)
    points += [h + shift * unit for unit in units for shift in SHIFTS]
    hessians = np.concatenate([loss.hessian(at, y).ravel() for at in points])
    hessians = hessians[np.isfinite(hessians)]  # others are refused at the start of training
    return len(hessians) > 0 and bool(np.ptp(hessians) > SAME * np.abs(hessians).max())


def _is_separable(loss: CheckedLoss, h: Floats, y: Floats) -> bool:
    """Return whether the derivatives of an output do not depend on other outputs."""
    # At the start all outputs may be equal, so uneven ones are tried, too.
    for at in (h, _uneven(h)):
        for call in (loss.gradient, loss.hessian):
            whole, outputs = call(at, y), [(at[:, [output]], y[:, [output]]) for output in range(y.shape[1])]
            try:
                parts = [call(*output) for output in outputs]
            except Exception:
                if not any([_fails(call, *output) for output in outputs]):
                    raise  # the second time there is no error, so it was not one of the missing outputs
                return False
            if not _same(np.hstack(parts), whole):
                return False
    return True


def _fails(call: Callable[[Floats, Floats], Floats], h: Floats, y: Floats) -> bool:
    try:
        call(h, y)
    except Exception:
        return True
    return False


def _uneven(h: Floats) -> Floats:
    """Return raw outputs shifted by amounts that differ between rows and outputs."""
    # Cosines of whole numbers never repeat, so no random numbers are needed.
    return h + np.cos(np.arange(h.size)).reshape(h.shape)


def slopes(
    function: Callable[[Floats], Floats], h: Floats, alike: float, *, joint: bool = False
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return central differences of a function by each output, and where they are valid, each (rows, outputs).

    They are valid where they are finite and agree for steps of two lengths, up to the relative difference `alike`. They
    do not agree at kinks, or where rounding errors dominate. The function returns (rows,), or (rows, outputs), where
    each output is differentiated by itself. The outputs of all rows move at once; with `joint` one row after another
    moves, and the sum of (rows,) is differentiated.
    """
    fine, coarse = np.empty(h.shape), np.empty(h.shape)
    with np.errstate(all="ignore"):
        for step, quotients in zip(DIFFERENCE_STEPS, (fine, coarse), strict=True):
            rows = [slice(row, row + 1) for row in range(len(h))] if joint else [slice(None)]
            for moved in product(rows, range(h.shape[1])):
                up, down = h.copy(), h.copy()
                # Relative to large raw outputs, which a small fixed step would not change.
                width = step * np.maximum(1.0, np.abs(h[moved]))
                up[moved] += width
                down[moved] -= width
                rise = function(up) - function(down)
                of_moved = rise[moved] if rise.ndim == 2 else rise.sum(keepdims=True) if joint else rise
                quotients[moved] = of_moved / (up - down)[moved]  # by the rounded width
        smooth = np.abs(fine - coarse) <= alike * (np.abs(fine) + np.abs(coarse)) + CLOSE
    return fine, smooth & np.isfinite(fine)


def _same(a: Floats, b: Floats) -> bool:
    return bool(np.allclose(a, b, SAME, SAME, equal_nan=True))
