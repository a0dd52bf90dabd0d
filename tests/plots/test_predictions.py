"""Plots draw what the model says, on the axes that they are given, and open no window."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
from flat_parameters import parameters
from matplotlib.figure import Figure
from sklearn.manifold import trustworthiness
from studies import history, weighed_at

from boostbp import BoostBPClassifier, plots
from boostbp.network.history import Look
from boostbp.plots.epochs import PANELS
from tests.plots.conftest import NAMES, NETWORKS, TINY, X, Y
from tests.plots.test_epochs import line


def points(ax):
    """Points of all scatters, (points, 2)."""
    return np.concatenate([np.asarray(drawn.get_offsets()) for drawn in ax.collections])


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
    assert sorted(NETWORKS) == [0, 2]
    axes = plots.representations(model, X, Y, Figure().subplots(1, 2), networks=NETWORKS)
    assert [ax.get_title() for ax in axes] == ["Epoch 0", "Epoch 2"]
    start = BoostBPClassifier((4, 2), **parameters(epochs=0, deep=True, **TINY)).fit(X, NAMES[Y])
    order = np.argsort(Y, kind="stable")
    np.testing.assert_array_equal(points(axes[0]), start.transform(X)[order])
    assert not np.array_equal(points(axes[0]), points(axes[1]))
    (kept,) = plots.representations(model, X, Y, Figure().subplots(), layer=-1)
    np.testing.assert_array_equal(points(kept), model.transform(X)[order])


@pytest.mark.parametrize(
    ("weight", "lead", "words"),
    [
        (0.25, "single layer (75% of the weight)", "of the network with 25% of the weight in the model"),
        (0.75, "network (75% of the weight)", "of the network with 75% of the weight in the model"),
        (1.0, "network", ""),
    ],
)
def test_pictures_of_an_average_name_what_they_show_and_its_weight(weight, lead, words):
    looks = [Look(rounds, {"valid_0": 1.0 / (1 + rounds)}) for rounds in (0, 25, 50)]
    shown, axes = replace(weighed_at(history(), weight), looks=looks), Figure().subplots(2, 3)
    curves = plots.training_curves(shown, Figure().subplots(1, 2 if weight > 0.5 else 1, squeeze=False))
    titles = [" ".join(ax.get_title().split()) for ax in curves]
    assert titles[-1] == f"Evaluation of {lead}"
    assert titles[:-1] == ([f"Training loss of {lead}"] if weight > 0.5 else [])
    steps = [0, 1, 2, 3] if weight > 0.5 else [0, 25, 50]
    assert line(curves[-1], "valid_0")[:, 0].tolist() == steps
    plots.layer_health(shown, axes)
    drawn = [" ".join(ax.get_title().split()) for ax in axes.flat]
    assert drawn == [f"{title} {words}".strip() for title, _ in PANELS.values()]
    for label, one in (("mine", shown), ("other", history())):
        shared = plots.epochs.panel(one, "dead", axes.flat[0], label=label)
    assert [text.get_text() for text in shared.get_legend().get_texts()][1:] == ["mine layer 0", "other layer 0"]


def test_representations_of_an_average_say_their_weight_in_the_model(model):
    average = copy.copy(model)
    average.model_ = replace(model.model_, history=weighed_at(model.history_, 0.25))
    (kept,) = plots.representations(average, X, Y, Figure().subplots())
    title = f"Epoch {model.history_.best_epoch} of layers with 25% of the weight in the model"
    assert " ".join(kept.get_title().split()) == title
    axes = plots.representations(average, X, Y, Figure().subplots(1, 2), networks=NETWORKS)
    assert axes[1].get_title() == "Epoch 2"


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
