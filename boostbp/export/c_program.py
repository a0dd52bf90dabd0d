"""A fitted estimator as one C file without dependencies."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boostbp.export.description import Description, described
from boostbp.runtime.versions import __version__
from boostbp.trees.flat import LEAF_BOUND, NODE, WIDE, Flat
from boostbp.trees.tree import offsets

NUMBERS_PER_LINE = 8
_PLAIN = 1e6  # smaller whole numbers are shorter in decimals
_REALS = {"float32": "float", "float64": "double"}
_NAMES = re.compile(r'"(?:[^"\\]|\\.)*"|\b(boostbp|BOOSTBP)(?=_)')  # strings match, too, and are not changed
_MAX_TEXT = 4095  # length of strings that every compiler must accept, in bytes (C99, 5.2.4.1)
_KINDS = {name: f"boostbp_{name[:-1]}" for name in ("nodes", "trees", "layers", "sets")}
_SOURCE = re.compile(r"/\* Exported from here on. \*/\n+(.*?)\n+/\* Exported up to here. \*/", re.DOTALL)
_GUARDS = """\
#if defined(__FAST_MATH__) || (defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD != 0)
#error "Compile without -ffast-math, for a machine with arithmetic in double: trees compare numbers exactly."
#endif"""


def to_c(model: Any, *, prefix: str = "boostbp") -> str:
    """Write a fitted estimator as a C file: C99, with a few functions of the C library.

    Its raw outputs have the same bits as those of `predict` if the compiler does not merge products and sums: use
    ``gcc -O2 -ffp-contract=off -c model.c``, or clang with the same flags. Exponentials (of counts, amounts and
    probabilities) are those of the C library, whose last bit may differ from numpy's.

    Parameters
    ----------
    model : BoostBPRegressor, BoostBPClassifier, BoostBPRanker, BoostBPSurvival or BoostBPAutoencoder
        Fitted.
    prefix : str
        Prefix of all names in the file, including types and, in capitals, macros. Several models in one program need
        different prefixes.

    Returns
    -------
    str
        The file. ``int boostbp_predict(const double *rows, size_t n, double *out)``, with the prefix in place of
        ``boostbp``, takes rows as `to_onnx` describes them: categories as themselves if they are numbers, otherwise as
        codes; NaN is missing. A classifier also has ``boostbp_predict_proba``, and its ``boostbp_predict`` writes
        indices into ``boostbp_labels`` to ``int *out``; for several labels both write a number for each. The functions
        return 0; 1 if a cell is infinite; -1 if memory runs out.

    Raises
    ------
    ValueError
        If the model contains the user's code (a basis with functions, or a loss with a custom link); if C cannot
        represent its labels; if 32 bits cannot count its numbers; or if `prefix` is not a name in C.
    TypeError
        If `model` is not an estimator of this package, or has a derived class.
    sklearn.exceptions.NotFittedError
        If it is not fitted.
    """
    if not (isinstance(prefix, str) and re.fullmatch("[A-Za-z][A-Za-z0-9_]*", prefix)):
        raise ValueError(f"prefix={prefix!r} is not a name in C: use letters, digits and _, a letter first.")
    described_model = described(model)
    program = "".join(f"{part}\n" for part in _parts(described_model))
    names = {"boostbp": prefix, "BOOSTBP": prefix.upper()}
    named = _NAMES.sub(lambda match: names[match[1]] if match[1] else match[0], program)
    return f"{_head(described_model, prefix)}\n{named}"


def _parts(model: Description) -> Iterator[str]:
    """Yield the program part by part."""
    yield "\n".join(f"#include <{name}.h>" for name in ("float", "math", "stddef", "stdint", "stdlib", "string"))
    yield _GUARDS
    flat = Flat.of(model.forests, NODE) or Flat.of(model.forests, WIDE)
    if flat is None:
        raise ValueError("The model cannot be exported: it exceeds 32-bit indices. Fit fewer or smaller trees.")
    _, _, first_set, end_set, width, outputs, _ = flat.layers.T
    numbers = {
        "FEATURES": model.n_features,
        "OUTPUTS": model.n_outputs,
        "CATEGORICAL": len(model.categories),
        "SKIP": int(model.skip),
        "WIDTH": max(width.max(), outputs.max()),
        "NUMBERS": (2 * width + end_set - first_set).max(),
        "LINK(h)": _link(model),
        "SORTED": int(model.link.name == "sorted"),
    }
    if model.labels is not None:
        numbers["CLASSES"] = len(model.labels)
    yield "\n".join(f"#define BOOSTBP_{name} {value}" for name, value in numbers.items())
    yield from _categories(model)
    for name in ("step", "column"):
        yield f"typedef {_kind(flat.nodes.dtype[name])} boostbp_{name};"
    [source] = _SOURCE.findall(_file("core", "rows.c"))
    yield source
    arrays = flat._asdict() | {"baseline": model.baseline}
    for name, values in arrays.items():
        yield _array(name, values)
    fields = [*(f"boostbp_{name}" for name in arrays), str(len(model.forests)), str(model.forests[-1].n_outputs)]
    yield f"static const boostbp_flat boostbp_model = {{{', '.join(fields)}}};"
    yield _file("export", "predict.c")
    if model.labels is None:
        yield _array("output_scale", model.scale)
        yield _array("output_shift", model.shift)
        yield _file("export", "predict_numbers.c")
    else:
        yield _labels(model.labels)
        yield _file("export", "predict_labels.c" if model.multilabel else "predict_classes.c")


