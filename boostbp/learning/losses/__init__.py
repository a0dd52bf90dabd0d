"""Final losses of a network, by name or the user's own."""

from boostbp.learning.losses.base import (
    AbsoluteError,
    Huber,
    Logistic,
    Loss,
    Poisson,
    Quantile,
    Softmax,
    SquaredError,
    load,
    task_of,
)

__all__ = [
    "AbsoluteError",
    "Huber",
    "Logistic",
    "Loss",
    "Poisson",
    "Quantile",
    "Softmax",
    "SquaredError",
    "load",
    "task_of",
]
