"""Leaf regressions in words: the leaf of a row in each tree, the path to it, and its regression."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cache
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp import core
from boostbp.core import CENTER, INV_SCALE, LOWER, UPPER
from boostbp.network.network import Network
from boostbp.runtime.arrays import Floats
from boostbp.runtime.messages import require
from boostbp.trees import basis as bases
from boostbp.trees.leaves import coefficients
from boostbp.trees.tree import Tree

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Names:
    """Names of the features, hidden units and outputs of a network."""

    features: tuple[str, ...]
    outputs: tuple[str, ...]
    units: tuple[int, ...]  # size of each hidden layer
    skip: bool  # whether the layers above the first also read the features, after the hidden units
    categories: Mapping[int, tuple[Any, ...]]  # categorical feature -> its values, in the order of their codes

    def hidden(self, layer: int) -> list[str]:
        """Return the units of a hidden layer, numbered from the input: ``h0_0``, ``h0_1``, ..."""
        layer = self.layer_number(layer, len(self.units))
        return [f"h{layer}_{unit}" for unit in range(self.units[layer])]

    def inputs_of(self, layer: int) -> list[str]:
        """Return the columns that layer T_layer reads."""
        layer = self.layer_number(layer, len(self.units) + 1)
        if layer == 0:
            return list(self.features)
        return self.hidden(layer - 1) + (list(self.features) if self.skip else [])

    def outputs_of(self, layer: int) -> list[str]:
        """Return the outputs of layer T_layer: hidden units, or the outputs of the last layer."""
        return list(self.outputs) if layer == len(self.units) else self.hidden(layer)

    def categories_of(self, layer: int) -> dict[int, tuple[Any, ...]]:
        """Return the values of each categorical column that T_layer reads."""
        if layer > 0 and not self.skip:
            return {}
        before = self.units[layer - 1] if layer > 0 else 0
        return {before + column: tuple(values) for column, values in self.categories.items()}

    def as_written(self, X: NDArray[np.float64]) -> NDArray[np.object_]:
        """Return the features of rows, (rows, features), with categories in place of codes; NaN is missing."""
        written = X.astype(object)
        for column, values in self.categories.items():
            labels = dict(enumerate(values)) | {len(values): "unseen"}
            written[:, column] = [labels.get(code, np.nan) for code in X[:, column].tolist()]
        return written

    @staticmethod
    def layer_number(layer: int, count: int) -> int:
        """Return a layer's number from 0; negative ones count from the last. Raise ValueError if it does not exist."""
        if not -count <= layer < count:
            raise ValueError(f"layer={layer!r} does not exist: there are {count}, 0 to {count - 1}.")
        return layer % count


class LeafRecords(list[Record]):
    """Records of leaves, a dict each."""

    def __repr__(self) -> str:
        return f"<{len(self)} records of leaves; to_frame() is a table of them>"

    def to_frame(self) -> Any:
        """Return a pandas data frame with a row for each record; extra ``frames``."""
        pandas = require("pandas", extra="frames", what="to_frame() of leaf regressions")
        return pandas.DataFrame(list(self))


def all_leaves(network: Network, names: Names, *, scale: Floats, offset: Floats) -> LeafRecords:
    """Return one record for each layer, tree, leaf and output that the tree serves: `BaseBoostBP.trees_to_dataframe`.

    `scale` and `offset`, (outputs,) float64, convert the network's raw output to the user's units.
    """
    records = LeafRecords()
    for layer in range(len(network.layers)):
        for number in range(network.layers[layer].forest.n_trees):
            reader = _TreeReader(network, layer, number, names, scale)
            for leaf in range(reader.tree.n_leaves):
                ranges = reader.ranges(leaf)
                records += [regression | ranges for regression in reader.regressions(leaf)]
    records += [start | {"ranges": {}, "means": {}} for start in _start(network, names, scale, offset)]
    return records


