"""Parameters of estimators and of layers by names that stand side by side, as tests vary them."""

from __future__ import annotations

from boostbp import fit_layer, search
from boostbp.network.layers import LayerSpec


def parameters(**flat):
    """Parameters of an estimator from names side by side; those of layers, rounds and shrinkage too, are for each.

    A list or tuple has a value for each layer, the output layer last.
    """
    shared, single = dict(flat), {}
    for name in ("n_estimators", "learning_rate"):
        if flat.get(name) is not None and not isinstance(flat[name], list | tuple):
            single |= {f"hidden__{name}": flat[name]}
    per_layer = {
        name: shared.pop(name) for name in LayerSpec.__dataclass_fields__ if isinstance(flat.get(name), list | tuple)
    }
    single |= {f"output__{name}": values[-1] for name, values in per_layer.items()}
    made = search.parameters({**single, **shared})
    if per_layer:
        count = {len(values) - 1 for values in per_layer.values()}.pop()
        each = [{name: values[i] for name, values in per_layer.items()} for i in range(count)]
        made["hidden"] = [{**made.get("hidden", {}), **fields} for fields in each]
    return made


def spec_and_rest(words):
    """The fields of a `LayerSpec` among words, and the others."""
    spec = {name: value for name, value in words.items() if name in LayerSpec.__dataclass_fields__}
    return spec, {name: value for name, value in words.items() if name not in LayerSpec.__dataclass_fields__}


def layer_of(H, targets, **words):
    """`fit_layer` by names side by side."""
    spec, rest = spec_and_rest(words)
    return fit_layer(H, targets, spec, **rest)
