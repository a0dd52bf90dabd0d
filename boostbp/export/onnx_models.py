"""A fitted estimator as an ONNX model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import numpy as np

from boostbp.estimators.base import BaseBoostBP
from boostbp.export.description import Description, described
from boostbp.export.onnx_graph import IR_VERSION, OPSET, Graph, int64, library
from boostbp.export.onnx_layers import add_raw_output, in_blocks
from boostbp.runtime import checks, messages
from boostbp.runtime.versions import __version__
from boostbp.trees.compact import LEAST_CENTER_BITS
from boostbp.trees.forest import Forest

if TYPE_CHECKING:
    from onnx import ModelProto, ValueInfoProto


def to_onnx(
    model: BaseBoostBP, *, dtype: Literal["float64", "float32"] = "float64", offset: bool = False
) -> ModelProto:
    """Write a fitted estimator as an ONNX model, which any ONNX runtime evaluates without Python or this package.

    The graph contains all steps of `predict` for an array: layers, clipping, missing values and categories, the link
    and the units of the target.

    Parameters
    ----------
    model : BoostBPRegressor, BoostBPClassifier, BoostBPRanker, BoostBPSurvival or BoostBPAutoencoder
        Fitted.
    dtype : {"float64", "float32"}
        Type of the input and of all numbers. With ``"float32"`` predictions differ by some 1e-6 of the target's
        standard deviation, and by more if a hidden unit is rounded across a threshold.
    offset : bool
        Whether the graph has a second input, ``offset``, (rows, outputs), which is added to raw outputs as in `predict`
        of a regressor or classifier; (rows, 1) for several quantiles. Without it, the offset is 0.

    Returns
    -------
    onnx.ModelProto
        Its input ``X``, (rows, features), has the columns of `fit`; NaN is missing. A column of categories holds the
        categories themselves if they are numbers, and otherwise their codes: their places in
        ``model.schema_.categories[column]``, which is also in the metadata of the ONNX model. Any other number is an
        unseen category. Infinite cells, which `predict` refuses, are read as missing.
        Its output is ``prediction``, that of `predict`; for a classifier ``label``, (rows,), and ``probabilities``,
        (rows, classes), or both (rows, labels) for several labels, whose names are in the metadata.

    Raises
    ------
    ValueError
        If the model contains the user's code (a basis with functions, or a loss with a custom link), or if `offset` is
        True for an auto-encoder, which has none.
    TypeError
        If `model` is not an estimator of this package, or has a derived class.
    ImportError
        If onnx is not installed.
    sklearn.exceptions.NotFittedError
        If it is not fitted.

    Examples
    --------
    >>> import boostbp
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = boostbp.BoostBPClassifier((4,), epochs=1, random_state=0).fit(X, y)
    >>> graph = boostbp.to_onnx(model)  # doctest: +SKIP
    >>> session = onnxruntime.InferenceSession(graph.SerializeToString())  # doctest: +SKIP
    >>> label, probabilities = session.run(None, {"X": X})  # doctest: +SKIP
    """
    description = described(model)
    if checks.one_of("offset", offset, (True, False)) and model.model_.targets.is_input:
        raise ValueError("offset=True is not supported for an auto-encoder, whose predictions have none: leave it out.")
    return model_of(description, dtype=dtype, offset=offset)


def model_of(model: Description, *, dtype: str, offset: bool = False) -> ModelProto:
    """Write a described model as an ONNX model; see `to_onnx`."""
    checks.one_of("dtype", dtype, ("float64", "float32"))
    if dtype == "float32":
        _check_float32(model)
    onnx = library()
    graph = Graph(np.dtype(dtype))

    def rows_of(inner: Graph, X: str, *, single: bool) -> str:
        X = inner.op("Where", inner.op("IsInf", X), np.array(np.nan), X)
        if model.truncated and model.categories:
            whole = inner.op("Mul", inner.op("Sign", X), inner.op("Floor", inner.op("Abs", X)))
            X = inner.op("Where", np.isin(np.arange(model.n_features), list(model.categories)), whole, X)
        return add_raw_output(inner, model, X, single=single)

    n_rows = graph.op("Squeeze", graph.op("Shape", "X", start=0, end=1))
    raw = graph.either(
        graph.op("Equal", n_rows, np.int64(1)),
        lambda inner: rows_of(inner, "X", single=True),
        lambda inner: in_blocks(inner, model, "X", n_rows, partial(rows_of, single=False)),
    )
    inputs = [graph.typed("X", shape=["rows", model.n_features])]
    if offset:
        n_targets = 1 if model.link.name == "sorted" else model.n_outputs
        inputs.append(graph.typed("offset", shape=["rows", n_targets]))
        raw = graph.op("Add", raw, graph.op("Div", "offset", model.scale))
    proto, opsets = graph.proto(inputs, _outputs(graph, model, raw)), [onnx.helper.make_opsetid("", OPSET)]
    producer = {"producer_name": "boostbp", "producer_version": __version__}
    made = onnx.helper.make_model(proto, opset_imports=opsets, ir_version=IR_VERSION, **producer)
    onnx.helper.set_model_props(made, {name: json.dumps(value) for name, value in model.facts.items()})
    return made


def _check_float32(model: Description) -> None:
    """Refuse a model with categories or columns that float32 merges, and warn of rounding errors."""
    for column, values in model.categories.items():
        with np.errstate(over="ignore", under="ignore"):
            held = values.astype(np.float32)
        if len(np.unique(held)) < len(values) or not np.isfinite(held).all():
            raise ValueError(f"dtype='float32' merges categories of column {column}: use dtype='float64'.")
    if merged := _merged_columns(model):
        cure = "use dtype='float64', or subtract a constant from these columns before the fit"
        raise ValueError(
            f"dtype='float32' merges numbers of the columns {merged} that the model distinguishes: {cure}."
        )
    messages.warn(
        "dtype='float32': predictions differ from those of predict by some 1e-6 of the target's standard "
        "deviation, and by more where a hidden unit is rounded across a threshold."
    )


def _merged_columns(model: Description) -> list[int]:
    """Return the feature columns, such as large ids, in which float32 merges numbers that a layer distinguishes.

    In these, more than a quarter of a layer's thresholds become equal, or of its leaf regressions have a center whose
    float32 neighbours are more than 1/16 of the scale away.
    """
    merged = set(_merged_inputs(model.forests[0]))
    for below, forest in pairwise(model.forests if model.skip else ()):
        merged |= {column - below.n_outputs for column in _merged_inputs(forest) if column >= below.n_outputs}
    return sorted(merged)


def _merged_inputs(forest: Forest) -> Iterator[int]:
    """Yield the columns of a layer's input whose numbers float32 merges."""
    nodes, leaves, ends = forest.nodes, forest.leaves, np.finfo(np.float32)
    numeric, (center, inverse, *_) = nodes.cat_start < 0, leaves.scaling.T
    held = (np.abs(center) >= ends.tiny) & (np.abs(center) <= ends.max)  # others are refused elsewhere
    spacing = np.spacing(np.where(held, np.abs(center), 0.0).astype(np.float32)).astype(np.float64)
    with np.errstate(divide="ignore", over="ignore"):
        coarse = held & (spacing > 2.0**-LEAST_CENTER_BITS / inverse)
    feature = leaves.column // max(forest.basis.columns_per_feature, 1)
    yield from np.flatnonzero(np.bincount(feature, coarse) > np.bincount(feature) / 4).tolist()
    for column in np.unique(nodes.feature[numeric]).tolist():
        thresholds = np.unique(nodes.threshold[numeric & (nodes.feature == column)])
        with np.errstate(over="ignore"):
            n_lost = len(thresholds) - len(np.unique(thresholds.astype(np.float32)))
        if n_lost > max(2, len(thresholds) / 4):
            yield column


