"""What must hold of every case: a finite model, or an error that names an argument."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from boostbp import BoostBPAutoencoder, BoostBPClassifier, BoostBPRanker, BoostBPRegressor, BoostBPSurvival
from tests.fuzz.cases import LOSSES, PARAMETERS, QUERY, Case, as_dtype, cells_of
from tests.support.flat_parameters import layer_of, parameters

ESTIMATORS = {"regressor": BoostBPRegressor, "classifier": BoostBPClassifier, "autoencoder": BoostBPAutoencoder}
ESTIMATORS |= {"ranker": BoostBPRanker, "survival": BoostBPSurvival}
ARGUMENTS = re.compile(
    r"\b(X|y|H|group|targets|sample_weight|eval_set|eval_metric|categorical|categorical_features|loss|"
    + "|".join(PARAMETERS)
    + r")\b"
)

DOCUMENTED = (
    "The number of unique classes",  # scikit-learn's: labels of which most are seen once look like a regression
    "Back-propagation is dead|.* has collapsed",  # ours: layers that cannot be trained on such data
    "Each row of y has one of the",  # ours: labels that look like classes
    "No effect on the model",  # ours: of parameters that a way of training has no use for
    "Column .* is read as categories, but has|Column .*: almost no value was seen at fit",  # ours: of categories
)


def outcome_of(case: Case) -> str:
    """Fit and predict: "model", or the first words of the error.

    Raises
    ------
    AssertionError
        If the model is not finite, or changed its input, or the error names no argument.
    """
    X, y, weight = case.data()
    before = cells_of(X)
    check = check_layer if case.kind == "layer" else check_estimator
    refusal = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for documented in DOCUMENTED:
                warnings.filterwarnings("ignore", message=documented)
            check(case, X, y, weight)
    except (ValueError, TypeError, FloatingPointError) as error:
        refusal = error
    np.testing.assert_array_equal(cells_of(X), before, err_msg="the input was changed")
    return "model" if refusal is None else clear(refusal)


def clear(error: Exception) -> str:
    """The first words of an error of ours that names an argument."""
    text = str(error)
    assert type(error).__module__ == "builtins", f"{type(error).__name__} of a library: {text}"
    assert ARGUMENTS.search(text), f"{type(error).__name__} names no argument: {text}"
    return f"{type(error).__name__}: {re.sub(r'[-+]?[0-9][0-9.e+-]*', '#', text)[:40]}"


def settings_of(case: Case) -> dict[str, Any]:
    """Parameters of the estimator or of `fit_layer`."""
    names = "n_estimators max_depth min_samples_leaf" if case.kind == "layer" else ""
    names = names or "hidden_layer_sizes n_estimators max_depth min_samples_leaf epochs deep"
    settings = {name: PARAMETERS[name][0] for name in names.split()} | dict(case.parameters)
    if case.kind == "autoencoder":
        settings = {name: value for name, value in settings.items() if name not in ("deep", "quality")}
    return settings


def check_layer(case: Case, X: Any, y: Any, weight: Any) -> None:
    """A layer without an estimator."""
    layer = layer_of(
        X, y, backend=case.backend, sample_weight=weight, categorical=tuple(case.categorical), **settings_of(case)
    )
    clip = settings_of(case).get("clip", True)
    for rows in (seen(X, weight, clip=clip), *others(case, clip=clip)):
        output, trace = layer.forward(rows)
        assert_finite("output", output, rows)
        assert not np.isnan(trace.vjp(np.ones_like(output))).any(), "a derivative is not a number"
        np.testing.assert_array_equal(layer.predict(rows), output)


def check_estimator(case: Case, X: Any, y: Any, weight: Any) -> None:
    """An estimator: predictions, hidden representation, derivative and history."""
    # a mask, as numbers may be names
    categorical = [j in case.categorical for j in range(len(case.columns))]
    model = ESTIMATORS[case.kind](
        **parameters(backend=case.backend, random_state=0, categorical_features=categorical, **settings_of(case))
    )
    options: dict[str, Any] = {"sample_weight": weight}
    if case.kind in LOSSES:
        model.set_params(loss=case.loss)
    if case.watched:
        options["eval_set"] = [X] if case.kind == "autoencoder" else [(X, y)]
    if case.kind == "ranker":
        options["qid"] = np.arange(case.rows) // QUERY
        options |= {"eval_qid": [options["qid"]]} if case.watched else {}
        options["sample_weight"] = None if weight is None else weight[options["qid"] * QUERY]
    model.fit(X, y, **options)
    if case.dtype == "frame" and X.shape[1] > 1:
        check_order(model, X)
    epochs = model.history_.epochs
    assert np.isfinite([epoch.loss for epoch in epochs]).all(), "loss is not finite"
    clip = settings_of(case).get("clip", True)
    if case.kind not in ("autoencoder", "survival"):
        check_refit(model, X, y, options, clip=clip)
    for rows in (seen(X, weight, clip=clip), *others(case, clip=clip)):
        if case.kind == "autoencoder" and np.isnan(cells_of(rows).astype(float)).any():
            continue
        if model.hidden_layer_sizes:
            assert_finite("hidden representation", model.hidden_representation(rows, -1), rows)
        assert not np.isnan(model.jacobian(rows)).any(), "a derivative is not a number"
        if case.kind == "classifier":
            proba = model.predict_proba(rows)
            assert ((proba >= 0) & (proba <= 1)).all(), "no probabilities"
            if not model.multilabel_:
                np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-9)
            assert np.isin(model.predict(rows), y).all()
        elif case.kind == "survival":
            survival = model.predict_survival_function(rows, return_array=True)
            assert ((survival >= 0) & (survival <= 1)).all(), "no probabilities"
            assert (np.diff(survival, axis=1) <= 0).all(), "a curve rises"
            early, late = model.predict_quantile(rows, [0.2, 0.8]).T
            assert (early <= late).all(), "quantiles cross"
        else:
            assert_finite("prediction", model.predict(rows), rows)


def check_order(model: Any, X: Any) -> None:
    """Columns in another order are refused, whatever their names are."""
    refusal = ""
    try:
        model.predict(X.iloc[:, ::-1])
    except ValueError as error:
        refusal = str(error)
    assert re.search("order|is named", refusal), f"columns in another order: {refusal or 'predicted'}"


def check_refit(model: Any, X: Any, y: Any, options: dict[str, Any], *, clip: bool) -> None:
    """A refit of a fitted model to the same rows in another order of targets."""
    before = model.predict(X)
    given = {name: value for name, value in options.items() if name in ("sample_weight", "qid")}
    for decay_rate in (0.0, 0.5):
        try:
            new = model.refit(X, y[::-1], **given, decay_rate=decay_rate)
        except ValueError as error:
            if not str(error).startswith("refit is not supported"):
                raise
            return
        record = new.history_.refits[-1]
        assert decay_rate == 0 or record.after <= record.before + 1e-3 * abs(record.before), f"{record}"
        rows = seen(X, options["sample_weight"], clip=clip)
        if is_classifier(model):
            assert np.isfinite(new.predict_proba(rows)).all(), "a refit has no probabilities"
        else:
            assert_finite("prediction of a refit", new.predict(rows), rows)
    np.testing.assert_array_equal(model.predict(X), before)


def seen(X: Any, weight: Any, *, clip: bool) -> Any:
    """Rows that must get finite numbers: without `clip` those of positive weight, as the others were not trained on."""
    return X if clip or weight is None else X[weight > 0]


def others(case: Case, *, clip: bool) -> list[Any]:
    """Rows that were not trained on: fresh ones, and some whose cells are all missing, or very large.

    Without `clip` a model extrapolates, beyond float64 too: only missing cells then.
    """
    fresh = cells_of(case.data(seed=case.seed + 1)[0]).astype(float)[:50]
    fresh = np.where(np.isinf(fresh), 0.0, fresh)
    missing = np.full((1, len(case.columns)), np.nan)
    wild = np.full((2, len(case.columns)), 1e100 if case.kind == "autoencoder" else 1e300) * [[1.0], [-1.0]]
    wild[:, case.categorical] = 1e6
    rows = [fresh, missing, wild] if clip else [missing]
    held = case.dtype if case.dtype in ("frame", "csr", "csc") else "float64"
    return [as_dtype(part, held, case.names) for part in rows]


def assert_finite(what: str, values: np.ndarray, rows: Any) -> None:
    """Fail with the first row whose values are not finite."""
    wrong = ~np.isfinite(values.reshape(len(values), -1)).all(axis=1)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise AssertionError(f"{what} of {wrong.sum()} rows is not finite: {values[row]} at {cells_of(rows)[row]}")
