"""Try a user-defined basis on some rows: compiled loops and the chain rule rely on these properties."""

from __future__ import annotations

import numpy as np

from boostbp.runtime.arrays import Floats
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
    if isinstance(basis, Polynomial) or not len(X):
        return
    rows = np.unique(np.linspace(0, len(X) - 1, min(len(X), TRIAL_ROWS)).astype(int))
    X = np.ascontiguousarray(X[rows])
    half = max(1, len(X) // 2)
    with np.errstate(all="ignore"):
        Z = expand(basis, X)
        if not basis.has_functions and not np.array_equal(Z, X, equal_nan=True):
            raise ValueError(
                f"basis={basis!r} has has_functions=False, but its expand() does not return the features: set "
                "has_functions = True."
            )
        if not np.allclose(expand(basis, X[:half]), Z[:half], equal_nan=True):
            raise ValueError(
                f"basis={basis!r}: its expand() gives other columns for a row if other rows change: use the features "
                "of the row alone."
            )
        _check_features(basis, X, Z)
        _check_slopes(basis, X, Z)


def _check_features(basis: Basis, X: Floats, Z: Floats) -> None:
    """Change one feature at a time: no columns but its own may change with it."""
    per_feature = basis.columns_per_feature
    for feature in range(min(X.shape[1], 4) if X.shape[1] > 1 else 0):
        changed = X.copy()
        changed[:, feature] = X[::-1, feature]
        columns = expand(basis, changed)
        place = slice(feature * per_feature, (feature + 1) * per_feature)
        columns[:, place] = Z[:, place]
        same = np.isclose(columns, Z, equal_nan=True).all(axis=0)
        if not same.all():
            raise ValueError(
                f"basis={basis!r}: column {int(np.argmin(same))} of its expand() changes with feature {feature}: let "
                "columns j * q to j * q + q - 1 be the functions of feature j, where q is columns_per_feature."
            )


def _check_slopes(basis: Basis, X: Floats, Z: Floats) -> None:
    """Compare `vjp` with differences of `expand` between neighbours, where these are alike on both sides."""
    per_feature, known = basis.columns_per_feature, np.isfinite(X)
    typical = np.median(np.abs(X[known])) if known.any() else 1.0
    step = STEP * np.maximum(np.abs(X), typical if typical > 0 else 1.0)
    up, down, width = expand(basis, X + step), expand(basis, X - step), np.repeat(step, per_feature, axis=1)
    above, below, middle = (up - Z) / width, (Z - down) / width, (up - down) / (2 * width)
    for column in range(min(Z.shape[1], 8 * per_feature)):
        feature, function = divmod(column, per_feature)
        G = np.zeros((len(X), 1, Z.shape[1]))
        G[:, 0, column] = 1.0
        slope, rise = vjp(basis, X, G)[:, 0, feature], middle[:, column]
        nan = np.isnan(slope) & known[:, feature]
        if (nan & np.isfinite(Z[:, column])).any():
            raise ValueError(
                f"basis={basis!r}: its vjp() gives NaN for function {function} at the value "
                f"{X[np.argmax(nan), feature]} of feature {feature}: return a number."
            )
        size = np.abs(slope) + np.abs(rise)
        smooth = np.abs(above[:, column] - below[:, column]) <= TOLERANCE * (np.abs(rise) + typical * TOLERANCE)
        wrong = smooth & np.isfinite(size) & (np.abs(slope - rise) > TOLERANCE * size + 1e-6)
        if wrong.sum() > 0.5 * len(X):
            row = int(np.argmax(wrong))
            raise ValueError(
                f"basis={basis!r}: its vjp() gives the slope {slope[row]:g} for function {function} at the value "
                f"{X[row, feature]} of feature {feature}, but finite differences of expand() give {rise[row]:g}: let "
                "it be the derivative."
            )
