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
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import zipfile
from collections.abc import Mapping
from importlib.metadata import version as version_of
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boostbp.aside import aside

__all__ = ["Archive", "from_bytes", "read", "to_bytes", "write"]

Arrays = Mapping[str, NDArray[Any]]

_HEADER = "boostbp.json"
_SEAL = b"boostbp sha256:"
_DIGITS = 64
_NAME_AT = 30  # where a zip holds the name of its first member
_DTYPES = frozenset(("<f8", "<i8", "<i4", "<u4", "|u1", "|b1"))
_MOST_HEADER = 10_000  # bytes of the header of an array


class Archive(NamedTuple):
    """What a file holds: plain values, and arrays by name."""

    content: Any
    arrays: dict[str, NDArray[Any]]


def write(path: str | os.PathLike[str], *, kind: str, version: int, content: Any, arrays: Arrays) -> None:
    """Write a file aside, in the same folder, and rename it: whoever reads finds the old file or the new one.

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
        If the file cannot be written; what was there before is untouched.
    """
    text = _header(kind, version, content, arrays)
    with aside(Path(path)) as part, open(part, "w+b") as file:
        _write_zip(file, text, arrays)
        file.flush()
        os.fsync(file.fileno())  # the name must not reach the disk before the bytes


def to_bytes(*, kind: str, version: int, content: Any, arrays: Arrays) -> bytes:
    """The bytes of the file that `write` would write."""
    file = io.BytesIO()
    _write_zip(file, _header(kind, version, content, arrays), arrays)
    return file.getvalue()


def _header(kind: str, version: int, content: Any, arrays: Arrays) -> str:
    header = {
        "format": "boostbp",
        "kind": kind,
        "version": version,
        "boostbp": version_of("boostbp"),
        "arrays": list(arrays),
        "content": content,
    }
    return json.dumps(header, allow_nan=False, ensure_ascii=False, indent=1)


def _write_zip(file: IO[bytes], text: str, arrays: Arrays) -> None:
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


def read(path: str | os.PathLike[str], *, kind: str, version: int) -> Archive:
    """Read a file that `write` wrote.

    Parameters
    ----------
    kind : str
        What the file must be.
    version : int
        The latest version that the caller understands.

    Raises
    ------
    ValueError
        If the file is foreign, truncated, corrupted, of another kind or of a later version.
    OSError
        If it cannot be read.
    """
    with open(path, "rb") as file:
        data = file.read()
    return from_bytes(data, str(path), kind=kind, version=version)


def from_bytes(data: bytes, name: str, *, kind: str, version: int) -> Archive:
    """Read the bytes of such a file: as `read`, with a name for the errors."""
    _check_seal(data, name)
    try:
        return _open(data, name, kind, version)
    except (zipfile.BadZipFile, KeyError, TypeError, UnicodeDecodeError, RecursionError, NotImplementedError) as error:
        raise ValueError(f"{name!r} is not consistent: {error}.") from error


def _check_seal(data: bytes, name: str) -> None:
    magic = data[_NAME_AT : _NAME_AT + len(_HEADER)]
    if data[:4] != b"PK\x03\x04" or magic != _HEADER.encode():
        raise ValueError(f"{name!r} is not a file of boostbp: its first bytes are {data[:4]!r}.")
    if data[-_DIGITS - len(_SEAL) : -_DIGITS] != _SEAL:
        raise ValueError(f"{name!r} is truncated or was changed: it does not end in its checksum. Get a new copy.")
    if hashlib.sha256(memoryview(data)[:-_DIGITS]).hexdigest().encode() != data[-_DIGITS:]:
        raise ValueError(f"{name!r} is corrupted: its bytes do not have the checksum that it states. Get a new copy.")


def _open(data: bytes, name: str, kind: str, version: int) -> Archive:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        if any(member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 1 for member in members):
            raise ValueError(f"{name!r} is not consistent: a member is compressed or encrypted.")
        text = archive.read(_HEADER).decode("utf-8", "surrogatepass")
        header = json.loads(text, parse_constant=_refuse)
        if header["format"] != "boostbp" or header["kind"] != kind:
            raise ValueError(f"{name!r} is a {header['kind']} file of {header['format']}, not a {kind} of boostbp.")
        if type(header["version"]) is not int or header["version"] > version:
            raise ValueError(
                f"{name!r} has version {header['version']} of the {kind} format and was written by boostbp "
                f"{header['boostbp']}; this boostbp reads up to version {version}: update it."
            )
        expected = [_HEADER, *(f"{array}.npy" for array in header["arrays"])]
        if [member.filename for member in members] != expected or len(set(expected)) < len(expected):
            raise ValueError(f"{name!r} is not consistent: its members are not those that its header names.")
        return Archive(header["content"], {array: _array(archive, array) for array in header["arrays"]})


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not a value of JSON.")


def _array(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    """An array of exactly the bytes there are: a header that lies allocates nothing."""
    data = archive.read(f"{name}.npy")
    stream = io.BytesIO(data)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError(f"array {name!r} has another version of numpy's format than 1.0.")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream, max_header_size=_MOST_HEADER)
    begin = stream.tell()
    if dtype.str not in _DTYPES or fortran or math.prod(shape) * dtype.itemsize != len(data) - begin:
        raise ValueError(f"array {name!r} is not consistent: {dtype.str}, {shape}, {len(data) - begin} bytes.")
    if dtype.kind == "b" and np.frombuffer(data, np.uint8, offset=begin).max(initial=0) > 1:
        raise ValueError(f"array {name!r} is not consistent: a truth value is neither 0 nor 1.")
    # a copy: compiled code wants arrays that are aligned and may be written to
    return np.frombuffer(data, dtype, offset=begin).reshape(shape).astype(dtype.newbyteorder("="))
