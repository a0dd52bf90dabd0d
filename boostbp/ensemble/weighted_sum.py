"""Weighted sum of networks: one network with their hidden units side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from boostbp.network.layers import Layer
from boostbp.network.network import Network
from boostbp.trees.forest import Forest


def weighted_sum(networks: Sequence[Network], weights: Sequence[float]) -> Network:
    """Return the network whose raw output is the weighted sum of the raw outputs of networks on the same features.

    The networks are of one depth, or single layers, whose trees join the output layer of the sum; this layer then reads
    the features beside the hidden units. Lower layers that are the same object in several networks are shared. A
    network of weight 0 contributes its hidden layers, but no trees of its output layer.
    """
    depth = max(len(network.layers) for network in networks)
    deep = [network for network in networks if len(network.layers) > 1]
    if any(len(network.layers) != depth for network in deep):
        raise ValueError("networks of different depth cannot be summed: only single layers may join deeper ones.")
    skip = any(network.skip for network in deep) or (depth > 1 and len(deep) < len(networks))
    n_features = networks[0].layers[0].forest.n_features
    n_outputs = len(networks[0].baseline)
    layers: list[Layer] = []
    places: dict[int, int] = {}  # by id of a layer below, its first unit in the sum
    units = 0
    for i in range(depth - 1):
        below, places, width, parts = places, {}, 0, []
        for network in deep:
            layer = network.layers[i]
            if id(layer) not in places:
                parts.append((layer.forest, _features(network, i, below, units, n_features), width))
                places[id(layer)] = width
                width += layer.forest.n_outputs
        n_inputs = n_features if i == 0 else units + n_features * skip
        placed = [forest.placed(features, n_inputs, unit, width) for forest, features, unit in parts]
        layers.append(Layer(Forest.concat(placed)))
        units = width
    n_inputs = n_features if depth == 1 else units + n_features * skip
    outputs = []
    for network, weight in zip(networks, weights, strict=True):
        if weight:
            features = _features(network, depth - 1, places, units, n_features)
            outputs.append(network.layers[-1].forest.placed(features, n_inputs, 0, n_outputs, weight))
    if not outputs:
        zero = networks[-1].layers[-1].forest.zero(range(n_outputs))
        outputs = [zero.placed(np.arange(n_inputs), n_inputs, 0, n_outputs)]
    layers.append(Layer(Forest.concat(outputs)))
    baseline = sum((weight * network.baseline for network, weight in zip(networks, weights, strict=True)), np.zeros(1))
    return Network(tuple(layers), baseline, skip)


def continued(earlier: Network, network: Network) -> Network:
    """Return the sum of a network and one that was trained with the output of the earlier one as offset."""
    output = network.layers[-1].forest
    stage = 1 + max((run.stage for run in earlier.layers[-1].forest.runs), default=0)
    later = replace(output, runs=tuple(replace(run, stage=stage + run.stage) for run in output.runs))
    return weighted_sum([earlier, replace(network, layers=(*network.layers[:-1], Layer(later)))], [1.0, 1.0])


def _features(network: Network, i: int, below: dict[int, int], units: int, n_features: int) -> np.ndarray:
    """Return the columns of a network's layer i inputs among the inputs of the sum's layer i."""
    raw = np.arange(n_features)
    if i == 0:
        return raw
    if len(network.layers) == 1:  # a single layer joins the output layer
        return units + raw
    layer = network.layers[i - 1]
    hidden = below[id(layer)] + np.arange(layer.forest.n_outputs)
    return np.concatenate([hidden, units + raw]) if network.skip else hidden
