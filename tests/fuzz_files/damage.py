"""Damages: a file taken apart, changed in its structure, and put together with a checksum that is right."""

from __future__ import annotations

import copy
import hashlib
import io
import itertools
import json
import random
import struct
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["damaged"]

EDGES = (-(2**63), -(2**31), -7, -1, 0, 1, 2, 3, 7, 119, 10**6, 2**31 - 1, 2**31, 2**62, 2**63 - 1)
FLOATS = (float("nan"), float("inf"), -1.0, 0.0, 5e-324, 1e308)
ODD = (
    None, True, False, -1, 0, 1, 2, 2**31 - 1, 2**63, 10**400, -0.5, 1e308, "", "all", "x" * 70_000, "\ud800",
    [], {}, [[]],
    {"float": "nan"}, {"tuple": []}, {"dict": []}, {"float": "inf"}, {"dtype": "<U65536"}, [None], {"a": {}},
)  # fmt: skip


class Parts:
    """A file as its header and the bytes of its arrays, each a file of numpy."""

    def __init__(self, data: bytes) -> None:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            members = [(one.filename, file.read(one)) for one in file.infolist()]
        self.header = json.loads(members[0][1].decode("utf-8", "surrogatepass"))
        self.arrays = {name.removesuffix(".npy"): data for name, data in members[1:]}
        self.extra: list[tuple[str, bytes]] = []

    def array(self, name: str) -> np.ndarray:
        """An array as the format describes it."""
        try:
            return np.load(io.BytesIO(self.arrays[name]), allow_pickle=False)
        except Exception as error:  # an earlier damage
            raise ValueError(f"{name} is no array any more") from error

    def put(self, name: str, array: np.ndarray) -> None:
        """Write an array in the format's way."""
        stream = io.BytesIO()
        np.save(stream, np.asarray(array, order="C"))
        self.arrays[name] = stream.getvalue()

    def members(self) -> list[tuple[str, bytes]]:
        """Names and bytes, the header first."""
        text = json.dumps(self.header).encode("utf-8", "surrogatepass")
        return [("boostbp.json", text), *((f"{name}.npy", data) for name, data in self.arrays.items()), *self.extra]


def sealed(data: bytes) -> bytes:
    """The bytes with a checksum that is right."""
    body = data[:-64]
    return body + hashlib.sha256(body).hexdigest().encode()


