"""Checked losses: calls of a loss, perhaps the user's, whose results are checked before anything reads them.

Compiled code reads these arrays without looking at their sizes: a wrong shape there would end the process.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np

from boostbp.losses.base import Loss
from boostbp.runtime.arrays import Floats, read_only, refuse_writes

Shape = tuple[int, ...]
_NAMES = {"value": "(rows,)", "baseline": "(outputs,)"} | dict.fromkeys(
    ("gradient", "hessian", "link"), "(rows, outputs)"
)


@dataclass(frozen=True, slots=True, eq=False)
class CheckedLoss:
    """A loss whose every call is checked; it has all other attributes of the loss.

    Each method raises ValueError, with the name of the loss, if the loss writes into its arguments, or if its result
    has a wrong shape or does not hold numbers.
    """

    loss: Loss
    # Whether the hessian varies. The ridge regression under its layer then minimises the loss itself, as one Newton
    # step from a constant would go too far, and rounds that raise the loss are shortened.
    curved: bool = True
    # Whether outputs can be boosted side by side, as the loss is a sum over outputs.
    # `boostbp.losses.loss_trial.try_loss` finds out both. Until then they have their cautious values.
    separable: bool = False

    def __getattr__(self, name: str) -> Any:
        if name in self.__slots__:  # while the object is being copied
            raise AttributeError(name)
        return getattr(self.loss, name)

    def value(self, h: Floats, y: Floats) -> Floats:
        """Return the loss of each row, (rows,); raise ValueError if it is NaN where the raw output is a number."""
        values = self.raw_value(h, y)
        # One sum instead of a mask of all rows; an infinite value is an honest answer to a raw output far off.
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
        """Return value, gradient and hessian; by the loss's own method `derivatives`, if it has one.

        A class that overrides one of the three, but not `derivatives`, means its own: each is then called by itself.
        """
        members = [getattr(self.loss, "__dict__", {}), *map(vars, type(self.loss).__mro__)]
        joint, *single = [
            next((place for place, names in enumerate(members) if name in names), len(members))
            for name in ("derivatives", "value", "gradient", "hessian")
        ]
        if getattr(self.loss, "derivatives", None) is None or joint > min(single):
            return self.raw_value(h, y), self.gradient(h, y), self.hessian(h, y)
        triple = self._call("derivatives", h, y)
        if not isinstance(triple, tuple | list) or len(triple) != 3:
            received = f"{len(triple)} members" if isinstance(triple, tuple | list) else f"type {type(triple).__name__}"
            raise self.error(f"what its derivatives() returns has {received}, not 3: return (value, gradient, hessian)")
        shapes = {"value": h.shape[:1], "gradient": h.shape, "hessian": h.shape}
        value, gradient, hessian = map(self._array, shapes, triple, shapes.values(), [" of derivatives()"] * 3)
        return value, gradient, hessian

    def link(self, h: Floats) -> Floats:
        """Return the prediction, (rows, outputs)."""
        return self._array("link", self._call("link", h), h.shape)

    def baseline(self, y: Floats, weight: Floats) -> Floats:
        """Return the best constant raw output, (outputs,), float64; raise ValueError if it is not finite."""
        constant = self._array("baseline", self._call("baseline", y, weight), y.shape[1:])
        if not np.isfinite(constant).all():
            raise self.error(f"its baseline is {constant}: let it be finite, or let check() refuse y")
        return np.asarray(constant, np.float64)  # running fits, which begin with it, are float64

    def check(self, y: Floats) -> None:
        """Let the loss refuse a target, (rows, outputs), that it cannot take."""
        self._call("check", y)

    def refuse_unusable(
        self, returned: dict[str, Floats], h: Floats, y: Floats, when: str, what_to_do: str = ""
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
                raise self.error(
                    f"its {what} is {array[row]} in row {row}, where y is {y[row]} and the raw output is {h[row]}, "
                    f"{when}: {cure}"
                )

    def error(self, text: str) -> ValueError:
        """Return the error that names the loss, with what is wrong and the cure."""
        return ValueError(f"loss={self.loss.name!r}: {text}.")

    def _call(self, member: str, *arrays: Floats) -> Any:
        """Call a member of the loss on read-only arrays."""
        received = f"h or y, or another array that its {member}() receives"
        with refuse_writes(f"loss={self.loss.name!r} writes into {received}: work on a copy."):
            return getattr(self.loss, member)(*map(read_only, arrays))

    def _array(self, member: str, returned: object, shape: Shape, where: str = "") -> Floats:
        """Return the result of a member as an array; raise ValueError unless it holds numbers and has this shape.

        It is called in every round: two attributes and a call that copies nothing.
        """
        if getattr(returned, "shape", None) == shape:
            array = np.asarray(returned)
            if array.dtype.kind in "fiub":
                return array
            raise self.error(f"its {member}{where} has dtype {array.dtype}, not numbers: return float64")
        got = () if isinstance(returned, Number) else getattr(returned, "shape", None)
        received = f"type {type(returned).__name__}" if got is None else f"shape {tuple(got)}"
        expected = f"{'an array of shape ' if got is None else ''}{shape}, which is {_NAMES[member]}"
        raise self.error(f"its {member}{where} has {received}, not {expected}: {_cure(member, got, shape)}")


def _cure(member: str, got: Shape | None, shape: Shape) -> str:
    """Return the advice for a loss that returned an array of shape `got`."""
    # LightGBM and XGBoost take (rows,) from a loss of one output.
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
