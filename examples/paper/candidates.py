"""The settings that are tried, in one place: the paper's, and the short lists among which validation chooses.

A list may be changed freely: cells with other settings are other cells, and only they are run again. Quick runs
look at the first entry of a list alone.
"""

from __future__ import annotations

from typing import Any

from boostbp import paper_settings
from boostbp.search import parameters

__all__ = [
    "BEST",
    "CIRCLE",
    "CURVE",
    "LINEAR_HIDDEN",
    "MIXTURES",
    "PAPER",
    "PAPER_MIXTURES",
    "TREE_HIDDEN",
    "UNITS",
    "layers",
    "networks",
]

Params = dict[str, Any]


def _made(given: Params) -> Params:
    """Parameters of a model from names side by side; of a pair, the first is for hidden layers, the last the output's.

    One number of rounds, or one shrinkage, is for every layer.
    """
    flat = {**given}
    for name in ("n_estimators", "learning_rate", "max_depth"):
        value = flat.get(name)
        if isinstance(value, list):
            flat[f"hidden__{name}"], flat[name] = value[0], value[-1]
            if name == "max_depth":
                flat["output__max_depth"] = flat.pop(name)
        elif name != "max_depth" and value is not None:
            flat[f"hidden__{name}"] = value
    return parameters(flat)


# ---- pictures: nothing to choose, one model for each name

_CIRCLE: Params = {"n_estimators": 8, "max_depth": 6, "epochs": 25, "early_stopping": False}
CIRCLE: dict[str, Params] = {
    "paper's settings": _made(paper_settings(**_CIRCLE)),
    # two units must turn inside out in 25 epochs: longer steps with momentum, and trees that are grown anew, with best
    # thresholds
    "best settings": _made({**_CIRCLE, "step_size": 0.5, "momentum": 0.5, "structure_epochs": 1, "extra_trees": False}),
}

_CURVE: Params = {"n_estimators": 32, "max_depth": 5, "epochs": 47, "early_stopping": False}
_OF_AUTOENCODER = paper_settings(**_CURVE)
del _OF_AUTOENCODER["deep"]
CURVE: dict[str, Params] = {
    "paper's settings": _made(_OF_AUTOENCODER),
    "best settings": _made(_CURVE),
}

# ---- tables: one hidden layer of the paper's size

UNITS = {"random_network": 32, "income": 32, "protein": 16, "drug": 32, "mnist3000": 64}

# The paper chose the depth and the number of trees, which it gives for the random network alone; it does not give the
# learning rate beta of the trees. Here validation chooses. Hidden layers that learn fast follow their targets; several
# slow ones above each other shrink to nothing.
_GROWN: list[Params] = [
    {"max_depth": 5, "n_estimators": [10, 40]},
    {"max_depth": 5, "n_estimators": [20, 40], "learning_rate": [0.5, 0.1]},
    {"max_depth": 3, "n_estimators": [20, 40], "learning_rate": [0.5, 0.1]},
    {"max_depth": 2, "n_estimators": [20, 40], "learning_rate": [0.5, 0.1]},
]
_GROWN_ON_RANDOM_NETWORK: list[Params] = [
    {"max_depth": 5, "n_estimators": [40, 200]},
    {"max_depth": 4, "n_estimators": [40, 200], "learning_rate": [0.5, 0.05]},
    {"max_depth": 3, "n_estimators": [40, 200], "learning_rate": [0.5, 0.05]},
]
PAPER: dict[str, list[Params]] = {
    data: [
        _made(paper_settings(hidden_layer_sizes=[units], **grown))
        for grown in (_GROWN_ON_RANDOM_NETWORK if data == "random_network" else _GROWN)
    ]
    for data, units in UNITS.items()
}

# Shared structures are quicker, and at least as good on smooth targets. A small fixed penalty of the ridge under each
# layer lets hidden units follow their gradients; the cross-validated one holds them back.
_SMOOTH: Params = {
    "hidden_layer_sizes": [32],
    "multi_strategy": "multi_output_tree",
    "base_lambda": 1.0,
    "step_size": 0.5,
    "epochs": 200,
    "deep": True,
}
LINEAR_HIDDEN: list[Params] = [_made({**_SMOOTH, "n_estimators": [0, 200], "max_depth": [1, 5]})]
TREE_HIDDEN: list[Params] = [_made({**_SMOOTH, "n_estimators": [20, 200], "max_depth": [3, 5]})]