def zipped(members: list[tuple[str, bytes]], compression: int = zipfile.ZIP_DEFLATED, first: int = 0) -> bytes:
    """Members in a zip, sealed; the first one is compressed by a method of its own."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        for number, (name, data) in enumerate(members):
            info = zipfile.ZipInfo(name)
            info.compress_type = compression if number else first
            file.writestr(info, data)
        file.comment = b"boostbp sha256:" + b"0" * 64
    return sealed(stream.getvalue())


def damaged(data: bytes, seed: int) -> tuple[bytes, bool]:
    """The bytes with one to three damages, and whether these may change what the model computes."""
    rng = random.Random(seed)
    parts, numeric = Parts(data), False
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        change = rng.choice(CHANGES)
        try:
            numeric |= change(parts, rng)
        except (ValueError, KeyError, IndexError, TypeError, OverflowError, AttributeError):
            numeric = True  # an earlier damage left nothing for it to change
    if rng.random() < 0.12:
        return rng.choice(CONTAINERS)(parts, rng), True
    return zipped(parts.members()), numeric


def _entry(parts: Parts, rng: random.Random) -> bool:
    """One number of an array."""
    name = rng.choice(list(parts.arrays))
    array = parts.array(name).copy()
    flat = array.reshape(-1)
    at = rng.randrange(flat.size)
    if array.dtype.kind == "f":
        flat[at] = rng.choice(FLOATS)
    elif array.dtype.kind == "b":
        flat[at] = not flat[at]
    else:
        near = int(flat[at]) + rng.choice((-2, -1, 1, 2))
        value = rng.choice((*EDGES, near, near, near, flat.size, flat.size + 1))
        limits = np.iinfo(array.dtype)
        flat[at] = min(max(value, limits.min), limits.max)
    parts.put(name, array)
    return True


def _shape(parts: Parts, rng: random.Random) -> bool:
    """Length, type or number of axes of an array."""
    name = rng.choice(list(parts.arrays))
    array = parts.array(name)
    ways: list[Callable[[], np.ndarray]] = [
        lambda: array[: max(0, len(array) - 1)],
        lambda: np.concatenate([array, array[-1:]]),
        lambda: np.concatenate([array] * 50),
        lambda: array[:0],
        lambda: array[None],
        lambda: array[:, None],
        lambda: array.reshape(-1),
        lambda: array.T,
        lambda: array.astype(rng.choice(["f8", "i8", "i4", "u4", "u1", "?"])),
        lambda: array[::-1],
        lambda: np.zeros((0, 2**40)),
        lambda: np.zeros((7, 0, 3)),
    ]
    parts.put(name, rng.choice(ways)())
    return True


def _stream(parts: Parts, rng: random.Random) -> bool:
    """What an array states of itself, or its bytes."""
    name = rng.choice(list(parts.arrays))
    data = parts.arrays[name]
    way = rng.randrange(4)
    if way == 0:
        lies = [
            ("'<f8'", "(1152921504606846976,)"), ("'<f8'", "(-1,)"), ("'<f8'", f"(0, {10**20})"),
            ("'<f8'", f"({10**400},)"), ("'|O'", "(3,)"), ("'<U999999'", "()"), ("'<f8'", str((1,) * 100)),
            ("'<f8'", "3"), ("'<f8'", "(2.0,)"), ("'>f8'", "(2,)"), ("[('a', '<f8')]", "(2,)"), ("{}", "[]"),
            ("print()", "()"), ("'<f8'", "(-2, -1)"), ("'<f8'", "(" * 9000),
            *(("'<f8'", f"({sign * (9000 // len(sign))}2,)") for sign in ("-", "~", "+", "not ", "1-", "[", "2 ")),
        ]  # fmt: skip
        descr, shape = rng.choice(lies)
        fortran = rng.choice(("False", "False", "True", "7"))
        text = f"{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}}}".encode()
        parts.arrays[name] = data[: rng.choice((6, 8, 8))] + len(text).to_bytes(2, "little") + text + data[128:]
    elif way == 1:  # a bomb
        parts.put(name, np.zeros(rng.choice((1 << 16, 1 << 26)), np.uint8))
    elif way == 2:
        parts.arrays[name] = rng.choice((b"", data[:-1], data + b"0", data + data, data[2:-4], data[:100]))
    else:
        at = rng.randrange(len(data))
        parts.arrays[name] = data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
    return True


def _names(parts: Parts, rng: random.Random) -> bool:
    """Arrays that are gone, renamed, exchanged, or too many."""
    names = list(parts.arrays)
    one, other = rng.choice(names), rng.choice(names)
    way = rng.randrange(5)
    if way == 0:
        del parts.arrays[one]
    elif way == 1:
        new = rng.choice(("x", "layer9.left", "now.baseline", "../up", "", "h7"))
        parts.arrays[new] = parts.arrays.pop(one)
    elif way == 2:
        parts.arrays[one], parts.arrays[other] = parts.arrays[other], parts.arrays[one]
    elif way == 3:
        parts.put(rng.choice(("x", "layer9.left", "zeros")), np.zeros(rng.choice((0, 3, 100_000))))
    else:
        parts.extra.append((f"{one}.npy", parts.arrays[one]))
    return True


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where values stand in the header."""
    found = [path] if path else []
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        found += _places(child, (*path, key))
    return found


def _header(parts: Parts, rng: random.Random) -> bool:
    """A value of the header: another one, gone, twice, or with something beside it."""
    places = _places(parts.header)
    deep = [place for place in places if len(place) > 1 and place[1] != "history"]
    path = rng.choice(deep if deep and rng.random() < 0.7 else places)
    parent = parts.header
    for key in path[:-1]:
        parent = parent[key]
    old = copy.deepcopy(parent[path[-1]])
    way = rng.randrange(8)
    if way == 0 and isinstance(parent, dict):
        del parent[path[-1]]
    elif way == 1 and isinstance(parent, list):
        parent.insert(path[-1], old)
    elif way == 2 and isinstance(old, dict):
        old[rng.choice(("more", "checkpoint", "functions", "n_base"))] = rng.choice(ODD)
        parent[path[-1]] = old
    elif way == 3 and type(old) is int:
        parent[path[-1]] = rng.choice((*EDGES, old + 1, old - 1, 40 * old))
    elif way == 4:
        parent[path[-1]] = [old]
    elif way == 5:
        source = parts.header
        for key in rng.choice(places):
            source = source[key]
        parent[path[-1]] = copy.deepcopy(source)
    else:
        parent[path[-1]] = copy.deepcopy(rng.choice(ODD))
    return len(path) < 2 or path[1] not in ("parameters", "history", "feature_names", "set_output")


