"""Plots draw what the model says, on the axes that they are given, and open no window."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.datasets import load_iris
from sklearn.manifold import trustworthiness

from boostbp import BoostBPClassifier, callbacks, plots
from boostbp.plots.health import PANELS

X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])
SEEN = {}


@pytest.fixture(scope="module")
def model():
    record = callbacks.record_networks(SEEN, epochs=[0, 2])
    params = {"hidden_layer_sizes": (4, 2), "n_estimators": 3, "min_samples_leaf": 5, "random_state": 0}
    return BoostBPClassifier(epochs=3, callbacks=[record], **params).fit(
        X[::2], NAMES[Y[::2]], eval_set=[(X[1::2], NAMES[Y[1::2]]), (X[::2], NAMES[Y[::2]])]
    )


@pytest.fixture
def ax():
    return Figure().subplots()


def line(ax, label):
    """Points of the line with a label, (points, 2)."""
    (found,) = [line for line in ax.lines if line.get_label() == label]
    return np.column_stack(found.get_data())


def points(ax):
    """Points of all scatters, (points, 2)."""
    return np.concatenate([np.asarray(drawn.get_offsets()) for drawn in ax.collections])


def test_training_curves_show_the_history(model):
    axes = Figure().subplots(1, 2)
    assert list(plots.training_curves(model, axes)) == list(axes)
    history = model.history_
    epochs = np.arange(4)
    np.testing.assert_array_equal(line(axes[0], "training"), np.column_stack([epochs, history.loss]))
    for name in ("valid_0", "valid_1"):
        np.testing.assert_array_equal(line(axes[1], name), np.column_stack([epochs, history.metrics(name)]))
    marks = [drawn.get_data() for ax in axes for drawn in ax.lines if drawn.get_marker() == "o"]
    assert [at.tolist() for at, _ in marks] == [[history.best_epoch]] * 3
    assert axes[1].get_ylabel() == history.metric


def test_layer_health_shows_the_history(model):
    axes = Figure().subplots(2, 3)
    plots.layer_health(model, axes, label="mine")
    for ax, name in zip(axes.flat, PANELS, strict=True):
        first = int(name in ("drift", "r2"))
        for layer in (0, 1):
            expected = [(e.epoch, getattr(e, name)[layer]) for e in model.history_.epochs[first:]]
            np.testing.assert_array_equal(line(ax, f"mine layer {layer}"), expected)
    held = line(axes.flat[-1], "mine layer 1, not trained on")
    np.testing.assert_array_equal(held[:, 1], [e.explained_held[1] for e in model.history_.epochs])


def test_layer_health_needs_a_hidden_layer():
    single = BoostBPClassifier((), n_estimators=2, random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="no hidden variables"):
        plots.layer_health(single, Figure().subplots(2, 3))


def test_importances_are_sorted_shares(model, ax):
    assert plots.importances(model, ax, kind="split", layer=1, most=3) is ax
    share = model.importance("split", layer=1)
    names = [label.get_text() for label in ax.get_yticklabels()]
    drawn = [bar.get_width() for bar in ax.patches]
    assert drawn == sorted(share, reverse=True)[:3]
    assert [share[model.layer_names(1).index(name)] for name in names] == drawn


def test_two_units_are_drawn_as_they_are(model, ax):
    H = model.transform(X)
    plots.representation(H, NAMES[Y], ax)
    np.testing.assert_array_equal(points(ax), np.concatenate([H[k == Y] for k in range(3)]))
    assert [text.get_text() for text in ax.get_legend().get_texts()] == list(NAMES)


def test_wider_layers_are_drawn_by_principal_components(ax):
    H = np.random.default_rng(0).standard_normal((40, 5)) * [9.0, 1.0, 5.0, 0.5, 0.1] + 3.0
    plots.representation(H, H[:, 0], ax)
    left, size, _ = np.linalg.svd(H - H.mean(axis=0), full_matrices=False)
    np.testing.assert_allclose(np.abs(points(ax)), np.abs(left[:, :2] * size[:2]), rtol=1e-9, atol=1e-9)
    assert f"{size[0] ** 2 / np.sum(size**2):.0%}" in ax.get_xlabel()


def test_tsne_keeps_neighbours_and_its_seed(model):
    H = model.transform(X, layer=0)
    once, again = (points(plots.representation(H, ax=Figure().subplots(), method="tsne")) for _ in range(2))
    np.testing.assert_array_equal(once, again)
    assert trustworthiness(H, once) > 0.95


def test_one_unit_and_a_constant_layer_are_drawn(ax):
    plots.representation(np.arange(5.0)[:, None], ax=ax)
    np.testing.assert_array_equal(points(ax)[:, 0], np.arange(5.0))
    assert np.isfinite(points(plots.representation(np.ones((5, 3)), ax=Figure().subplots()))).all()


def test_representations_are_those_of_the_epochs(model):
    assert sorted(SEEN) == [0, 2]
    axes = plots.representations(model, X, Y, Figure().subplots(1, 2), networks=SEEN)
    assert [ax.get_title() for ax in axes] == ["Epoch 0", "Epoch 2"]
    params = {**model.get_params(), "epochs": 0, "callbacks": None}
    start = BoostBPClassifier(**params).fit(X[::2], NAMES[Y[::2]], eval_set=[(X[1::2], NAMES[Y[1::2]])])
    order = np.argsort(Y, kind="stable")
    np.testing.assert_array_equal(points(axes[0]), start.transform(X)[order])
    assert not np.array_equal(points(axes[0]), points(axes[1]))
    (kept,) = plots.representations(model, X, Y, Figure().subplots(), layer=-1)
    np.testing.assert_array_equal(points(kept), model.transform(X)[order])


def test_calibration_of_two_classes_is_counted(ax):
    probability = np.repeat([0.2, 0.7], [40, 20])
    y = np.concatenate([np.arange(40) < 10, np.arange(20) < 15])
    classes = np.array(["no", "yes"])
    plots.calibration(
        classes[y.astype(int)], np.column_stack([1 - probability, probability]), ax, classes=classes, bins=2, label="m"
    )
    np.testing.assert_allclose(line(ax, "m"), [[0.2, 0.25], [0.7, 0.75]])


def test_calibration_of_more_classes_is_that_of_the_likeliest(ax):
    probability = np.tile([0.6, 0.3, 0.1], (10, 1))
    plots.calibration([0] * 7 + [1, 1, 2], probability, ax, label="m")
    np.testing.assert_allclose(line(ax, "m"), [[0.6, 0.7]])


def test_models_share_the_axes_of_a_calibration(ax):
    probability = np.column_stack([np.linspace(1, 0, 20), np.linspace(0, 1, 20)])
    for name in ("one", "two"):
        plots.calibration(np.arange(20) % 2, probability, ax, label=name)
    assert len(ax.lines) == 3  # one diagonal


def test_residuals_are_observed_minus_predicted(ax):
    plots.residuals([1.0, 2.0], [1.5, 1.0], ax)
    np.testing.assert_array_equal(points(ax), [[1.5, -0.5], [1.0, 1.0]])


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda model, ax: plots.layer_health(model, [ax]), r"axes: 1 given, .* 6 panels"),
        (lambda model, ax: plots.representation([[1.0, 2.0]], ax=ax), "1 rows is no picture"),
        (lambda model, ax: plots.representation(X, ax=ax, method="umap"), "method='umap' is not known"),
        (lambda model, ax: plots.calibration(["a", "c"], np.eye(2), ax, classes=["a", "b"]), r"labels \['c'\]"),
        (lambda model, ax: plots.residuals(np.ones((2, 2)), np.ones((2, 2)), ax), r"shape \(2, 2\)"),
    ],
)
def test_error_names_argument_and_cure(model, ax, draw, message):
    with pytest.raises(ValueError, match=message):
        draw(model, ax)


def test_without_axes_pyplot_draws_without_a_display_and_shows_nothing():
    code = """if True:
        from matplotlib.figure import Figure
        from boostbp import plots
        import sys
        plots.residuals([1.0], [2.0], Figure().subplots())
        assert "matplotlib.pyplot" not in sys.modules
        import matplotlib.pyplot as plt
        ax = plt.gca()
        plt.show = ax.figure.show = None
        assert plots.residuals([1.0], [2.0]) is ax
    """
    environment = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "MPLBACKEND")}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def test_without_matplotlib_the_error_names_the_extra(tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    (tmp_path / "matplotlib.py").write_text("raise ModuleNotFoundError('No module', name='matplotlib')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ImportError, match=r"boostbp.plots needs the matplotlib .*pip install 'boostbp\[plots\]'"):
        plots.residuals([1.0], [2.0])
