"""Bases: the terms phi of a leaf regression and their slopes, as polynomials or user-defined functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Protocol

import numpy as np

from boostbp.runtime.arrays import Floats, read_only, refuse_writes
from boostbp.runtime.group import evenly_spaced

Function = Callable[[Floats], Floats]


class Basis(Protocol):
    """The terms of a leaf regression: powers of columns, which are the features or functions of them.

    A basis has a name once it is in `BASES`; ``docs/extending.md`` writes one.
    """

    @property
    def powers(self) -> int:
        """Highest power of a column in the terms: 1 for [1, z], 2 for [1, z, z^2]."""
        ...

    @property
    def columns_per_feature(self) -> int:
        """Number of columns that `expand` computes from one feature; 0 for a constant, which has no derivative."""
        ...

    @property
    def has_functions(self) -> bool:
        """Whether columns are functions of the features. If False, they are the features, which may then be sparse."""
        ...

    def expand(self, X: Floats) -> Floats:
        """Return the columns that leaf regressions read, (rows, columns); columns of one feature are adjacent."""
        ...

    def vjp(self, X: Floats, G: Floats) -> Floats:
        """Chain rule: turn a gradient in the columns, (rows, ..., columns), into one in the features."""
        ...


@dataclass(frozen=True, slots=True)
class Polynomial:
    """phi(x) = [1, x, ..., x^degree].

    The degree 2 is the paper's choice (equation for phi in *Implementation Details*), and 0 gives [1]: the constant
    leaves of plain boosted trees, which have no derivative.
    """

    has_functions = False  # columns are the features
    degree: int
    powers: int = field(init=False, repr=False, compare=False)  # the degree; 1 for a constant, which has no columns
    columns_per_feature: int = field(init=False, repr=False, compare=False)  # 1; 0 for a constant

    def __post_init__(self) -> None:
        """Refuse powers that the core does not support."""
        if self.degree not in (0, 1, 2):
            raise ValueError(f"degree={self.degree!r} is not 0, 1 or 2: use boostbp.Elementwise for other powers.")
        object.__setattr__(self, "powers", max(self.degree, 1))
        object.__setattr__(self, "columns_per_feature", min(self.degree, 1))

    def expand(self, X: Floats) -> Floats:
        """Return the features; for a constant no columns, (rows, 0)."""
        return X if self.degree else np.empty((len(X), 0))

    def vjp(self, X: Floats, G: Floats) -> Floats:
        """Return the gradient itself; zeros for a constant, (..., features)."""
        return G if self.degree else np.zeros((*G.shape[:-1], X.shape[-1]))


@dataclass(frozen=True, slots=True)
class Elementwise:
    """phi(x) = [1, f_1(x), f_2(x), ...] with user-defined functions, applied to each feature.

    Parameters
    ----------
    functions : sequence of callable
        Elementwise functions of arrays. The input is read-only: a function returns a new array.
    derivatives : sequence of callable
        The derivative of each function, in the same order.

    Examples
    --------
    >>> import numpy as np
    >>> waves = Elementwise([lambda x: x, np.sin], [np.ones_like, np.cos])
    """

    has_functions = True
    functions: tuple[Function, ...]
    derivatives: tuple[Function, ...]
    powers = 1  # functions themselves, not their squares, are terms

    def __init__(self, functions: Sequence[Function], derivatives: Sequence[Function]) -> None:
        if not functions or len(functions) != len(derivatives):
            received = f"functions has {len(functions)} members and derivatives has {len(derivatives)}"
            raise ValueError(f"{received}: give one derivative for each function, and at least one function.")
        object.__setattr__(self, "functions", tuple(functions))
        object.__setattr__(self, "derivatives", tuple(derivatives))

    @property
    def columns_per_feature(self) -> int:
        """Number of functions."""
        return len(self.functions)

    def expand(self, X: Floats) -> Floats:
        """Return the columns that leaf regressions read: those of feature ``j`` are ``j Q .. j Q + Q - 1``."""
        rows, features = X.shape
        Z = np.empty((rows, features, len(self.functions)))
        with np.errstate(all="ignore"):
            for q, function in enumerate(self.functions):
                Z[:, :, q] = _call(function, f"basis function {q}", X)
        return Z.reshape(rows, features * len(self.functions))

    def vjp(self, X: Floats, G: Floats) -> Floats:
        """Chain rule: turn a gradient in the columns, (rows, ..., columns), into one in the features."""
        parts = G.reshape(*G.shape[:-1], X.shape[1], len(self.functions))
        with np.errstate(all="ignore"):
            per_function = [_call(slope, f"derivative {q} of the basis", X) for q, slope in enumerate(self.derivatives)]
            slopes = np.stack(per_function, axis=-1)
            slopes = slopes.reshape(len(X), *(1,) * (G.ndim - 2), X.shape[1], len(self.functions))
            # A gradient of 0 stays 0 even where a slope is infinite or NaN, as at a missing value.
            return np.asarray(np.where(parts == 0.0, 0.0, parts * slopes).sum(axis=-1))


def _call(function: Function, what: str, X: Floats) -> Floats:
    """Return ``function(X)``; raise an error if it writes into `X`."""
    name = getattr(function, "__name__", repr(function))
    with refuse_writes(f"{what}, {name}, writes into its input: work on a copy, x.copy()."):
        return function(read_only(X))


# Rows of a trial, enough to reach each branch of a function within milliseconds. Arbitrary.
TRIAL_ROWS = 32
# Step of finite differences, relative to the larger of a value and the typical size of values.
STEP = 1e-6
# Tolerated relative difference of two slopes, far above the error of finite differences. Arbitrary.
TOLERANCE = 0.01
BASES: dict[str, Basis] = {"constant": Polynomial(0), "linear": Polynomial(1), "quadratic": Polynomial(2)}
_MEMBERS = ("powers", "columns_per_feature", "has_functions", "expand", "vjp")


def load_basis(basis: str | Basis) -> Basis:
    """Return a basis by name, or a basis object itself; raise ValueError if it is neither."""
    if isinstance(basis, str) and basis in BASES:
        return BASES[basis]
    if isinstance(basis, str | type) or not all(hasattr(basis, member) for member in _MEMBERS):
        known = f"{', '.join(map(repr, BASES))}, a boostbp.Elementwise, or an object like boostbp.trees.basis.Basis"
        raise ValueError(f"basis={basis!r} is not known: give {known}.")
    if basis.powers not in (1, 2):
        raise ValueError(f"basis={basis!r} has powers={basis.powers!r}: let it be 1 or 2, which the core supports.")
    if not isinstance(basis.columns_per_feature, Integral) or basis.columns_per_feature < 0:
        raise ValueError(f"basis={basis!r} has columns_per_feature={basis.columns_per_feature!r}, not a count.")
    return basis


# A basis may be user-defined, and the core checks no bounds, so the shapes that it returns are checked here.


def expand(basis: Basis, X: Floats) -> Floats:
    """Return the columns of a basis, (rows, features * `columns_per_feature`); ValueError for another shape."""
    if isinstance(basis, Polynomial):
        return basis.expand(X)
    Z = _call(basis.expand, f"basis={basis!r}", X)
    return _of_shape(basis, "expand", Z, (len(X), X.shape[1] * basis.columns_per_feature))


def gradient_in_features(basis: Basis, X: Floats, G: Floats) -> Floats:
    """Return a gradient in the columns of a basis as one in the features; ValueError for another shape."""
    if isinstance(basis, Polynomial):
        return basis.vjp(X, G)

    def vjp(x: Floats) -> Floats:  # messages contain its name
        return basis.vjp(x, read_only(G))

    return _of_shape(basis, "vjp", _call(vjp, f"basis={basis!r}", X), (*G.shape[:-1], X.shape[1]))


def _of_shape(basis: Basis, what: str, returned: Floats, shape: tuple[int, ...]) -> Floats:
    if getattr(returned, "shape", None) != shape:
        received = getattr(returned, "shape", type(returned).__name__)
        raise ValueError(f"basis={basis!r}: its {what}() returned {received}, not an array of the shape {shape}.")
    return np.ascontiguousarray(returned, np.float64)


def check_finite(basis: Basis, X: Floats, Z: Floats, features: Sequence[int]) -> None:
    """Raise ValueError if a function in the columns `Z` of `X` is not finite at a value of `features`."""
    values = Z.reshape(len(X), -1, basis.columns_per_feature)
    for feature in features:
        bad = ~np.isfinite(values[:, feature]) & ~np.isnan(X[:, [feature]])
        if bad.any():
            row, function = np.argwhere(bad)[0]
            value, cell = values[row, feature, function], f"the value {X[row, feature]} of feature {feature}"
            cure = "use functions that are finite on all inputs"
            raise ValueError(f"basis function {function} gave {value} for {cell}: {cure}.")


def try_basis(basis: Basis, X: Floats) -> None:
    """Try a basis on some training rows, (rows, features). Polynomials need no trial.

    Raises ValueError if columns depend on other rows or on another feature than their own, or `vjp` differs from the
    derivative of `expand` at more than half of the rows.
    """
    if isinstance(basis, Polynomial) or not len(X):
        return
    X = np.ascontiguousarray(X[evenly_spaced(len(X), TRIAL_ROWS)])
    half = max(1, len(X) // 2)
    with np.errstate(all="ignore"):
        Z = expand(basis, X)
        if not basis.has_functions and not np.array_equal(Z, X, equal_nan=True):
            fault = "has has_functions=False, but its expand() does not return the features"
            raise ValueError(f"basis={basis!r} {fault}: set it True.")
        if not np.allclose(expand(basis, X[:half]), Z[:half], equal_nan=True):
            raise ValueError(f"basis={basis!r}: its expand() depends on other rows: use the row alone.")
        _check_features(basis, X, Z)
        _check_slopes(basis, X, Z)


def _check_features(basis: Basis, X: Floats, Z: Floats) -> None:
    """Change one feature at a time, and refuse a basis in which other columns than its own change."""
    per_feature = basis.columns_per_feature
    for feature in range(min(X.shape[1], 4) if X.shape[1] > 1 else 0):
        changed = X.copy()
        changed[:, feature] = X[::-1, feature]
        columns = expand(basis, changed)
        same = np.asarray(np.isclose(columns, Z, equal_nan=True).all(axis=0))
        same[feature * per_feature : (feature + 1) * per_feature] = True
        if not same.all():
            fault = f"column {int(np.argmin(same))} of its expand() changes with feature {feature}"
            cure = "let columns j * q to j * q + q - 1 be the functions of feature j, where q is columns_per_feature"
            raise ValueError(f"basis={basis!r}: {fault}: {cure}.")


def _check_slopes(basis: Basis, X: Floats, Z: Floats) -> None:
    """Compare `vjp` with differences of `expand`, where the differences on both sides agree."""
    per_feature, known = basis.columns_per_feature, np.isfinite(X)
    typical = np.median(np.abs(X[known])) if known.any() else 1.0
    step = STEP * np.maximum(np.abs(X), typical if typical > 0 else 1.0)
    up, down, width = expand(basis, X + step), expand(basis, X - step), np.repeat(step, per_feature, axis=1)
    above, below, middle = (up - Z) / width, (Z - down) / width, (up - down) / (2 * width)
    for column in range(min(Z.shape[1], 8 * per_feature)):
        feature, function = divmod(column, per_feature)
        G = np.zeros((len(X), 1, Z.shape[1]))
        G[:, 0, column] = 1.0
        slope, rise = gradient_in_features(basis, X, G)[:, 0, feature], middle[:, column]
        nan = np.isnan(slope) & known[:, feature]
        if (nan & np.isfinite(Z[:, column])).any():
            fault = f"gives NaN for function {function} at the value {X[np.argmax(nan), feature]} of feature {feature}"
            raise ValueError(f"basis={basis!r}: its vjp() {fault}: return a number.")
        size = np.abs(slope) + np.abs(rise)
        # Where the slopes on both sides differ, a function has a kink or a jump and no derivative.
        smooth = np.abs(above[:, column] - below[:, column]) <= TOLERANCE * (np.abs(rise) + typical * TOLERANCE)
        wrong = smooth & np.isfinite(size) & (np.abs(slope - rise) > TOLERANCE * size + 1e-6)
        if wrong.sum() > 0.5 * len(X):
            row = int(np.argmax(wrong))
            cell = f"function {function} at the value {X[row, feature]} of feature {feature}"
            cure = f"finite differences of expand() give {rise[row]:g}: let it be the derivative"
            raise ValueError(f"basis={basis!r}: its vjp() gives the slope {slope[row]:g} for {cell}, but {cure}.")
