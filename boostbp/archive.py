"""Archive: a file of arrays and a JSON header that is checked byte for byte before it is believed.

The file is a zip:

- ``boostbp.json``, the first member: ``{"format": "boostbp", "kind": "model", "version": 1, "boostbp":
  the version that wrote it, "arrays": {name: [dtype, shape, planes]}, "content": ...}`` in UTF-8;
- ``NAME.z`` for each array: its bytes, little-endian, in C order, compressed by zlib. With `planes`, first the first
  byte of each of its rows, then the second byte of each: signs and exponents of numbers lie side by side;
- as the comment of the zip, the file's last 79 bytes: ``boostbp sha256:`` and the SHA-256, in
  hexadecimal digits, of all bytes before these digits.

So any zip program reads the header, and a change of any byte is noticed. First member and comment stay where they are
in every version to come. The same content gives the same bytes, by one release of zlib.

A file may come from a stranger, and its checksum says nothing about who wrote it. Nothing in it is executed; its
members must fill it without a gap or an overlap, and its arrays hold at most `MOST` times as many bytes as the file,
which is asked before any is read: a small file takes little memory, whatever it says. Whatever its reader stumbles over
is a ValueError (see `load`).
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import version as version_of
from itertools import chain
from typing import IO, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from boostbp.atomic_write import atomic_write

Arrays = dict[str, NDArray[Any]]
T = TypeVar("T")

_HEADER = "boostbp.json"
_SEAL = b"boostbp sha256:"
_DIGITS = 64
_NAME_AT = 30  # where a zip holds the name of its first member
_DTYPES = frozenset(("<f8", "<i8", "<i4", "<u4", "|u1", "|b1"))
MOST = 64  # bytes of arrays for a byte of the file; those of models are 2 to 10
_SAMPLE = 1 << 14  # rows by which it is chosen how an array is compressed
_LOCAL, _CENTRAL, _END = 30, 46, 22  # bytes of a zip's records before their names and comments


class Archive(NamedTuple):
    """What a file holds: plain values, and arrays by name."""

    content: Any
    arrays: Arrays


def write(
    path: str | os.PathLike[str],
    *,
    kind: str,
    version: int,
    content: Any,
    arrays: Mapping[str, NDArray[Any]],
    compress: bool = False,
) -> None:
    """Write a file atomically: see `atomic_write`, also for the OSError that it raises.

    Parameters
    ----------
    kind, version : str and int
        What the file is, such as "model", and the version of this kind's content.
    content : dict, list, str, int, finite float, bool or None
        Nested as JSON may be.
    arrays : mapping of str to array
        float64, int64, int32, uint32, uint8 or bool.
    compress : bool
        Whether the file is to be small; a second for some 30 MB.
    """
    members = _members(kind, version, content, arrays, compress)
    with atomic_write(path) as part, open(part, "w+b") as file:
        _write_zip(file, members)
        file.flush()
        os.fsync(file.fileno())  # the name must not reach the disk before the bytes


def to_bytes(
    *, kind: str, version: int, content: Any, arrays: Mapping[str, NDArray[Any]], compress: bool = False
) -> bytes:
    """The bytes of the file that `write` would write."""
    file = io.BytesIO()
    _write_zip(file, _members(kind, version, content, arrays, compress))
    return file.getvalue()


def _members(
    kind: str, version: int, content: Any, arrays: Mapping[str, NDArray[Any]], compress: bool
) -> Iterable[tuple[str, bytes]]:
    """Names and bytes of the members; large ones are made when they are written."""
    little = {name: np.asarray(array, array.dtype.newbyteorder("<"), order="C") for name, array in arrays.items()}
    for name, array in little.items():
        if array.dtype.str not in _DTYPES:
            raise TypeError(f"array {name!r} is {array.dtype}, which the format does not hold")
    planes = {name: compress and _smaller_in_planes(array) for name, array in little.items()}
    header = {
        "format": "boostbp",
        "kind": kind,
        "version": version,
        "boostbp": version_of("boostbp"),
        "arrays": {name: [array.dtype.str, list(array.shape), planes[name]] for name, array in little.items()},
        "content": content,
    }
    text = json.dumps(header, allow_nan=False, ensure_ascii=False, indent=1).encode("utf-8", "surrogatepass")
    if not compress:
        return chain([(_HEADER, text)], ((f"{name}.z", zlib.compress(array.data, 0)) for name, array in little.items()))
    small = [(f"{name}.z", _deflated(array, planes[name])) for name, array in little.items()]
    n_bytes = sum(array.nbytes for array in little.values())
    if n_bytes > MOST * sum(len(data) for _, data in small):  # hardly anything but zeros
        return _members(kind, version, content, arrays, compress=False)
    return [(_HEADER, text), *small]


def _smaller_in_planes(array: NDArray[Any]) -> bool:
    """Whether the first rows of an array are smaller in planes: numbers that often come again are not."""
    if array.ndim == 0:
        return False
    part = array[:_SAMPLE]
    return len(_deflated(part, True)) < len(_deflated(part, False))


def _deflated(array: NDArray[Any], planes: bool) -> bytes:
    # Planes of fractions have long runs of one byte, or are noise, in which the search for anything else is in vain.
    runs = planes and array.dtype.kind == "f"
    deflate = zlib.compressobj(strategy=zlib.Z_RLE if runs else zlib.Z_DEFAULT_STRATEGY)
    parts = _planes(array) if planes else [array]  # a block for each plane, as each has other bytes
    return b"".join([deflate.compress(part.data) + deflate.flush(zlib.Z_BLOCK) for part in parts]) + deflate.flush()


def _planes(array: NDArray[Any]) -> NDArray[np.uint8]:
    """Return the bytes of each row as a column, (bytes of a row, rows)."""
    return np.ascontiguousarray(array.reshape(len(array), -1).view(np.uint8).T) if array.size else array.view(np.uint8)


def _write_zip(file: IO[bytes], members: Iterable[tuple[str, bytes]]) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in members:
            archive.writestr(zipfile.ZipInfo(name), data)  # a bare ZipInfo has a fixed date
        archive.comment = _SEAL + b"0" * _DIGITS
    _seal(file)


def _seal(file: IO[bytes]) -> None:
    """Put the hash of all bytes before it into the comment."""
    end = file.seek(-_DIGITS, os.SEEK_END)
    file.seek(0)
    digest = hashlib.sha256()
    while chunk := file.read(min(1 << 20, end - file.tell())):
        digest.update(chunk)
    file.seek(end)
    file.write(digest.hexdigest().encode())


def load(
    path: str | os.PathLike[str], build: Callable[[Any, Arrays], T], *, kind: str, version: int, oldest: int = 1
) -> T:
    """Read a file of a kind, of `oldest` to `version`, and build what it describes.

    ``build(content, arrays)`` takes out of `arrays` all that it uses (see `take`), or gives them on as they are:
    `Archive` looks at nothing. Whatever it raises is the file's fault, and a ValueError, as is a file that is foreign,
    truncated, corrupted, or of another kind or version. Raises OSError if it cannot be read.
    """
    with open(path, "rb") as file:
        data = file.read(_NAME_AT + len(_HEADER))
        _check_magic(data, str(path))  # a foreign file may be large, and a device has no end
        data += file.read()
    return from_bytes(data, str(path), build, kind=kind, version=version, oldest=oldest)


def from_bytes(
    data: bytes, name: str, build: Callable[[Any, Arrays], T], *, kind: str, version: int, oldest: int = 1
) -> T:
    """Build what the bytes of such a file describe: as `load`, with a name for the errors."""
    _check_seal(data, name)
    try:
        content, arrays = _open(data, name, kind, version, oldest)
        del data  # the arrays are copies
        built = build(content, arrays)
        if arrays and not isinstance(built, Archive):
            raise ValueError(f"it holds arrays that nobody asked for: {', '.join(sorted(arrays))}")
    except (MismatchError, MemoryError):  # memory is bounded by the file, so this one tells of the machine
        raise
    except Exception as error:  # a stranger's content may break its reader anywhere
        raise ValueError(f"{name!r} is not consistent: {error or type(error).__name__}.") from error
    return built


def take(arrays: Arrays, name: str, dtype: Any, shape: tuple[int | None, ...]) -> NDArray[Any]:
    """Take an array out of those of a file; ValueError if it has another type or shape, in which None is any length."""
    array = arrays.pop(name, None)
    if array is None:
        raise ValueError(f"the array {name!r} is missing")
    fits = array.ndim == len(shape) and all(want in (None, size) for want, size in zip(shape, array.shape, strict=True))
    if array.dtype != dtype or not fits:
        raise ValueError(f"{name} is {array.dtype}, {array.shape}, not {np.dtype(dtype)}, {shape}")
    return array


class MismatchError(ValueError):
    """A file that is whole, and not what its reader wants; the message says all."""


def _check_magic(data: bytes, name: str) -> None:
    magic = data[_NAME_AT : _NAME_AT + len(_HEADER)]
    if data[:4] != b"PK\x03\x04" or magic != _HEADER.encode():
        raise ValueError(f"{name!r} is not a file of boostbp: its first bytes are {data[:4]!r}.")


def _check_seal(data: bytes, name: str) -> None:
    _check_magic(data, name)
    if data[-_DIGITS - len(_SEAL) : -_DIGITS] != _SEAL:
        raise ValueError(f"{name!r} is truncated or was changed: it does not end in its checksum. Get a new copy.")
    if hashlib.sha256(memoryview(data)[:-_DIGITS]).hexdigest().encode() != data[-_DIGITS:]:
        raise ValueError(f"{name!r} is corrupted: its bytes do not have the checksum that it states. Get a new copy.")


def _open(data: bytes, name: str, kind: str, version: int, oldest: int) -> Archive:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        _check_members(members, len(data))
        text = archive.read(_HEADER).decode("utf-8", "surrogatepass")
        header = json.loads(text, parse_constant=_refuse)
        if header["format"] != "boostbp" or header["kind"] != kind:
            raise MismatchError(f"{name!r} is a {header['kind']} file of {header['format']}, not a {kind} of boostbp.")
        if type(header["version"]) is not int or header["version"] > version:
            raise MismatchError(
                f"{name!r} has version {header['version']} of the {kind} format and was written by boostbp "
                f"{header['boostbp']}; this boostbp reads up to version {version}: update it."
            )
        if header["version"] < 1:
            raise ValueError(f"versions count from 1, and it has {header['version']}")
        if header["version"] < oldest:
            raise MismatchError(
                f"{name!r} has version {header['version']} of the {kind} format and was written by boostbp "
                f"{header['boostbp']}; this boostbp reads it from version {oldest} on: fit and save it anew."
            )
        facts = header["arrays"]
        if [member.filename for member in members] != [_HEADER, *(f"{name}.z" for name in facts)]:
            raise ValueError("its members are not those that its header names")
        n_bytes = sum(_size(name, *fact) for name, fact in facts.items())
        if n_bytes > MOST * len(data):
            raise ValueError(f"it says that its arrays hold {n_bytes} bytes, more than {MOST} times its own")
        return Archive(header["content"], {name: _array(archive, name, *fact) for name, fact in facts.items()})


def _check_members(members: list[zipfile.ZipInfo], size: int) -> None:
    """Refuse a zip of `size` bytes whose members do not lie one behind the other, each byte of it in one record."""
    at = 0
    for member in members:
        if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & ~0x800:  # the flag of names in UTF-8
            raise ValueError("a member is compressed by the zip, or encrypted")
        if member.header_offset != at or member.file_size != member.compress_size:
            raise ValueError("its members overlap, or do not fill it")
        at += _LOCAL + len(_encoded(member.filename)) + member.file_size
    directory = sum(_CENTRAL + len(_encoded(member.filename)) for member in members)
    if at + directory + _END + len(_SEAL) + _DIGITS != size:
        raise ValueError("its members overlap, or do not fill it")


def _encoded(filename: str) -> bytes:
    return filename.encode("utf-8", "surrogatepass")


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not a value of JSON")


def _size(name: str, dtype: str, shape: list[int], planes: bool) -> int:
    """How many bytes an array has by what the header says of it."""
    counts = isinstance(shape, list) and all(type(size) is int and size >= 0 for size in shape)
    if dtype not in _DTYPES or not counts or type(planes) is not bool or (planes and not shape):
        raise ValueError(f"array {name!r} is not consistent: {dtype!r:.99}, {shape!r:.99}, {planes!r:.99}")
    return math.prod(shape) * np.dtype(dtype).itemsize


def _array(archive: zipfile.ZipFile, name: str, dtype: str, shape: list[int], planes: bool) -> NDArray[Any]:
    """An array of exactly the bytes that the header says: a stream that is longer is not read to its end."""
    size, inflate = _size(name, dtype, shape, planes), zlib.decompressobj()
    data = np.frombuffer(inflate.decompress(archive.read(f"{name}.z"), size + 1), np.uint8)
    if len(data) != size or not inflate.eof or inflate.unused_data:
        raise ValueError(f"array {name!r} is not consistent: {dtype}, {shape}, and not as many bytes")
    if dtype == "|b1" and data.max(initial=0) > 1:
        raise ValueError(f"array {name!r} is not consistent: a truth value is neither 0 nor 1")
    if planes and size:
        data = data.reshape(-1, shape[0]).T
    # a copy: compiled code wants arrays that are aligned and may be written to
    array = np.array(data, order="C").view(dtype).reshape(shape)
    return array.astype(array.dtype.newbyteorder("="), copy=False)
