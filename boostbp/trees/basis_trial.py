"""Try a user-defined basis on some rows: compiled loops and the chain rule rely on these properties."""

from __future__ import annotations

import numpy as np

from boostbp.floats import Floats
from boostbp.trees.basis import Basis, Polynomial, expand, vjp

TRIAL_ROWS = 32  # arbitrary: enough to meet each branch of a function, and a trial takes milliseconds
STEP = 1e-6  # of finite differences, relative to the larger of a value and the typical size of values
TOLERANCE = 0.01  # relative difference of two slopes; arbitrary, far above the error of finite differences


def try_basis(basis: Basis, X: Floats) -> None:
    """Try a basis on some training rows, (rows, features); polynomials pass untried.

    Raises
    ------
    ValueError
        If columns of a row depend on other rows, columns of a feature depend on another feature, or `vjp` differs from
        the derivative of `expand` at more than half of the rows.
    """
    if isinstance(basis, Polynomial):
        return
    rows = np.unique(np.linspace(0, len(X) - 1, min(len(X), TRIAL_ROWS)).astype(int))
    X = np.ascontiguousarray(X[rows])
    with np.errstate(all="ignore"):
        if len(X):
            if not basis.has_functions and not np.array_equal(expand(basis, X), X, equal_nan=True):
                raise ValueError(
                    f"basis={basis!r} has has_functions=False, but its expand() does not return the features: set "
                    "has_functions = True."
                )
            _check_rows(basis, X)
            _check_features(basis, X)
            _check_slopes(basis, X)


def _check_rows(basis: Basis, X: Floats) -> None:
    half = max(1, len(X) // 2)
    if not np.allclose(expand(basis, X[:half]), expand(basis, X)[:half], equal_nan=True):
        raise ValueError(
            f"basis={basis!r}: its expand() gives other columns for a row if other rows change: use the features of "
            "the row alone."
        )


def _check_features(basis: Basis, X: Floats) -> None:
    """Change one feature at a time: no columns but its own may change with it."""
    per_feature = basis.columns_per_feature
    Z = expand(basis, X)
    for feature in range(min(X.shape[1], 4) if X.shape[1] > 1 else 0):
        other = X.copy()
        other[:, feature] = X[::-1, feature]
        place = slice(feature * per_feature, (feature + 1) * per_feature)
        now = expand(basis, other)
        now[:, place] = Z[:, place]
        if not np.allclose(now, Z, equal_nan=True):
            column = int(np.argmax(~np.isclose(now, Z, equal_nan=True).all(axis=0)))
            raise ValueError(
                f"basis={basis!r}: column {column} of its expand() changes with feature {feature}: let columns "
                "j * q to j * q + q - 1 be the functions of feature j, where q is columns_per_feature."
            )


def _check_slopes(basis: Basis, X: Floats) -> None:
    per_feature = basis.columns_per_feature
    known = np.isfinite(X)
    typical = np.median(np.abs(X[known])) if known.any() else 1.0
    step = STEP * np.maximum(np.abs(X), typical if typical > 0 else 1.0)
    here, up, down = expand(basis, X), expand(basis, X + step), expand(basis, X - step)
    of_feature = np.repeat(step, per_feature, axis=1)
    above, below, middle = (up - here) / of_feature, (here - down) / of_feature, (up - down) / (2 * of_feature)
    for column in range(min(n_columns := here.shape[1], 8 * per_feature)):
        feature = column // per_feature
        G = np.zeros((len(X), 1, n_columns))
        G[:, 0, column] = 1.0
        slope, rise = vjp(basis, X, G)[:, 0, feature], middle[:, column]
        if (np.isnan(slope) & known[:, feature] & np.isfinite(here[:, column])).any():
            row = int(np.argmax(np.isnan(slope) & known[:, feature]))
            raise ValueError(
                f"basis={basis!r}: its vjp() gives NaN for function {column % per_feature} at the value "
                f"{X[row, feature]} of feature {feature}: return a number."
            )
        size = np.abs(slope) + np.abs(rise)
        smooth = np.abs(above[:, column] - below[:, column]) <= TOLERANCE * (np.abs(rise) + typical * TOLERANCE)
        wrong = smooth & np.isfinite(size) & (np.abs(slope - rise) > TOLERANCE * size + 1e-6)
        if wrong.sum() > 0.5 * len(X):
            row = int(np.argmax(wrong))
            raise ValueError(
                f"basis={basis!r}: its vjp() gives the slope {slope[row]:g} for function {column % per_feature} at the "
                f"value {X[row, feature]} of feature {feature}, but finite differences of expand() give "
                f"{rise[row]:g}: let it be the derivative."
            )
