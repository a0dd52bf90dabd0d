"""Splines of one feature, ordered from straight to rough: their knots, and their polynomial between knots.

A Demmler-Reinsch basis (Demmler and Reinsch 1975): the eigenvectors of the roughness penalty in the metric of the rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.interpolate import BSpline
from scipy.linalg import eigh

from boostbp.floats import Floats

CLOSE = 1e-9  # share of the range: knots nearer than this are one
ROUGHNESS = 2.0  # the k-th bent function is divided by k^2, its variance by k^4, as in a smoothing spline


class Functions(NamedTuple):
    """The functions of one feature.

    feature : int
    knots : (intervals + 1,) float64, ascending, in the user's units
    terms : (leaves, terms, functions) float64
        Weights of the terms of each leaf, in units of its ``u``, for each function; the last leaf is for missing
        values, where all functions are 0, as on average over the training rows.
    """

    feature: int
    knots: Floats
    terms: Floats


def functions_of(x: Floats, weight: Floats, feature: int, degree: int, n_intervals: int, most: int) -> Functions | None:
    """Return the functions of one feature, at most `most`; None if it has less than two different values."""
    known = ~np.isnan(x)
    x, weight = x[known], weight[known]
    if not weight.sum() > 0:
        return None
    inner = np.quantile(x, np.linspace(0.0, 1.0, n_intervals + 1)[1:-1], weights=weight, method="inverted_cdf")
    knots = np.unique(np.concatenate([[x.min()], inner, [x.max()]]))
    with np.errstate(over="ignore"):
        size = knots[-1] - knots[0]
        apart = np.diff(knots, prepend=-np.inf) > CLOSE * size
        knots = knots[apart] if apart[-1] else np.append(knots[apart][:-1], knots[-1])
        if len(knots) < 2 or not np.isfinite(2.0 / np.diff(knots)).all() or not np.isfinite(size):
            return None
    unit, share = (knots - knots[0]) / size, weight / weight.sum()
    t = (x - knots[0]) / size
    if not share @ np.square(t - share @ t) > CLOSE**2:  # one value has all the weight
        return None
    padded = np.concatenate([np.zeros(degree), unit, np.ones(degree)])
    coefficients = _coefficients(t, share, padded, degree)[:, :most]
    ends, middle = unit[:-1], (unit[:-1] + unit[1:]) / 2
    # The polynomial of each interval from its values at both ends and the middle, where u = -1, 1 and 0.
    a, m, b = (BSpline(padded, coefficients, degree)(np.clip(at, 0.0, 1.0)) for at in (ends, middle, unit[1:]))
    powers = [m, (b - a) / 2, (a + b) / 2 - m] if degree == 2 else [(a + b) / 2, (b - a) / 2]
    terms = np.stack(powers, axis=1)
    return Functions(feature, knots, np.concatenate([terms, np.zeros_like(terms[:1])]))


def _coefficients(t: Floats, share: Floats, padded: Floats, degree: int) -> Floats:
    """Return the B-spline coefficients of the functions, (B-splines, functions); `share` of the rows sums to 1."""
    B = BSpline.design_matrix(np.clip(t, 0.0, 1.0), padded, degree)
    mean = share @ B
    gram = (B.T @ B.multiply(share[:, None])).toarray() - np.outer(mean, mean)
    # The Greville abscissae are the coefficients of the identity, the straight line.
    line = np.array([padded[i + 1 : i + 1 + degree].mean() for i in range(len(mean))])
    line -= mean @ line
    along = gram @ line
    variance = float(line @ along)
    largest = max(np.abs(np.array([0.0, 1.0]) - share @ t).max(), np.finfo(float).tiny)
    functions = [line[:, None] / largest]
    values, vectors = eigh(gram - np.outer(along, along) / variance)
    varying = values > CLOSE * max(values[-1], variance)
    if varying.any() and len(line) > 2:
        free = vectors[:, varying] / np.sqrt(values[varying])  # of variance 1
        free -= np.outer(line, along @ free) / variance  # uncorrelated with the line
        bent = np.diff(free, 2, axis=0)  # second differences of coefficients: roughness as in P-splines (Eilers 1996)
        _, rotation = eigh(bent.T @ bent)  # from smooth to rough
        rough = free @ rotation
        rough -= mean @ rough
        std = np.sqrt(variance) / largest
        functions.append(std * rough / np.arange(1, rough.shape[1] + 1) ** ROUGHNESS)
    return np.concatenate(functions, axis=1)