def _sizes(parts: Parts, rng: random.Random) -> bool:
    """Sizes that agree with each other, and with nothing that the file holds."""
    content = parts.header["content"]
    networks = [value for value in (content, *content.values()) if isinstance(value, dict) and "layers" in value]
    networks += [content["network"]] if "network" in content else []
    facts = [fact for network in networks for fact in network["layers"]] or [content["facts"]]
    big = rng.choice((2**31 - 1, 10**6, 10**9, 7))
    way = rng.randrange(4)
    if way == 0:
        for below, above in itertools.pairwise(facts):
            grown = big - below["n_outputs"]
            below["n_outputs"], above["n_features"] = big, above["n_features"] + grown
    elif way == 1:
        rng.choice(facts)[rng.choice(("n_features", "n_outputs", "n_base", "functions"))] = big
    elif way == 2:
        for fact in facts:
            fact["basis"] = rng.choice(("constant", "linear", "quadratic"))
    else:
        facts[0]["n_features"] = big
        if "schema" in content:
            content["schema"] |= {"n_features": big, "names": None}
    return True


CHANGES = (_entry, _entry, _entry, _shape, _stream, _names, _header, _header, _header, _header, _sizes)


def _overlapping(parts: Parts, rng: random.Random) -> bytes:
    """Two entries of the directory that state the same bytes."""
    data = bytearray(zipped(parts.members()))
    places = _directory(data)
    one, other = rng.choice(places), rng.choice(places)
    for offset in (16, 20, 24, 42) if rng.random() < 0.7 else (42,):
        data[one + offset : one + offset + 4] = data[other + offset : other + offset + 4]
    return sealed(bytes(data))


def _compressed(parts: Parts, rng: random.Random) -> bytes:
    methods = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
    return zipped(parts.members(), rng.choice(methods), rng.choice(methods))


def _sizes_stated(parts: Parts, rng: random.Random) -> bytes:
    """Another size of a member in the directory, before or after it is compressed."""
    data = bytearray(zipped(parts.members()))
    at = rng.choice(_directory(data)) + rng.choice((20, 24))
    data[at : at + 4] = rng.choice((0, 1, 200, 1 << 16, 1 << 26, (1 << 32) - 1)).to_bytes(4, "little")
    return sealed(bytes(data))


def _directory(data: bytearray) -> list[int]:
    """Where the entries of the directory begin."""
    count, _, at = struct.unpack_from("<HII", data, len(data) - 101 + 10)
    places = []
    for _ in range(count):
        name, extra, comment = struct.unpack_from("<HHH", data, at + 28)
        places.append(at)
        at += 46 + name + extra + comment
    return places


def _bytes(parts: Parts, rng: random.Random) -> bytes:
    """Some bytes anywhere, but for the checksum."""
    data = bytearray(zipped(parts.members()))
    tail = rng.random() < 0.5  # the directory
    for _ in range(rng.choice((1, 1, 2, 8))):
        at = rng.randrange(max(0, len(data) - 4000) if tail else 0, len(data) - 64)
        data[at] = rng.randrange(256)
    return sealed(bytes(data))


def _stretched(parts: Parts, rng: random.Random) -> bytes:
    """Bytes before, between or behind the members, or some cut out."""
    data = zipped(parts.members())
    at = rng.choice((0, rng.randrange(len(data) - 79), len(data) - 79))
    if rng.random() < 0.5:
        return sealed(data[:at] + bytes(rng.randrange(1, 4000)) + data[at:])
    return sealed(data[:at] + data[min(at + rng.randrange(1, 300), len(data) - 79) :])


def _twice(parts: Parts, rng: random.Random) -> bytes:
    """Members in another order, or one of them once more."""
    members = parts.members()
    if rng.random() < 0.5:
        rng.shuffle(members)
        return zipped(members)
    return zipped([*members, rng.choice(members)])


CONTAINERS = (
    _overlapping,
    _overlapping,
    _compressed,
    _sizes_stated,
    _sizes_stated,
    _bytes,
    _bytes,
    _bytes,
    _stretched,
    _twice,
)
