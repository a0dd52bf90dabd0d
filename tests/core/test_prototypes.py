"""The prototypes in Python are those of the C sources: each argument's name, type and place, and each constant."""

from __future__ import annotations

import ctypes
import re
from importlib import import_module
from pathlib import Path

import pytest

from boostbp import core
from boostbp.core.binding import Loop

SOURCES = {path.name: path.read_text("utf-8") for path in Path(core.__file__).parent.glob("*.[ch]")}
CODE = "\n".join(re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL) for text in SOURCES.values())
LOOPS = {value.__name__: value for value in vars(core).values() if isinstance(value, Loop)}
# The types in C of the numbers of an array, and of records that an array holds
NUMBERS = {
    "f8": {"double"}, "f4": {"float"}, "i8": {"int64_t", "boostbp_layer", "boostbp_set"},
    "i4": {"int32_t", "boostbp_tree"}, "u8": {"boostbp_node"}, "u4": {"uint32_t"}, "u2": {"uint16_t"},
    "u1": {"uint8_t", "char", "void"}, "b1": {"uint8_t"},
}  # fmt: skip
SCALARS = {ctypes.c_int64: "int64_t", ctypes.c_double: "double"}


def declared(text):
    """The name, type and pointer of each variable that declarations of C declare."""
    found = []
    for declaration in filter(None, map(str.strip, text.split(";"))):
        kind, names = re.fullmatch(
            r"((?:const )?\w+) (.*)", " ".join(declaration.replace("restrict", "").split())
        ).groups()
        found += [(name.strip(" *"), kind, "*" in name) for name in names.split(",")]
    return found


STRUCTS = {
    name: declared(body) for body, name in re.findall(r"typedef struct \{([^{}]*)\} (\w+);", CODE) if "(" not in body
}
FUNCTIONS = {
    name: declared(arguments.replace(",", ";"))
    for name, arguments in re.findall(r"\bint64_t boostbp_(\w+)\(([^)]*)\)\s*\{", CODE)
    if name in LOOPS
}


def difference(expected, found):
    """What is wrong with variables of C, beside arguments in Python and the names of sizes; None if nothing is."""
    if len(expected) != len(found):
        return f"{len(found)} variables instead of {len(expected)}"
    for argument, (name, kind, is_pointer) in zip(expected, found, strict=True):
        what = f"{kind} {'*' * is_pointer}{name} for {argument}"
        is_const, kind = kind.startswith("const "), kind.removeprefix("const ")
        if isinstance(argument, tuple):  # the name of a size or of the bytes of leaf numbers
            if (kind, is_pointer) != ("int64_t", False) or name not in argument:
                return what
        elif hasattr(argument, "fields"):
            wrong = difference(passed(argument), STRUCTS[kind])
            if wrong or not is_pointer or not is_const:
                return f"{what}: {wrong}"
        elif hasattr(argument, "dtype"):
            kinds = {"void"} if argument.is_leaf else NUMBERS[argument.dtype.str[1:]]
            # A structure that some functions read and others write is not const.
            if name != argument.name or kind not in kinds or not is_pointer or (argument.is_written and is_const):
                return what
        elif (name, kind, is_pointer) != (argument.name, SCALARS[argument.c_types[0]], False):
            return what
    return None


def passed(record):
    """The arguments that a function or record of C receives, in order; for sizes the names that they may have."""
    fields = record.arguments if isinstance(record, Loop) else record.fields
    sizes = record._size_names if isinstance(record, Loop) else record.size_names
    flat = []
    for field in fields:
        flat.append(field)
        if getattr(field, "is_leaf", False):
            flat.append(("bytes", "ptr_bytes"))
    return flat + [(size, f"n_{size}") for size in sizes]


def test_every_loop_is_defined_once_in_c():
    assert sorted(FUNCTIONS) == sorted(LOOPS)


@pytest.mark.parametrize("name", sorted(LOOPS))
def test_arguments_are_those_of_the_c_function(name):
    assert difference(passed(LOOPS[name]), FUNCTIONS[name]) is None


@pytest.mark.parametrize("name", sorted(LOOPS))
def test_a_function_has_few_parameters(name):
    assert len(FUNCTIONS[name]) <= 12


def test_constants_have_the_values_of_c():
    enums = "".join(re.findall(r"enum \{(.*?)\}", CODE)) + "".join(re.findall(r"static const double \w+ = .*?;", CODE))
    of_c = {name.removeprefix("BOOSTBP_"): float(value) for name, value in re.findall(r"(\w+) = (-?[\de.-]+)", enums)}
    of_python = {name: value for name, value in vars(core).items() if name.isupper() and isinstance(value, int | float)}
    assert of_python == {name: of_c.get(name) for name in of_python}
    assert {"NOT_READ", "LACKS_MEMORY", "UPPER", "LEAST_SCALE"} <= set(of_python)


def test_a_swap_of_two_sizes_is_seen():
    *others, leaves, paths = FUNCTIONS["scale_weights"]
    expected = passed(LOOPS["scale_weights"])
    assert difference(expected, [*others, leaves, paths]) is None
    assert "n_leaves" in difference(expected, [*others, paths, leaves])


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_comments_point_to_code_that_exists(name):
    for module, attribute in re.findall(r"`(boostbp(?:\.\w+)*)\.(\w+)`", SOURCES[name]):
        assert hasattr(import_module(module), attribute) or import_module(f"{module}.{attribute}")
