"""Axes to draw on: names and titles as they are, with and without pyplot."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from dataclasses import replace
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import pytest
from flat_parameters import parameters
from matplotlib import rc_context
from matplotlib.figure import Figure
from studies import history, weighed_at

from boostbp import BoostBPClassifier, plots
from boostbp.network.history import Look
from boostbp.plots import axes as panels
from tests.plots.conftest import TINY


def test_names_are_drawn_as_they_are_whatever_they_hold():
    names = [r"$\frac{1$", "a$b_$", "one $", "<b>&\x1b[1m", r"\$x$"]
    data = pd.DataFrame(np.random.default_rng(0).standard_normal((60, 5)), columns=names)
    labels = np.array(names)[np.arange(60) % 5]
    fitted = BoostBPClassifier((2,), **parameters(epochs=1, deep=True, **TINY)).fit(data, labels)
    shown = Figure()
    axes = shown.subplots(1, 2)
    plots.importances(fitted, axes[0])
    plots.representation(fitted.transform(data), labels, axes[1])
    with rc_context({"svg.fonttype": "none"}):
        shown.savefig(drawn := io.BytesIO(), format="svg")
    words = [each.text for each in ET.fromstring(drawn.getvalue()).iter("{http://www.w3.org/2000/svg}text")]
    for name in names:
        assert words.count(name.replace("\x1b", r"\x1b")) == 2


def test_titles_fit_above_their_panels():
    """Those of two panels side by side do not run together, and none leaves the figure."""
    shown = replace(weighed_at(history(), 0.0), looks=[Look(0, {"valid_0": 1.0}), Look(25, {"valid_0": 0.5})])
    for one, count in ((shown, 1), (weighed_at(history(), 0.68), 2)):
        made, axes = panels.figure(count)
        plots.training_curves(one, axes)
        check_titles(made)
    made, axes = panels.figure(6)
    plots.layer_health(weighed_at(history(), 0.68), axes)
    check_titles(made)


def check_titles(made):
    made.draw_without_rendering()
    boxes = [ax.title.get_window_extent() for ax in made.axes]
    assert all(box.x0 >= 0 and box.x1 <= made.bbox.x1 for box in boxes)
    assert not any(one.overlaps(other) for k, one in enumerate(boxes) for other in boxes[k + 1 :])


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


@pytest.mark.slow
def test_without_matplotlib_the_error_names_the_extra(tmp_path):
    (tmp_path / "matplotlib.py").write_text("raise ModuleNotFoundError('No module', name='matplotlib')")
    code = "from boostbp import plots; plots.residuals([1.0], [2.0])"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert re.search(r"ImportError: boostbp.plots needs the matplotlib .*pip install 'boostbp\[plots\]'", done.stderr)
