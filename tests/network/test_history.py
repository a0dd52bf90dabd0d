"""A history as a table, in a line and in notebooks."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
from flat_parameters import parameters

from boostbp import BoostBPClassifier
from boostbp.network.history import Epoch, History
from tests.model.models import FLOWERS, SPECIES


def history():
    small = {"hidden_layer_sizes": (3, 2), "n_estimators": 3, "epochs": 3, "deep": True, "random_state": 0}
    model = BoostBPClassifier(**parameters(**small))
    named = {"eval_set": [(FLOWERS[::2], SPECIES[::2]), (FLOWERS, SPECIES)], "eval_names": ["early", "<late>"]}
    return model.fit(FLOWERS, SPECIES, **named).history_


def test_table_of_the_history_has_a_row_for_each_epoch():
    seen = history()
    table = seen.to_frame()
    assert table.index.tolist() == [0, 1, 2, 3]
    assert table["loss"].tolist() == seen.loss
    assert table[f"<late>_{seen.metric}"].tolist() == seen.metrics("<late>")
    assert table["drift_1"].tolist()[1:] == [epoch.drift[1] for epoch in seen.epochs[1:]]
    assert {"seconds", "gradient_norms_0", "explained_held_1", f"early_{seen.metric}"} <= set(table)
    assert all(dtype == np.float64 for dtype in table.dtypes)


def test_history_shows_itself_in_a_line_and_in_notebooks():
    seen = history()
    assert repr(seen).startswith(f"History(epochs=3, best_epoch={seen.best_epoch}, stop={seen.stop.name}, metric=")
    assert len(repr(seen)) < 200
    page = seen._repr_html_()
    assert "<late>" not in page
    cells = [re.findall("<t[hd]>(.*?)</t", row) for row in re.findall("<tr.*?</tr>", page)]
    assert cells[0] == [
        "epoch",
        "training loss",
        *(f"{seen.metric} on {name}" for name in ("early", "&lt;late&gt;")),
    ]
    shown = pd.DataFrame(cells[1:]).astype(float)
    np.testing.assert_allclose(shown[1], seen.loss, rtol=1e-5)
    np.testing.assert_allclose(shown[3], seen.metrics("<late>"), rtol=1e-5)
    bold = [row for row in re.findall("<tr.*?</tr>", page) if "bold" in row]
    assert len(bold) == 1
    assert f"<td>{seen.best_epoch}</td>" in bold[0]
    assert seen.stop.value in page
    empty = History()
    assert "epochs=0" in repr(empty)
    assert "History(epochs=0" in empty._repr_html_()
    bare = History([Epoch(0, 1.0, {}, 0.1, (), (), (), (), ())])
    assert bare.to_frame().to_dict("list") == {"loss": [1.0], "seconds": [0.1]}
