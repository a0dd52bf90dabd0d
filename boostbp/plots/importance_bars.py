"""Feature importances as bars."""

from __future__ import annotations

from typing import Any

import numpy as np

from boostbp.floats import usual_floats
from boostbp.plots import axes as panels


@usual_floats()
def importances(
    model: Any, ax: Any = None, *, kind: str = "attribution", layer: int | None = None, X: Any = None, most: int = 20
) -> Any:
    """Draw the largest importances, as shares of all.

    Parameters
    ----------
    model : estimator
        Fitted.
    ax : matplotlib axes, optional
    kind, layer, X
        As in `importance` of the estimator.
    most : int
        Bars at most.

    Returns
    -------
    axes
    """
    ax = panels.one(ax)
    share = model.importance(kind, layer=layer, X=X)
    names = model.layer_names(0 if layer is None else layer)
    largest = np.argsort(-share, kind="stable")[:most]
    ax.barh(np.arange(len(largest)), share[largest])
    ax.set_yticks(np.arange(len(largest)), [panels.as_text(names[column]) for column in largest])
    ax.invert_yaxis()
    ax.set(xlabel=f"share of {kind}", title="Importances" if layer is None else f"Importances in layer {layer}")
    return ax
