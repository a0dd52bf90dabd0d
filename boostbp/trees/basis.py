"""phi, the terms of a leaf regression, and its slope: constant, linear, quadratic, or one's own."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Basis", "Constant", "Elementwise", "Linear", "Quadratic", "load"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Linear:
    """phi(x) = [1, x]."""

    @property
    def degree(self) -> int:
        """Highest power of a column that the kernels add."""
        return 1

    @property
    def columns_per_feature(self) -> int:
        """Columns that `expand` makes of one feature."""
        return 1

    def expand(self, X: Floats) -> Floats:
        """Columns that the leaf regressions read: (rows, features) -> (rows, columns)."""
        return X

    def pull(self, X: Floats, G: Floats) -> Floats:
        """Chain rule: a gradient in the columns, (..., columns), as one in the features, (..., features)."""
        return G


@dataclass(frozen=True, slots=True)
class Quadratic(Linear):
    """phi(x) = [1, x, x^2], the paper's choice (equation for phi in *Implementation Details*)."""

    @property
    def degree(self) -> int:
        """Highest power of a column that the kernels add."""
        return 2


@dataclass(frozen=True, slots=True)
class Constant(Linear):
    """phi(x) = [1]: leaves as those of plain boosted trees, without a derivative."""

    @property
    def columns_per_feature(self) -> int:
        """None."""
        return 0

    def expand(self, X: Floats) -> Floats:
        """No columns, (rows, 0)."""
        return np.empty((len(X), 0))

    def pull(self, X: Floats, G: Floats) -> Floats:
        """Zero, (..., features)."""
        return np.zeros((*G.shape[:-1], X.shape[-1]))


@dataclass(frozen=True, slots=True)
class Elementwise:
    """phi(x) = [1, f_1(x), f_2(x), ...] with functions of one's own, applied to each feature.

    Parameters
    ----------
    functions : sequence of callable
        Array to array, elementwise. The input cannot be written to: a function returns a new array.
    derivatives : sequence of callable
        The derivative of each function, in the same order.

    Examples
    --------
    >>> import numpy as np
    >>> waves = Elementwise([lambda x: x, np.sin], [np.ones_like, np.cos])
    """

    functions: tuple[Callable[[Floats], Floats], ...]
    derivatives: tuple[Callable[[Floats], Floats], ...]

    def __init__(
        self,
        functions: Sequence[Callable[[Floats], Floats]],
        derivatives: Sequence[Callable[[Floats], Floats]],
    ) -> None:
        if not functions or len(functions) != len(derivatives):
            raise ValueError(
                f"functions has {len(functions)} members and derivatives has {len(derivatives)}: "
                "give one derivative for each function, and at least one function."
            )
        object.__setattr__(self, "functions", tuple(functions))
        object.__setattr__(self, "derivatives", tuple(derivatives))

    @property
    def degree(self) -> int:
        """Highest power of a column that the kernels add."""
        return 1

    @property
    def columns_per_feature(self) -> int:
        """Columns that `expand` makes of one feature."""
        return len(self.functions)

    def expand(self, X: Floats) -> Floats:
        """Columns that the leaf regressions read: feature ``j`` fills columns ``j Q .. j Q + Q - 1``."""
        rows, features = X.shape
        Z = np.empty((rows, features, len(self.functions)))
        with np.errstate(all="ignore"):
            for q, function in enumerate(self.functions):
                Z[:, :, q] = _call(function, f"basis function {q}", X)
        return Z.reshape(rows, features * len(self.functions))

    def pull(self, X: Floats, G: Floats) -> Floats:
        """Chain rule: a gradient in the columns, (rows, ..., columns), as one in the features."""
        parts = G.reshape(*G.shape[:-1], X.shape[1], len(self.functions))
        with np.errstate(all="ignore"):
            found = [_call(slope, f"derivative {q} of the basis", X) for q, slope in enumerate(self.derivatives)]
            slopes = np.stack(found, axis=-1)
            slopes = slopes.reshape(len(X), *(1,) * (G.ndim - 2), X.shape[1], len(self.functions))
            total: Floats = np.where(parts == 0.0, 0.0, parts * slopes).sum(axis=-1)
        return total

    def check(self, X: Floats, Z: Floats, features: Sequence[int]) -> None:
        """Refuse values of the functions that are not finite, for a training input and its expansion.

        Raises
        ------
        ValueError
            If a function is not finite at a value of `features` that is not missing.
        """
        values = Z.reshape(len(X), -1, len(self.functions))
        for feature in features:
            bad = ~np.isfinite(values[:, feature]) & ~np.isnan(X[:, [feature]])
            if bad.any():
                row, function = np.argwhere(bad)[0]
                raise ValueError(
                    f"basis function {function} gave {values[row, feature, function]} for the value {X[row, feature]} "
                    f"of feature {feature}: use functions that are finite on all inputs."
                )


def _call(function: Callable[[Floats], Floats], what: str, X: Floats) -> Floats:
    """``function(X)``, which may not write into `X`: that is what the user passed, or what trees are fitted to."""
    seen = X.view()
    seen.flags.writeable = False
    try:
        return function(seen)
    except Exception as error:  # numpy, numba and Cython raise different ones
        if not re.search("read-?only", str(error)):
            raise
        name = getattr(function, "__name__", repr(function))
        raise ValueError(
            f"{what}, {name}, asks to write into its input, which is not its own: let it work on a copy, x.copy()."
        ) from error


Basis = Linear | Quadratic | Elementwise


def load(basis: Any) -> Basis:
    """A basis by name (``"constant"``, ``"linear"``, ``"quadratic"``) or as an object."""
    if isinstance(basis, Linear | Elementwise):
        return basis
    known: dict[str, Basis] = {"constant": Constant(), "linear": Linear(), "quadratic": Quadratic()}
    if isinstance(basis, str) and basis in known:
        return known[basis]
    raise ValueError(f"basis={basis!r} is not known: give 'constant', 'linear', 'quadratic' or a boostbp.Elementwise.")
