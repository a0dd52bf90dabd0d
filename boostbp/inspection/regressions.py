"""Leaf regressions in words: which leaf of each tree a row reaches, by which way, and what it computes there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp.extras import require
from boostbp.floats import Floats
from boostbp.network.network import Network
from boostbp.trees import basis as bases
from boostbp.trees import kernels
from boostbp.trees.kernels.records import CENTER, INV_SCALE, LOWER, UPPER
from boostbp.trees.leaves import coefficients
from boostbp.trees.tree import Tree

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Names:
    """Names of the features, hidden units and outputs of a network."""

    features: tuple[str, ...]
    outputs: tuple[str, ...]
    units: tuple[int, ...]  # size of each hidden layer
    skip: bool  # whether the layers above the first see the features beside the hidden layer below them
    categories: Mapping[int, tuple[Any, ...]]  # categorical feature -> its values, in the order of their codes

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
        """A layer's number from 0, negative ones counted back from the last; ValueError if there is no such layer."""
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

    `scale` and `offset`, (outputs,) float64, bring the network's raw output to the user's units.
    """
    records = LeafRecords()
    for layer in range(len(network.layers)):
        reader = _Reader(network, layer, names, scale)
        for tree in range(reader.forest.n_trees):
            records += reader.leaves(tree)
    empty: Record = {"path": [], "coefficients": {}, "ranges": {}, "means": {}}
    for name, value in zip(reader.outputs, (scale * network.baseline + offset).tolist(), strict=True):
        records.append({"layer": layer, "tree": -1, "leaf": 0, "output": name, "constant": value} | empty)
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
        reader = _Reader(network, layer, names, scale)
        leaf = trace.leaf  # of very many rows they are routed for it
        for tree in range(reader.forest.n_trees):
            records += reader.records(tree, trace.X, leaf[tree].astype(np.int32))
    start = list(zip(reader.outputs, (scale * network.baseline + offset).tolist(), strict=True))
    for row in range(len(X)):
        for name, value in start:
            records.append(_record(row, {"layer": layer, "tree": -1, "leaf": 0}, name, value=value, constant=value))
    return LeafRecords(sorted(records, key=lambda record: record["row"]))


class _Reader:
    """Reads the trees of one layer; outputs of the last one are brought to the user's units by `scale`, (outputs,)."""

    def __init__(self, network: Network, layer: int, names: Names, scale: Floats) -> None:
        self.layer, self.forest = layer, network.layers[layer].forest
        self.names, self.categories = names.inputs_of(layer), names.categories_of(layer)
        self.outputs = names.outputs_of(layer)
        self.factor = scale if layer == len(network.layers) - 1 else np.ones(len(self.outputs))
        per_feature = self.forest.basis.columns_per_feature
        self.columns = (
            self.names if per_feature == 1 else [f"f{q}({name})" for name in self.names for q in range(per_feature)]
        )

    def _tree(self, number: int) -> tuple[Tree, kernels.Leaves, int, int]:
        """Return a tree, its leaves, the first output that it serves, and their number."""
        forest = self.forest.take(slice(number, number + 1))
        [[first, n_outputs]] = forest.leaves.tree_output.tolist()
        return forest.trees[0], forest.leaves, first, n_outputs

    def records(self, number: int, X: Floats, leaf: NDArray[np.int32]) -> list[Record]:
        """Return the records of one tree for all rows, whose leaves are `leaf`, (rows,)."""
        tree, leaves, first, n_outputs = self._tree(number)
        Z = bases.expand(self.forest.basis, X)
        values = np.zeros((len(X), self.forest.n_outputs))
        kernels.evaluate(leaves, leaf[None], Z, self.forest.clip, 0, len(X), values)
        path_to, terms_of = cache(self._paths(tree)), cache(partial(coefficients, leaves))
        records = []
        for row, reached in enumerate(leaf.tolist()):
            facts = {"layer": self.layer, "tree": number, "leaf": reached, "path": path_to(reached)}
            inputs = self._inputs(leaves, reached, Z[row])
            for k, value in enumerate(values[row, first : first + n_outputs].tolist()):
                unit = float(self.factor[first + k])
                constant, *slopes = (terms_of(reached)[:, k] * unit).tolist()
                words = dict(zip(self._terms(leaves, reached), slopes, strict=True))
                of_row = {"value": value * unit, "constant": constant, "coefficients": words} | inputs
                records.append(_record(row, facts, self.outputs[first + k], **of_row))
        return records

    def leaves(self, number: int) -> list[Record]:
        """Return the records of all leaves of one tree."""
        tree, leaves, first, n_outputs = self._tree(number)
        path_to, serves = self._paths(tree), slice(first, first + n_outputs)
        records = []
        for leaf in range(tree.n_leaves):
            facts = {"layer": self.layer, "tree": number, "leaf": leaf}
            weights, terms = coefficients(leaves, leaf) * self.factor[serves], self._terms(leaves, leaf)
            path, ranges = path_to(leaf), self._ranges(leaves, leaf)
            for output, (constant, *slopes) in zip(self.outputs[serves], weights.T.tolist(), strict=True):
                words = {"constant": constant, "coefficients": dict(zip(terms, slopes, strict=True))}
                records.append(facts | {"output": output, "path": path} | words | ranges)
        return records

    def _paths(self, tree: Tree) -> Callable[[int], list[str]]:
        """Return what gives the conditions on the way to a leaf, one for each feature, in the order of first splits."""
        above = tree.parents()

        def path_to(leaf: int) -> list[str]:
            steps: list[tuple[int, bool]] = []
            child = ~leaf
            while (split := above.get(child, -1)) >= 0:
                steps.append((split, bool(tree.left[split] == child)))
                child = split
            by_feature: dict[int, list[tuple[int, bool]]] = {}
            for step in reversed(steps):
                by_feature.setdefault(int(tree.feature[step[0]]), []).append(step)
            return [
                _condition(tree, of_feature, self.names[j], self.categories.get(j))
                for j, of_feature in by_feature.items()
            ]

        return path_to

    def _ranges(self, leaves: kernels.Leaves, leaf: int) -> Record:
        """Return between which values each input of a leaf's regression is clipped, and its mean."""
        at = slice(leaves.start[leaf], leaves.start[leaf + 1])
        names = [self.columns[column] for column in leaves.column[at]]
        center, inverse = leaves.scaling[at, CENTER], leaves.scaling[at, INV_SCALE]
        scale = np.divide(1.0, inverse, out=np.zeros_like(inverse), where=inverse > 0.0)  # 0: a constant in the leaf
        clipped = center[:, None] + leaves.scaling[at][:, [LOWER, UPPER]] * scale[:, None]
        ranges = clipped.tolist() if self.forest.clip else [[-np.inf, np.inf]] * len(names)
        return {
            "ranges": dict(zip(names, map(tuple, ranges), strict=True)),
            "means": dict(zip(names, center.tolist(), strict=True)),
        }

    def _terms(self, leaves: kernels.Leaves, leaf: int) -> list[str]:
        names = [self.columns[column] for column in leaves.column[leaves.start[leaf] : leaves.start[leaf + 1]]]
        return names + ([f"{name}^2" for name in names] if leaves.tree_degree[0] == 2 else [])

    def _inputs(self, leaves: kernels.Leaves, leaf: int, z: Floats) -> Record:
        """Return the inputs of a leaf's regression: values, some clipped, or the leaf's mean for a missing one."""
        at = slice(leaves.start[leaf], leaves.start[leaf + 1])
        read: Record = {"inputs": {}, "clipped": [], "missing": []}
        for column, scaling in zip(leaves.column[at], leaves.scaling[at], strict=True):
            name, value = self.columns[column], float(z[column])
            if np.isnan(value):
                read["missing"].append(name)
                value = float(scaling[CENTER])
            elif self.forest.clip and scaling[INV_SCALE] > 0.0:
                u = (value - scaling[CENTER]) * scaling[INV_SCALE]
                if not scaling[LOWER] <= u <= scaling[UPPER]:
                    read["clipped"].append(name)
                    value = float(scaling[CENTER] + np.clip(u, scaling[LOWER], scaling[UPPER]) / scaling[INV_SCALE])
            read["inputs"][name] = value
        return read