def _outputs(graph: Graph, model: Description, raw: str) -> list[ValueInfoProto]:
    """Add the outputs of the graph from raw outputs; returns their declarations."""
    if model.labels is not None:
        return _outputs_of_classes(graph, model, raw)
    if model.link.name == "log":
        bounds = (np.array(bound) if np.isfinite(bound) else "" for bound in (model.link.lowest, model.link.highest))
        raw = graph.op("Exp", graph.op("Clip", raw, *bounds))
    elif model.link.name == "sorted":
        raw = graph.op("TopK", raw, int64(model.n_outputs), axis=1, largest=0, outputs=[graph.name(), graph.name()])
    elif model.link.name != "identity":
        raw = graph.op("Softmax", raw, axis=1) if model.link.name == "softmax" else graph.op("Sigmoid", raw)
    plain = (model.scale == 1).all() and (model.shift == 0).all()
    made = raw if plain else graph.op("Add", graph.op("Mul", raw, model.scale), model.shift)
    shape = int64(-1) if model.one_dimensional else int64(-1, model.n_outputs)
    graph.op("Reshape", made, shape, outputs=["prediction"])
    return [graph.typed("prediction", shape=["rows"] if model.one_dimensional else ["rows", model.n_outputs])]


def _outputs_of_classes(graph: Graph, model: Description, raw: str) -> list[ValueInfoProto]:
    """Add labels and probabilities; returns their declarations."""
    labels = np.asarray(model.labels)
    if model.multilabel:
        number = graph.cast(graph.op("Greater", raw, np.zeros(())), np.int64)
        graph.op("Sigmoid", raw, outputs=["probabilities"])
    elif model.n_outputs > 1:
        number = graph.op("ArgMax", raw, axis=1, keepdims=0)
        graph.op("Softmax", raw, axis=1, outputs=["probabilities"])
    else:
        above = graph.op("Greater", graph.reshaped(raw, -1), np.zeros(()))
        number = graph.cast(above, np.int64)
        sides = graph.op("Sigmoid", graph.op("Neg", raw)), graph.op("Sigmoid", raw)
        graph.op("Concat", *sides, axis=1, outputs=["probabilities"])
    graph.op("Gather", graph.stored(labels), number, axis=0, outputs=["label"])
    width = model.n_outputs if model.multilabel else len(labels)
    label = graph.typed("label", labels.dtype, ["rows", width] if model.multilabel else ["rows"])
    return [label, graph.typed("probabilities", shape=["rows", width])]
