"""Monotone constraints of a layer: what users say of its features, as a sign for each."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from boostbp.runtime import checks

Signs = tuple[int, ...]


def is_constrained(constraints: Sequence[int] | Mapping[str, int] | None) -> bool:
    """Return whether any feature has a sign."""
    return any(constraints.values() if isinstance(constraints, Mapping) else constraints or ())


def checked_constraints(name: str, value: object) -> Signs | dict[str, int]:
    """Return constraints as a tuple of signs, or as a dict of column names and signs.

    Raises
    ------
    ValueError
        If they are neither.
    """
    if not isinstance(value, Mapping):
        return checks.signs(name, value)
    named = checks.named(name, value)
    return dict(
        zip(named, checks.signs(f"{name}, the values of {checks.shown(named)},", list(named.values())), strict=True)
    )


def signs_of(
    constraints: Sequence[int] | Mapping[str, int] | None,
    n_features: int,
    *,
    names: Sequence[str] | None = None,
    categorical: Collection[int] = (),
    n_outputs: int = 1,
) -> Signs:
    """Return the sign of each feature in which a layer is to be monotone, (features,); () if it is in none.

    Parameters
    ----------
    constraints : sequence, mapping or None
        See `checked_constraints`.
    names : sequence of str or None
        Of the features.
    categorical : collection of int
        Features that are category codes.

    Raises
    ------
    ValueError
        If they are not those of such an input, or cannot be kept.
    """
    if constraints is None or not is_constrained(constraints):
        return ()
    shown = f"monotone_constraints={checks.shown(constraints)}"
    if isinstance(constraints, Mapping):
        unknown = [name for name in constraints if name not in (names or ())]
        if unknown:
            known = "X has no column names" if names is None else f"the columns are {list(names)}"
            raise ValueError(f"{shown} names {unknown}, but {known}.")
        constraints = tuple(constraints.get(name, 0) for name in names or ())
    if len(constraints) != n_features:
        raise ValueError(f"{shown} has {len(constraints)} signs, but X has {n_features} columns: give one for each.")
    without_order = [j for j in categorical if constraints[j]]
    if without_order:
        raise ValueError(
            f"{shown} is not supported for columns {without_order} of X, whose categories have no order: use 0 there, "
            "or give numbers in their place."
        )
    if n_outputs != 1:
        raise ValueError(
            f"{shown} is not supported with {n_outputs} outputs, classes or levels: constraints are of a single one. "
            "Train one model for each."
        )
    return tuple(constraints)
