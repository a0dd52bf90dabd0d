"""The settings of the paper, as parameters of the estimators."""

from __future__ import annotations

from typing import Any


def paper_settings(**changes: Any) -> dict[str, Any]:
    """Algorithm 1 as printed, as parameters of any estimator.

    Gaussian-noise start, alpha = mu = 0.5 on plain gradients, layers fitted from the output down,
    each on its old input, the output layer fitted to its moved target, phi = [1, x, x^2] with the
    penalty of the printed solution, no clipping, no ridge base, best thresholds, all 60 epochs. The paper gives
    neither beta, lambda nor the rows per leaf: the values here are ours.

    Parameters
    ----------
    **changes
        Parameters to set beside these, such as ``n_estimators=200``; of ``hidden``, ``output`` and ``backprop``, dicts
        of what to set in them.

    Examples
    --------
    >>> from boostbp import BoostBPRegressor, paper_settings
    >>> model = BoostBPRegressor((32,), **paper_settings(n_estimators=200, hidden={"n_estimators": 40}))
    """
    layer = {
        "basis": "quadratic",
        "reg_lambda": 1.0,
        "penalize_constant": True,
        "standardize": False,
        "clip": False,
        "base": "zero",
        "extra_trees": False,
    }
    settings: dict[str, Any] = {
        "hidden": layer,
        "output": layer,
        "backprop": {
            "start": "noise",
            "step": "plain",
            "step_size": 0.5,
            "momentum": 0.5,
            "refit_order": "downward",
            "output_target": "moved",
            "structure_epochs": 1,
        },
        "deep": True,
        "early_stopping": False,
        "epochs": 60,
    }
    return settings | {
        name: {**settings[name], **value} if isinstance(settings.get(name), dict) else value
        for name, value in changes.items()
    }
