"""Archive: a file of arrays and a JSON header that is checked byte for byte before it is believed.

The file is a zip without compression:

- ``boostbp.json``, the first member: ``{"format": "boostbp", "kind": "model", "version": 1, "boostbp":
  the version that wrote it, "arrays": the names of the arrays, "content": ...}`` in UTF-8;
- ``NAME.npy`` for each array, in numpy's own format without objects, little-endian, in C order;
- as the comment of the zip, the file's last 79 bytes: ``boostbp sha256:`` and the SHA-256, in
  hexadecimal digits, of all bytes before these digits.

So ``numpy.load(path)["NAME"]`` reads an array, any zip program the header, and a change of any byte is
noticed. First member and comment stay where they are in every version to come. The same content
gives the same bytes.

A file may come from a stranger, and its checksum says nothing about who wrote it. Nothing in it is executed; its
members must fill it without a gap or an overlap, so that it cannot take more memory than it has bytes; and whatever
its reader stumbles over is a ValueError (see `load`).
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import zipfile
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import version as version_of
from typing import IO, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from boostbp.atomic_write import atomic_write

__all__ = ["Archive", "Arrays", "MismatchError", "from_bytes", "load", "read", "take", "to_bytes", "write"]

Arrays = dict[str, NDArray[Any]]
T = TypeVar("T")

_HEADER = "boostbp.json"
_SEAL = b"boostbp sha256:"
_DIGITS = 64
_NAME_AT = 30  # where a zip holds the name of its first member
_DTYPES = frozenset(("<f8", "<i8", "<i4", "<u4", "|u1", "|b1"))
_LOCAL, _CENTRAL, _END = 30, 46, 22  # bytes of a zip's records before their names and comments
# The header of an array as numpy writes it; numpy's own reader hands it to Python's parser.
_NPY = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '([<|][a-z]\d)', 'fortran_order': False, "
    rb"'shape': \(((?:\d{1,19}, ?)*(?:\d{1,19})?)\), \} *\n",
    re.DOTALL,
)


class Archive(NamedTuple):
    """What a file holds: plain values, and arrays by name."""

    content: Any
    arrays: Arrays


def write(
    path: str | os.PathLike[str], *, kind: str, version: int, content: Any, arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Write a file atomically, beside its place and renamed: whoever reads finds the old file or the new one.

    Parameters
    ----------
    kind : str
        What the file is, such as "model".
    version : int
        Version of this kind's content.
    content : dict, list, str, int, finite float, bool or None
        Nested as JSON may be.
    arrays : mapping of str to array
        float64, int64, int32, uint32, uint8 or bool.

    Raises
    ------
    OSError
        If the file cannot be written; what was there before is untouched. A link is followed, a file that is replaced
        keeps its permissions, and a pipe or device is refused.
    """
    text = _header(kind, version, content, arrays)
    with atomic_write(path) as part, open(part, "w+b") as file:
        _write_zip(file, text, arrays)
        file.flush()
        os.fsync(file.fileno())  # the name must not reach the disk before the bytes


def to_bytes(*, kind: str, version: int, content: Any, arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """The bytes of the file that `write` would write."""
    file = io.BytesIO()
    _write_zip(file, _header(kind, version, content, arrays), arrays)
    return file.getvalue()


def _header(kind: str, version: int, content: Any, arrays: Iterable[str]) -> str:
    header = {
        "format": "boostbp",
        "kind": kind,
        "version": version,
        "boostbp": version_of("boostbp"),
        "arrays": list(arrays),
        "content": content,
    }
    return json.dumps(header, allow_nan=False, ensure_ascii=False, indent=1)


def _write_zip(file: IO[bytes], text: str, arrays: Mapping[str, NDArray[Any]]) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        # a bare ZipInfo has a fixed date
        archive.writestr(zipfile.ZipInfo(_HEADER), text.encode("utf-8", "surrogatepass"))
        for name, array in arrays.items():
            little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
            if little.dtype.str not in _DTYPES:
                raise TypeError(f"array {name!r} is {array.dtype}, which the format does not hold")
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, little.reshape(array.shape), version=(1, 0), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), buffer.getbuffer())
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


def read(path: str | os.PathLike[str], *, kind: str, version: int, oldest: int = 1) -> Archive:
    """Read a file that `write` wrote, without a look at what it says.

    Parameters
    ----------
    kind : str
        What the file must be.
    version, oldest : int
        The latest and the earliest version that the caller understands.

    Raises
    ------
    ValueError
        If the file is foreign, truncated, corrupted, of another kind or of another version.
    OSError
        If it cannot be read.
    """
    return load(path, Archive, kind=kind, version=version, oldest=oldest)


def load(
    path: str | os.PathLike[str], build: Callable[[Any, Arrays], T], *, kind: str, version: int, oldest: int = 1
) -> T:
    """Read a file and build what it describes.

    Parameters
    ----------
    build : callable
        ``build(content, arrays)``, which takes out of `arrays` all that it uses (see `take`) or gives them on as
        they are. Whatever it raises is the file's fault, and a ValueError.
    kind, version, oldest
        As of `read`.

    Raises
    ------
    ValueError
        If the file is foreign, truncated, corrupted, of another kind or of another version, or does not describe what
        is to be built.
    OSError
        If it cannot be read.
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
    """Take an array out of those of a file.

    Parameters
    ----------
    shape : tuple of int or None
        None: any length.

    Raises
    ------
    ValueError
        If it is not there, or is of another type or shape.
    """
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
        expected = [_HEADER, *(f"{array}.npy" for array in header["arrays"])]
        if [member.filename for member in members] != expected or len(set(expected)) < len(expected):
            raise ValueError("its members are not those that its header names")
        return Archive(header["content"], {array: _array(archive, array) for array in header["arrays"]})


def _check_members(members: list[zipfile.ZipInfo], size: int) -> None:
    """Refuse a zip of `size` bytes whose members do not lie one behind the other, each byte of it in one record."""
    at = 0
    for member in members:
        if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & ~0x800:  # the flag of names in UTF-8
            raise ValueError("a member is compressed or encrypted")
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


def _array(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    """An array of exactly the bytes there are: a header that lies allocates nothing."""
    data = archive.read(f"{name}.npy")
    header = _NPY.match(data)
    if header is None or header.end() != 10 + int.from_bytes(data[8:10], "little"):
        raise ValueError(f"array {name!r} has no header of numpy's format 1.0 for plain numbers")
    dtype, begin = np.dtype(header[1].decode()), header.end()
    shape = tuple(int(size) for size in header[2].split(b",") if size.strip())
    if dtype.str not in _DTYPES or math.prod(shape) * dtype.itemsize != len(data) - begin:
        raise ValueError(f"array {name!r} is not consistent: {dtype.str}, {shape}, {len(data) - begin} bytes")
    if dtype.kind == "b" and np.frombuffer(data, np.uint8, offset=begin).max(initial=0) > 1:
        raise ValueError(f"array {name!r} is not consistent: a truth value is neither 0 nor 1")
    # a copy: compiled code wants arrays that are aligned and may be written to
    return np.frombuffer(data, dtype, offset=begin).reshape(shape).astype(dtype.newbyteorder("="))
