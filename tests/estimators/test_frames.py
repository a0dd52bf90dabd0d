"""Tables of what models tell: of attributions, epochs, and leaves, from which alone the model can be computed."""

from __future__ import annotations

import numpy as np
import pytest

from tests.model.models import CASES, fitted, raw_output

ROWS = 6


def value_of(leaf, inputs):
    """What a leaf of the table computes of named inputs."""
    total = leaf.constant
    for term, weight in leaf.coefficients.items():
        name, power = (term[:-2], 2) if term.endswith("^2") else (term, 1)
        x = inputs[name]
        total += weight * (leaf.means[name] if np.isnan(x) else np.clip(x, *leaf.ranges[name])) ** power
    return total


@pytest.mark.parametrize(("kind", "backend"), [case for case in CASES if case.values[0] != "own basis"])
def test_leaves_of_the_table_compute_the_model(kind, backend):
    model, X = fitted(kind, backend)
    table = model.trees_to_dataframe().set_index(["layer", "tree", "leaf", "output"])
    assert table.index.is_unique
    hidden = model.hidden_representation(X[:ROWS])
    below = [model._read(X[:ROWS]).X, *hidden]
    for layer, h in enumerate([*hidden, raw_output(model, X[:ROWS])]):
        names = model.layer_names(layer)
        read = np.hstack([below[layer], below[0]]) if len(names) > below[layer].shape[1] else below[layer]
        outputs = model.hidden_names(layer) if layer < len(hidden) else model.output_names()
        found, largest = np.zeros_like(h), 1.0
        for record in model.leaf_report(X[:ROWS]):
            if record["layer"] == layer:
                leaf = table.loc[(layer, record["tree"], record["leaf"], record["output"])]
                assert leaf.path == record["path"]
                value = value_of(leaf, dict(zip(names, read[record["row"]], strict=True)))
                found[record["row"], outputs.index(record["output"])] += value
                largest = max(largest, abs(leaf.constant))
        np.testing.assert_allclose(found, h, rtol=1e-7, atol=1e-9 * largest)


def test_table_has_every_leaf_once_and_its_ranges():
    model, _ = fitted("regressor", "lightgbm")
    table = model.trees_to_dataframe()
    for layer, fitted_layer in enumerate(model.network_.layers):
        of_layer = table[(table["layer"] == layer) & (table["tree"] >= 0)]
        counts = of_layer.groupby("tree")["leaf"].nunique()
        assert counts.tolist() == [tree.n_leaves for tree in fitted_layer.forest.trees]
    for low, high in (span for spans in table["ranges"] for span in spans.values()):
        assert np.isfinite([low, high]).all()
        assert low <= high
    unclipped = fitted("no base, no clip", "lightgbm")[0].trees_to_dataframe()
    assert {span for spans in unclipped["ranges"] for span in spans.values()} == {(-np.inf, np.inf)}


@pytest.mark.parametrize("kind", ["regressor", "classifier"])
def test_rows_of_the_attributions_sum_to_the_output(kind):
    model, X = fitted(kind, "lightgbm")
    found = model.attributions(X[:ROWS])
    table = found.to_frame()
    assert list(table) == [*model.layer_names(0), "base value"]
    assert table.index.names == ["row", "output"]
    np.testing.assert_allclose(table.sum(axis=1).unstack("output")[model.output_names()], raw_output(model, X[:ROWS]))
    assert table.loc[(2, model.output_names()[-1])].iloc[1] == found.values[2, -1, 1]
    assert repr(found).startswith(f"Attributions({ROWS} rows, {len(model.output_names())} outputs, 4 features, error=")


def test_leaf_report_is_a_list_and_a_table():
    model, X = fitted("regressor", "lightgbm")
    report = model.leaf_report(X[:2])
    assert report.to_frame().to_dict("records") == list(report)
    assert len(repr(report)) < 80
    assert str(len(report)) in repr(report)


def test_without_pandas_the_error_names_the_extra(without):
    model, X = fitted("classifier", "lightgbm")
    found, report, seen = model.attributions(X[:1]), model.leaf_report(X[:1]), model.history_
    without("pandas")
    for make in (found.to_frame, report.to_frame, seen.to_frame, model.trees_to_dataframe):
        with pytest.raises(ImportError, match=r"needs the pandas package: pip install 'boostbp\[frames\]'"):
            make()