def _record(row: int, facts: Record, output: str, **rest: Any) -> Record:
    empty: Record = {"path": [], "constant": 0.0, "coefficients": {}, "inputs": {}, "clipped": [], "missing": []}
    return {"row": row, "output": output} | facts | {k: v for k, v in empty.items() if k not in facts} | rest


def _condition(tree: Tree, steps: Sequence[tuple[int, bool]], name: str, categories: tuple[Any, ...] | None) -> str:
    """Return in words what a feature must be to pass its splits."""
    missing = " or missing" if all(tree.missing_left[split] == is_left for split, is_left in steps) else ""
    if categories is None and any(tree.cat_start[split] >= 0 for split, _ in steps):
        categories = tuple(range(32 * max(int(tree.cat_words[split]) for split, _ in steps)))
    if categories is not None:
        codes = np.arange(len(categories), dtype=float)
        passing = np.ones(len(codes), bool)
        for split, is_left in steps:
            passing &= _sent_left(tree, split, codes) == is_left
        return f"{name} in {{{', '.join(str(categories[code]) for code in np.flatnonzero(passing))}}}{missing}"
    upper = min((tree.threshold[split] for split, is_left in steps if is_left), default=np.inf)
    lower = max((tree.threshold[split] for split, is_left in steps if not is_left), default=-np.inf)
    if lower == np.inf:  # a leaf for missing values, of an additive base or a library's own leaves
        return f"{name} missing"
    if lower == -np.inf and upper == np.inf:
        return f"{name} known{missing}"
    low = f"{lower:.6g} < " if lower > -np.inf else ""
    high = f" <= {upper:.6g}" if upper < np.inf else ""
    return f"{low}{name}{high}{missing}" if high else f"{name} > {lower:.6g}{missing}"


def _sent_left(tree: Tree, split: int, codes: Floats) -> NDArray[np.bool_]:
    """Whether a split sends codes left."""
    if tree.cat_start[split] < 0:
        return codes <= tree.threshold[split]
    words = tree.categories[tree.cat_start[split] :][: tree.cat_words[split]]
    bits = np.unpackbits(words.astype("<u4").view(np.uint8), bitorder="little").astype(bool)
    sent = np.zeros(len(codes), bool)
    inside = codes < len(bits)
    sent[inside] = bits[codes[inside].astype(int)]
    return sent