def leaf_records(
    network: Network, X: Floats, names: Names, *, scale: Floats, offset: Floats, n_threads: int = 1
) -> LeafRecords:
    """Return one record for each row, layer, tree and output that the tree serves: `BaseBoostBP.leaf_report`.

    `X` is (rows, features) float64; `scale` and `offset` are those of `all_leaves`.
    """
    _, traces = network.forward(X, n_jobs=n_threads)
    records: list[Record] = []
    for layer, trace in enumerate(traces):
        leaf = trace.leaf  # routed here if there are very many rows
        Z = bases.expand(network.layers[layer].forest.basis, trace.X)
        for number in range(network.layers[layer].forest.n_trees):
            reader = _TreeReader(network, layer, number, names, scale)
            records += reader.records(Z, leaf[number].astype(np.int32))
    for start in _start(network, names, scale, offset):
        start |= {"inputs": {}, "clipped": [], "missing": [], "value": start["constant"]}
        records += [_of_row(row, start) for row in range(len(X))]
    return LeafRecords(sorted(records, key=lambda record: record["row"]))


def _start(network: Network, names: Names, scale: Floats, offset: Floats) -> list[Record]:
    """Return the constant that each output starts from, as the regression of tree -1."""
    facts: Record = {"layer": len(network.layers) - 1, "tree": -1, "leaf": 0}
    constants = (scale * network.baseline + offset).tolist()
    return [
        facts | {"output": output, "path": [], "constant": constant, "coefficients": {}}
        for output, constant in zip(names.outputs, constants, strict=True)
    ]


def _of_row(row: int, record: Record) -> Record:
    """Return the record of a row, with copies of lists and dicts."""
    return {"row": row, "output": record["output"]} | {name: copy(value) for name, value in record.items()}


class _TreeReader:
    """Reader of one tree of a layer; `scale` converts the outputs of the last layer to the user's units."""

    def __init__(self, network: Network, layer: int, number: int, names: Names, scale: Floats) -> None:
        self.layer, self.number = layer, number
        self.forest = network.layers[layer].forest.take(slice(number, number + 1))
        self.tree, self.leaves = self.forest.trees[0], self.forest.leaves
        [[first, n_outputs]] = self.leaves.tree_output.tolist()
        self.serves = slice(first, first + n_outputs)
        self.outputs = names.outputs_of(layer)[self.serves]
        self.factor = scale[self.serves] if layer == len(names.units) else np.ones(n_outputs)
        self.features, self.categories = names.inputs_of(layer), names.categories_of(layer)
        self.parents = self.tree.parents()

    def records(self, Z: Floats, leaf: NDArray[np.int32]) -> list[Record]:
        """Return the records of all rows, (rows, columns), whose leaves are `leaf`, (rows,)."""
        values = np.zeros((len(Z), self.forest.n_outputs))
        core.evaluate(self.leaves, (leaf[None], Z), self.forest.clip, 0, len(Z), values)
        regressions_of = cache(self.regressions)
        records = []
        for row, reached in enumerate(leaf.tolist()):
            inputs = self.inputs(reached, Z[row])
            scaled = (values[row, self.serves] * self.factor).tolist()
            for regression, value in zip(regressions_of(reached), scaled, strict=True):
                records.append(_of_row(row, regression | inputs | {"value": value}))
        return records

    def regressions(self, leaf: int) -> list[Record]:
        """Return the regression of a leaf for each output."""
        names, *_ = self._inputs_of(leaf)
        terms = names + ([f"{name}^2" for name in names] if self.leaves.tree_degree[0] == 2 else [])
        weights = coefficients(self.leaves, leaf) * self.factor
        facts: Record = {"layer": self.layer, "tree": self.number, "leaf": leaf}
        path = self.path(leaf)
        records = []
        for output, (constant, *slopes) in zip(self.outputs, weights.T.tolist(), strict=True):
            regression = {"output": output, "path": path, "constant": constant}
            records.append(facts | regression | {"coefficients": dict(zip(terms, slopes, strict=True))})
        return records

    def path(self, leaf: int) -> list[str]:
        """Return the conditions on the path to a leaf, one for each feature, in the order of first splits."""
        steps: list[tuple[int, bool]] = []  # splits from the leaf up, and whether the path goes left there
        child = ~leaf  # children are splits by their index, or leaves as ~leaf
        while (split := self.parents.get(child, -1)) >= 0:
            steps.append((split, bool(self.tree.left[split] == child)))
            child = split
        by_feature: dict[int, list[tuple[int, bool]]] = {}
        for step in reversed(steps):
            by_feature.setdefault(int(self.tree.feature[step[0]]), []).append(step)
        parts = by_feature.items()
        return [_condition(self.tree, part, self.features[j], self.categories.get(j)) for j, part in parts]

    def ranges(self, leaf: int) -> Record:
        """Return the clipping range of each input of a leaf's regression, and its mean."""
        names, _, scaling = self._inputs_of(leaf)
        # The regression reads u = (z - center) / scale, clipped to [lower, upper].
        center, inverse = scaling[:, CENTER], scaling[:, INV_SCALE]
        scale = np.divide(1.0, inverse, out=np.zeros_like(inverse), where=inverse > 0.0)  # 0: a constant in the leaf
        clipped = center[:, None] + scaling[:, [LOWER, UPPER]] * scale[:, None]
        ranges = clipped.tolist() if self.forest.clip else [[-np.inf, np.inf]] * len(names)
        means = dict(zip(names, center.tolist(), strict=True))
        return {"ranges": dict(zip(names, map(tuple, ranges), strict=True)), "means": means}

    def inputs(self, leaf: int, z: Floats) -> Record:
        """Return the inputs of a leaf's regression for a row, (columns,): a missing value is the leaf's mean."""
        names, columns, scaling = self._inputs_of(leaf)
        values = z[columns]
        center, inverse, lower, upper = (scaling[:, k] for k in (CENTER, INV_SCALE, LOWER, UPPER))
        missing = np.isnan(values)
        u = (values - center) * inverse
        outside = ~missing & (inverse > 0.0) & ((u < lower) | (u > upper)) & self.forest.clip
        values = np.where(missing, center, values)
        values[outside] = (center + np.clip(u, lower, upper) / np.where(outside, inverse, 1.0))[outside]
        clipped, absent = list(compress(names, outside)), list(compress(names, missing))
        return {"inputs": dict(zip(names, values.tolist(), strict=True)), "clipped": clipped, "missing": absent}

    def _inputs_of(self, leaf: int) -> tuple[list[str], NDArray[np.int32], Floats]:
        """Return the columns that a leaf's regression reads: names, numbers, and their scaling, (columns, 4)."""
        at, per_feature = slice(*self.leaves.start[leaf : leaf + 2]), self.forest.basis.columns_per_feature
        columns = self.leaves.column[at]
        places = [divmod(column, per_feature) for column in columns.tolist()]
        names = [self.features[j] if per_feature == 1 else f"f{q}({self.features[j]})" for j, q in places]
        return names, columns, self.leaves.scaling[at]


