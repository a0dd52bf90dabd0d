"""Names of what a network reads, hides and gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Names:
    """Names of the features, hidden units and outputs of a network.

    Attributes
    ----------
    features, outputs : tuple of str
    units : tuple of int
        Size of each hidden layer.
    skip : bool
        Whether the layers above the first see the features beside the hidden layer below them.
    categories : mapping of int to tuple
        Categorical feature -> its values, in the order of their codes.
    """

    features: tuple[str, ...]
    outputs: tuple[str, ...]
    units: tuple[int, ...]
    skip: bool
    categories: Mapping[int, tuple[Any, ...]]

    def hidden(self, layer: int) -> list[str]:
        """Units of a hidden layer, which are numbered from the input: ``h0_0``, ``h0_1``, ..."""
        layer = self.layer_number(layer, len(self.units))
        return [f"h{layer}_{unit}" for unit in range(self.units[layer])]

    def inputs_of(self, layer: int) -> list[str]:
        """Columns that layer T_layer reads."""
        layer = self.layer_number(layer, len(self.units) + 1)
        if layer == 0:
            return list(self.features)
        return self.hidden(layer - 1) + (list(self.features) if self.skip else [])

    def outputs_of(self, layer: int) -> list[str]:
        """Outputs of layer T_layer: hidden units, or, of the last one, outputs."""
        return list(self.outputs) if layer == len(self.units) else self.hidden(layer)

    def categories_of(self, layer: int) -> dict[int, tuple[Any, ...]]:
        """Categorical columns of what T_layer reads."""
        if layer > 0 and not self.skip:
            return {}
        before = self.units[layer - 1] if layer > 0 else 0
        return {before + column: tuple(values) for column, values in self.categories.items()}

    def as_written(self, X: NDArray[np.float64]) -> NDArray[np.object_]:
        """The features of rows, (rows, features), with their categories in place of codes; NaN is missing."""
        written = X.astype(object)
        for column, values in self.categories.items():
            labels = dict(enumerate(values)) | {len(values): "unseen"}
            written[:, column] = [labels.get(code, np.nan) for code in X[:, column].tolist()]
        return written

    @staticmethod
    def layer_number(layer: int, count: int) -> int:
        """A layer's number from 0; negative ones count back from the last.

        Raises
        ------
        ValueError
            If there is no such layer.
        """
        if not -count <= layer < count:
            raise ValueError(f"layer={layer!r} does not exist: there are {count}, 0 to {count - 1}.")
        return layer % count