def _file(room: str, name: str) -> str:
    return files(f"boostbp.{room}").joinpath(name).read_text(encoding="utf-8").rstrip()


def _head(model: Description, prefix: str) -> str:
    facts = "\n".join(f"   {name}: {json.dumps(value)}" for name, value in model.facts.items())
    facts = facts.replace("*", r"\u002a")  # cannot begin or end a comment, and is the same JSON
    return f"""/* A model of boostbp {__version__}, written by boostbp.to_c.

   All names begin with {prefix}_ or {prefix.upper()}_; several models in one program need a prefix each:
   to_c(model, prefix=NAME).

   gcc -O2 -ffp-contract=off -c FILE, and -lm where it is linked; the same flags for clang. Without -ffp-contract=off
   predictions differ in their last bits.

   A row has {model.n_features} numbers, NaN where missing. A column of categories holds these themselves if they are
   numbers, otherwise their places in the lists below, from 0.
{facts} */"""


def _link(model: Description) -> str:
    if model.link.name != "log":
        return "(h)"
    lowest, highest = (_real(bound) for bound in (model.link.lowest, model.link.highest))
    return f"exp(fmin(fmax((h), {lowest}), {highest}))"


def _categories(model: Description) -> Iterator[str]:
    """Yield the numbers that represent categories, ascending in each column, and their codes."""
    values = [model.categories[column] for column in model.categories]
    order = [np.argsort(part) for part in values]
    start = offsets([len(part) for part in values])
    yield _array("categorical", np.array(list(model.categories), np.int64))
    yield _array("value_start", start)
    ascending = [part[places] for part, places in zip(values, order, strict=True)]
    yield _array("values", np.concatenate([np.empty(0), *ascending]))
    yield _array("codes", np.concatenate([np.empty(0, np.int64), *order]))


def _labels(labels: NDArray[Any]) -> str:
    kind, literal = _LABELS[labels.dtype.kind]
    return f"const {kind} boostbp_labels[{len(labels)}] = {{{', '.join(map(literal, labels.tolist()))}}};"


def _whole(value: int) -> str:
    return "INT64_MIN" if value == -(2**63) else str(int(value))  # C has no literal for the smallest int64


def _text(value: str) -> str:
    """Return a string literal of the bytes of a text in UTF-8."""
    if "\0" in value or len(value.encode()) > _MAX_TEXT:
        fault = f"{value!r}, whose NUL ends a text in C" if "\0" in value else f"a text of over {_MAX_TEXT} bytes"
        raise ValueError(f"classes_ holds {fault}: fit the model to other labels.")
    plain = {*map(ord, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _-+.,:;/()<>=")}
    return '"' + "".join(chr(byte) if byte in plain else f"\\{byte:03o}" for byte in value.encode()) + '"'


def _real(value: float) -> str:
    """Return a short literal of a number, exact to the bit."""
    if np.isnan(value):
        return "NAN"
    if np.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    if value.is_integer() and abs(value) < _PLAIN:
        return repr(value)[:-1]  # 3. and -0.
    mantissa, exponent = value.hex().split("p")
    return f"{mantissa.rstrip('0')}p{int(exponent)}"


# Type of labels in C and function that writes one, by the kind of their dtype.
_LABELS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "O": ("char *const", _text), "i": ("int64_t", _whole), "b": ("int64_t", _whole), "f": ("double", _real),
}  # fmt: skip


def _array(name: str, values: NDArray[Any]) -> str:
    """Return the definition of an array, of records if it has two axes. An empty one has a 0, as C requires."""
    if values.dtype.names:
        literals = [_node(*node) for node in values.tolist()]
    elif values.ndim > 1:
        literals = [f"{{{','.join(map(str, row))}}}" for row in values.tolist()] or ["{0}"]
    else:
        literals = list(map(_real if values.dtype.kind == "f" else str, values.tolist())) or ["0"]
    lines = [",".join(literals[i : i + NUMBERS_PER_LINE]) for i in range(0, len(literals), NUMBERS_PER_LINE)]
    body = ",\n".join(lines)
    return f"static const {_KINDS.get(name) or _kind(values.dtype)} boostbp_{name}[] = {{\n{body}}};"


def _node(bound: int, step: int, column: int) -> str:
    return f"{{{bound},{step},{column}}}" if step else f"{{~{LEAF_BOUND - bound}u,0,{column}}}"


def _kind(dtype: np.dtype[Any]) -> str:
    return _REALS.get(dtype.name, f"{dtype.name}_t")