def _condition(tree: Tree, steps: Sequence[tuple[int, bool]], name: str, categories: tuple[Any, ...] | None) -> str:
    """Return in words the values of a feature that pass its splits."""
    missing = " or missing" if all(tree.missing_left[split] == is_left for split, is_left in steps) else ""
    # A file may have a set of codes on a feature without category names; codes are then named by their numbers.
    if categories is None and any(tree.cat_start[split] >= 0 for split, _ in steps):
        categories = tuple(range(32 * max(int(tree.cat_words[split]) for split, _ in steps)))
    if categories is not None:
        codes = np.arange(len(categories), dtype=float)
        passing = np.ones(len(codes), bool)
        for split, is_left in steps:
            passing &= _sent_left(tree, split, codes) == is_left
        return f"{name} in {{{', '.join(str(categories[code]) for code in np.flatnonzero(passing))}}}{missing}"
    # A row goes left if x <= threshold, so the values of a path are an interval.
    upper = min((tree.threshold[split] for split, is_left in steps if is_left), default=np.inf)
    lower = max((tree.threshold[split] for split, is_left in steps if not is_left), default=-np.inf)
    if lower == np.inf:  # a leaf for missing values, in an additive base or in leaves of the library
        return f"{name} missing"
    if lower == -np.inf and upper == np.inf:
        return f"{name} known{missing}"
    low = f"{lower:.6g} < " if lower > -np.inf else ""
    high = f" <= {upper:.6g}" if upper < np.inf else ""
    return f"{low}{name}{high}{missing}" if high else f"{name} > {lower:.6g}{missing}"


def _sent_left(tree: Tree, split: int, codes: Floats) -> NDArray[np.bool_]:
    """Return whether a split sends codes left."""
    if tree.cat_start[split] < 0:
        return codes <= tree.threshold[split]
    # Code c is bit c % 32 of word c // 32; codes beyond the words go right.
    words = tree.categories[tree.cat_start[split] :][: tree.cat_words[split]]
    bits = np.unpackbits(words.astype("<u4").view(np.uint8), bitorder="little").astype(bool)
    sent = np.zeros(len(codes), bool)
    inside = codes < len(bits)
    sent[inside] = bits[codes[inside].astype(int)]
    return sent