def layers(units: list[int]) -> list[Params]:
    """What is tried on an ordinary table: the package's defaults, which weigh networks and single layers themselves."""
    return [{"hidden_layer_sizes": units}]


def networks(units: list[int]) -> list[Params]:
    """Networks alone, with no single layer beside them: hidden layers of trees, linear ones, and additive ones."""
    kinds: list[Params] = [
        {},
        {"skip": True},
        {"hidden__n_estimators": 0, "hidden__base_lambda": 1.0},
        {"hidden__n_estimators": 0, "base": "additive"},
    ]
    return [_made({"hidden_layer_sizes": units, "deep": True, **kind}) for kind in kinds]


_PIXELS: Params = {"hidden_layer_sizes": [64], "backend_params": {"colsample_bytree": 0.1}}
BEST: dict[str, list[Params]] = {
    "random_network": [
        *LINEAR_HIDDEN,
        *TREE_HIDDEN,
        _made({**_SMOOTH, "n_estimators": [0, 200], "max_depth": [1, 3]}),
    ],
    "income": layers([32]),
    "protein": layers([16]),
    "drug": layers([32]),
    # of many pixels few tell something new: trees see a tenth of them, and units may start from their components
    "mnist3000": [_made({**_PIXELS, "start": start}) for start in ("projection", "principal")],
}

# ---- mixtures with a neural network, 32 hidden units

# 15 steps of stochastic gradient descent an epoch, by mini-batches; what optimizer took them the paper does not say.
_MIXED: Params = paper_settings(hidden_layer_sizes=[32], network_steps=15)
del _MIXED["backprop"]["structure_epochs"]
_PLAIN: Params = {"optimizer": "sgd", "network_learning_rate": 0.1}
_HIDDEN: Params = {"n_estimators": [20, 1], "max_depth": [3, 1], "learning_rate": [0.5, 0.1]}
_OUTPUT: Params = {"n_estimators": [1, 40], "max_depth": [1, 3]}
PAPER_MIXTURES: dict[str, list[Params]] = {
    "GBDT-NN": [
        _made({**_MIXED, "n_estimators": [10, 1], "max_depth": [5, 1]}),
        _made({**_MIXED, **_HIDDEN}),
        _made({**_MIXED, **_HIDDEN, **_PLAIN}),
    ],
    "NN-GBDT": [
        _made({**_MIXED, **_OUTPUT, "max_depth": [1, 5]}),
        _made({**_MIXED, **_OUTPUT}),
        _made({**_MIXED, **_OUTPUT, **_PLAIN}),
    ],
}
_ABOVE: Params = {"hidden_layer_sizes": [32], "n_estimators": [1, 100], "epochs": 60}
_BELOW: Params = {"hidden_layer_sizes": [32], "n_estimators": [20, 1], "epochs": 60}
# 27,000 rows: mini-batches learn more from each refit of the trees, and best thresholds are better than random ones
# (validation log-loss .282 against .290 for GBDT-NN, .279 against .289 for NN-GBDT)
_MANY: Params = {"epochs": 100, "network_steps": 60, "batch_size": 1024, "extra_trees": False}
_MIXTURES: dict[str, dict[str, list[Params]]] = {
    "income": {
        "GBDT-NN": [{**_BELOW, **_MANY}, {**_BELOW, **_MANY, "network_learning_rate": 0.003, "skip": True}],
        "NN-GBDT": [{**_ABOVE, "max_depth": [1, 4], "skip": True, "extra_trees": False}],
    },
    "protein": {
        "GBDT-NN": [
            _BELOW,
            {**_BELOW, "n_estimators": [10, 1], "max_depth": [2, 1], "step_size": 0.1},
            {**_BELOW, "extra_trees": False},
            {**_BELOW, "skip": True},
            {**_BELOW, "skip": True, "network_learning_rate": 0.003},
            {**_BELOW, "skip": True, "network_learning_rate": 0.003, "extra_trees": False},
        ],
        "NN-GBDT": [_ABOVE, {**_ABOVE, "max_depth": [1, 3]}],
    },
}
MIXTURES: dict[str, dict[str, list[Params]]] = {
    data: {name: [_made(each) for each in candidates] for name, candidates in of_data.items()}
    for data, of_data in _MIXTURES.items()
}
