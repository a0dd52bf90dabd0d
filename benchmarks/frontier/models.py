"""The models: each trained with its default settings on all rows to learn from, on one thread.

A model makes its own validation split, if it wants one. What a library's documentation asks of its users is done: the
category columns are named or made text, and where the log-loss counts, a model that would stop by the error rate is
told so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from boostbp.comparison.contenders import Contender, Split, train_contender
from boostbp.estimators import BoostBPClassifier, BoostBPRegressor
from boostbp.estimators.held_out import MIN_HELD, SHARE

__all__ = [
    "FAMILIES",
    "LADDERS",
    "LIBRARIES",
    "MODELS",
    "REFERENCE",
    "Fit",
    "Prepare",
    "UnavailableError",
    "fit_of",
    "hold_out",
    "is_ours",
    "limited",
    "prepare_of",
    "times_of",
    "version_of",
]

Labels = NDArray[Any]
Fit = Callable[[Any, Labels, bool, int], Any]  # X, y, whether these are classes, seed; returns the fitted estimator
Prepare = Callable[[Any, Any], tuple[Any, Any]]  # makes of rows to learn from and of test rows what a library wants

REFERENCE = "lightgbm"
_ROUNDS = 4000  # at most, of models that stop early
_OURS = (*(f"boostbp-{quality}" for quality in range(1, 6)), "boostbp", "boostbp-deep", "boostbp-single")
_CHIMERA = tuple(f"chimeraboost-{quality}" for quality in range(1, 6))
FAMILIES: dict[str, tuple[str, ...]] = {
    "ours": _OURS,
    "ours-xgboost": tuple(f"{name}-xgboost" for name in _OURS),
    "rivals": (REFERENCE, "linear_tree", "xgboost", *_CHIMERA, "catboost", "xrfm", "realmlp"),
}
MODELS = (*FAMILIES["rivals"], *FAMILIES["ours"], *FAMILIES["ours-xgboost"])
# Models of which each costs more than the one before: lines of the figure.
LADDERS: dict[str, tuple[str, ...]] = {
    "boostbp, quality 1 to 5": _OURS[:5],
    "the same on XGBoost's trees": tuple(f"{name}-xgboost" for name in _OURS[:5]),
    "chimeraboost, quality 1 to 5": _CHIMERA,
}
# Package of each model, and what installs it.
LIBRARIES: dict[str, tuple[str, str]] = {
    "lightgbm": ("lightgbm", "lightgbm"),
    "linear_tree": ("lightgbm", "lightgbm"),
    "xgboost": ("xgboost", "xgboost-cpu"),
    "chimeraboost": ("chimeraboost", "chimeraboost"),
    "catboost": ("catboost", "catboost"),
    "xrfm": ("pytabkit", "'pytabkit[models]'"),
    "realmlp": ("pytabkit", "'pytabkit[models]'"),
}


class UnavailableError(Exception):
    """A model that cannot be run here; the message says what it needs."""


def limited(times: float) -> str:
    """Name of the default model with so many times the seconds of the reference for a limit."""
    return f"boostbp@{times:g}x"


def times_of(name: str) -> float | None:
    """How many times the seconds of the reference a model may take; None if it has no limit."""
    found = re.fullmatch(r"boostbp@(\d+(?:\.\d+)?)x(?:-xgboost)?", name)
    return float(found[1]) if found else None


def is_ours(name: str) -> bool:
    """Whether a model is one of this package."""
    return name.startswith("boostbp")


def fit_of(name: str, max_time: float | None = None) -> Fit:
    """How a model is trained.

    Parameters
    ----------
    name : str
        One of `MODELS`, or of `limited`.
    max_time : float, optional
        Seconds that one of ours may take.

    Raises
    ------
    UnavailableError
        If its package is not installed.
    ValueError
        If there is no model of that name.
    """
    if is_ours(name):
        return partial(_boostbp, _params_of(name) | ({} if max_time is None else {"max_time": max_time}))
    family, _, quality = name.partition("-")
    if family not in _FITS or (quality and family != "chimeraboost"):
        raise ValueError(f"model {name!r} is not known: use one of {', '.join(MODELS)}, boostbp@3x.")
    package, install = LIBRARIES[family]
    try:
        import_module(package)
    except ImportError as error:
        raise UnavailableError(f"{name} needs the package {package}: pip install {install} ({error})") from error
    return partial(_chimeraboost, int(quality)) if quality else _FITS[family]


def prepare_of(name: str) -> Prepare:
    """What has to be made of a table before a model reads it; no part of the seconds of a fit."""
    kinds: dict[str, Prepare] = {"catboost": _texts, "chimeraboost": _texts, "realmlp": _filled, "xrfm": _filled}
    return kinds.get(name.partition("-")[0], lambda X, X_test: (X, X_test))


def version_of(name: str) -> str:
    """Name and version of the library of a model."""
    package = "boostbp" if is_ours(name) else LIBRARIES[name.partition("-")[0]][0]
    for distribution in (package, f"{package}-cpu"):
        try:
            return f"{distribution} {version(distribution)}"
        except PackageNotFoundError:
            continue
    return package


def hold_out(y: Labels, classes: bool, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows to learn from and to stop by: as many held out as boostbp takes, a tenth and at least 50 (or a quarter).

    A class whose rows were all held out gets them back.
    """
    share = max(SHARE, min(MIN_HELD / len(y), 0.25))
    n_held, rows = int(np.ceil(share * len(y))), np.arange(len(y))
    try:
        fit, held = train_test_split(rows, test_size=n_held, random_state=seed, stratify=y if classes else None)
    except ValueError:  # more classes than rows to hold out
        fit, held = train_test_split(rows, test_size=n_held, random_state=seed)
    if classes:
        lost = ~np.isin(y[held], y[fit])
        fit, held = np.append(fit, held[lost]), held[~lost]
    return fit, held


def _params_of(name: str) -> dict[str, Any]:
    """Parameters of one of ours, read from its name: boostbp[-1 to -5, -deep, -single][-xgboost]."""
    found = re.fullmatch(r"boostbp(?:@[\d.]+x|-(?P<kind>[1-5]|deep|single))?(?P<xgboost>-xgboost)?", name)
    if found is None:
        raise ValueError(f"model {name!r} is not known: use one of {', '.join(MODELS)}, boostbp@3x.")
    params: dict[str, Any] = {"backend": "xgboost"} if found["xgboost"] else {}
    if params:
        try:
            import_module("xgboost")
        except ImportError as error:
            raise UnavailableError(f"{name} needs the package xgboost: pip install xgboost-cpu ({error})") from error
    kind = found["kind"]
    if kind in ("deep", "single"):
        return {**params, "deep": kind == "deep"}
    if kind is None:
        return params
    return {**params, "quality": int(kind)}


def _boostbp(params: Mapping[str, Any], X: Any, y: Labels, classes: bool, seed: int) -> Any:
    kind = BoostBPClassifier if classes else BoostBPRegressor
    return kind(n_jobs=1, random_state=seed, **params).fit(X, y)


def _stopped(kind: str, params: Mapping[str, Any], X: Any, y: Labels, classes: bool, seed: int) -> Any:
    """A library's defaults, but as many rounds as held-out rows like best: 50 more without gain end it."""
    fit, held = hold_out(y, classes, seed)
    parts = [X.iloc[rows] if hasattr(X, "iloc") else X[rows] for rows in (fit, held)]
    split = Split(parts[0], y[fit], parts[1], y[held])
    contender = Contender(kind, kind, {"n_estimators": _ROUNDS, **params})
    task = "classification" if classes else "regression"
    return train_contender(contender, split, task=task, n_jobs=1, seed=seed).model


def _chimeraboost(quality: int, X: Any, y: Labels, classes: bool, seed: int) -> Any:
    import chimeraboost

    kind = chimeraboost.ChimeraBoostClassifier if classes else chimeraboost.ChimeraBoostRegressor
    model = kind(quality=quality, thread_count=1, ensemble_n_jobs=1, random_state=seed)
    return model.fit(X, y, cat_features=_categories(X) or None)


def _catboost(X: Any, y: Labels, classes: bool, seed: int) -> Any:
    import catboost

    kind = catboost.CatBoostClassifier if classes else catboost.CatBoostRegressor
    model = kind(thread_count=1, random_seed=seed, verbose=False, allow_writing_files=False)
    return model.fit(X, y, cat_features=_categories(X) or None)


def _pytabkit(name: str, params: Mapping[str, Any], X: Any, y: Labels, classes: bool, seed: int) -> Any:
    import torch
    from pytabkit.models.sklearn import sklearn_interfaces

    torch.set_num_threads(1)
    kind = getattr(sklearn_interfaces, f"{name}_{'Classifier' if classes else 'Regressor'}")
    model = kind(device="cpu", n_threads=1, random_state=seed, **(params if classes else {}))
    return model.fit(X, y, cat_col_names=_categories(X) or None)


def _categories(X: Any) -> list[str]:
    """Names of the columns that hold categories, or text."""
    return [name for name in X.columns if X[name].dtype.kind not in "biuf"] if hasattr(X, "columns") else []


def _text(X: Any) -> Any:
    """Categories as text, and a missing one as a category of its own."""
    names = _categories(X)
    X = X.copy()
    for name in names:  # not by `assign`, which takes no column named "self"
        X[name] = X[name].astype(object).where(X[name].notna(), "missing").astype(str)
    return X


def _texts(X: Any, X_test: Any) -> tuple[Any, Any]:
    return (_text(X), _text(X_test)) if _categories(X) else (X, X_test)


def _filled(X: Any, X_test: Any) -> tuple[Any, Any]:
    """As `_texts`, and missing numbers, which these models refuse, as the median of the column, with a flag beside it.

    Of frames alone: no array of the data sets has missing numbers.
    """
    if not hasattr(X, "columns"):
        return X, X_test
    numbers = X.columns.difference(_categories(X), sort=False)
    medians, gaps = X[numbers].median(), [name for name in numbers if X[name].isna().any()]

    def fill(part: Any) -> Any:
        flags = part[gaps].isna().astype(float).add_suffix(" missing")
        return _text(part).fillna(medians).join(flags)

    return fill(X), fill(X_test)


_FITS: dict[str, Fit] = {
    "lightgbm": partial(_stopped, "lightgbm", {"learning_rate": 0.1}),
    "linear_tree": partial(_stopped, "lightgbm", {"learning_rate": 0.1, "linear_tree": True}),
    "xgboost": partial(_stopped, "xgboost", {"learning_rate": 0.3}),
    "chimeraboost": partial(_chimeraboost, 3),
    "catboost": _catboost,
    "xrfm": partial(_pytabkit, "XRFM_D", {"val_metric_name": "cross_entropy", "calibration_method": "ts-mix"}),
    "realmlp": partial(_pytabkit, "RealMLP_TD", {"val_metric_name": "cross_entropy", "use_ls": False}),
}
