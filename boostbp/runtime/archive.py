"""Archives: files of arrays and a JSON header, with a checksum that is verified before anything else is read.

The file is a zip like those of `numpy.savez_compressed`:

- ``boostbp.json``, the first member, not compressed: ``{"format": "boostbp", "kind": "model", "version": 1,
  "boostbp": the version that wrote it, "content": ...}`` in UTF-8;
- ``NAME.npy`` for each array, little-endian and in C order, deflated or not;
- the comment of the zip, the last 79 bytes of the file: ``boostbp sha256:`` and the SHA-256, in hexadecimal digits, of
  all bytes before these digits.

Any zip program reads the header, `numpy.load` reads the arrays, and a change of any byte is detected. First member and
comment keep their places in all future versions. The same content gives the same bytes with the same release of zlib.

A file may come from an untrusted source, and the checksum does not authenticate it. Nothing in it is executed or
unpickled, and no member is extracted to a path. The stated sizes of the members may sum to at most `MAX_RATIO` times
the size of the file. This is checked before a member is read, and no more than the stated size is decompressed, so a
small file takes little memory. All faults of a file are ValueErrors with its name (see `read`).
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import stat
import zipfile
from collections.abc import Callable
from importlib.metadata import version as version_of
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.lib import format as npy
from numpy.typing import DTypeLike, NDArray

from boostbp.runtime.atomic_write import atomic_write
from boostbp.runtime.messages import brief
from boostbp.runtime.npy_header import read_header

Arrays = dict[str, NDArray[Any]]
T = TypeVar("T")
Build = Callable[[Any, Arrays], T]

_HEADER = "boostbp.json"
_SEAL = b"boostbp sha256:"
_DIGITS = 64
_NAME_AT = 30  # place of the name of the first member in a zip
_DTYPES = frozenset(("<f8", "<i8", "<i4", "<u4", "|u1", "|b1"))
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # others may take gigabytes to decompress a few bytes
MAX_RATIO = 64  # limit on the bytes of members per byte of the file; models have 2 to 10


class Archive(NamedTuple):
    """Content of a file: plain values, and arrays by name."""

    content: Any
    arrays: Arrays


def write(
    path: str | os.PathLike[str], *, kind: str, version: int, content: object, arrays: Arrays, compress: bool = False
) -> None:
    """Write a file atomically; see `atomic_write`, also for the OSError that it raises.

    `kind` is the kind of file, such as "model", and `version` that of its content, which has JSON types. Arrays are
    float64, int64, int32, uint32, uint8 or bool. Compression takes a second for some 30 MB.
    """
    with atomic_write(path) as part, open(part, "w+b") as file:
        _write(file, _header(kind, version, content), arrays, compress=compress)


def to_bytes(*, kind: str, version: int, content: object, arrays: Arrays, compress: bool = False) -> bytes:
    """Return the bytes of the file that `write` would write."""
    file = io.BytesIO()
    _write(file, _header(kind, version, content), arrays, compress=compress)
    return file.getvalue()


def _header(kind: str, version: int, content: object) -> bytes:
    writer = version_of("boostbp")
    header = {"format": "boostbp", "kind": kind, "version": version, "boostbp": writer, "content": content}
    return json.dumps(header, allow_nan=False, ensure_ascii=False, indent=1).encode("utf-8", "surrogatepass")


def _write(file: io.BytesIO | io.BufferedRandom, header: bytes, arrays: Arrays, *, compress: bool) -> None:
    little = {name: np.asarray(array, array.dtype.newbyteorder("<"), order="C") for name, array in arrays.items()}
    for name, array in little.items():
        if array.dtype.str not in _DTYPES:
            raise TypeError(f"array {name!r} is {array.dtype}, which the format does not hold")
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(zipfile.ZipInfo(_HEADER), header)  # a bare ZipInfo has a fixed date
        for name, array in little.items():
            member = zipfile.ZipInfo(f"{name}.npy")
            member.compress_type = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
            with archive.open(member, "w", force_zip64=True) as stream:
                npy.write_array(stream, array, allow_pickle=False)
        archive.comment = _SEAL + b"0" * _DIGITS
        n_bytes = sum(member.file_size for member in archive.infolist())
    if n_bytes > MAX_RATIO * file.tell():  # nearly all zeros, which `read` would refuse
        file.seek(0)
        file.truncate()
        _write(file, header, arrays, compress=False)
        return
    end = file.seek(-_DIGITS, os.SEEK_END)
    file.truncate()
    file.seek(0)
    digest = hashlib.file_digest(file, "sha256").hexdigest()
    file.seek(end)
    file.write(digest.encode())


def read(path: str | os.PathLike[str], build: Build[T], *, kind: str, version: int, oldest: int = 1) -> T:
    """Read a file of a kind, with a version from `oldest` to `version`, and return ``build(content, arrays)``.

    Raises ValueError if the file is foreign, truncated, corrupted, or of another kind or version, and if `build` raises
    any error, or does not remove all arrays that it uses from `arrays` (see `take`). `Archive` is a `build`, too.
    """
    is_of_shell = os.path.realpath(path).startswith(("/proc/", "/dev/fd/"))  # as in: boostbp inspect <(command)
    if stat.S_ISFIFO(os.stat(path).st_mode) and not is_of_shell:
        raise OSError(f"{os.fspath(path)!r} is a named pipe, which may never be written: copy its content into a file.")
    with open(path, "rb") as file:
        data = file.read(_NAME_AT + len(_HEADER))
        _check_magic(data, str(path))  # a foreign file may be large, and a device endless
        data += file.read()
    return from_bytes(data, str(path), build, kind=kind, version=version, oldest=oldest)


def from_bytes(data: bytes, name: str, build: Build[T], *, kind: str, version: int, oldest: int = 1) -> T:
    """Return the result of `build` from the bytes of a file, like `read`; errors name it `name`."""
    _check_magic(data, name)
    if data[-_DIGITS - len(_SEAL) : -_DIGITS] != _SEAL:
        raise ValueError(f"{name!r} is truncated or was changed: it does not end in its checksum. Get a new copy.")
    if hashlib.sha256(memoryview(data)[:-_DIGITS]).hexdigest().encode() != data[-_DIGITS:]:
        raise ValueError(f"{name!r} is corrupted: its bytes do not have the checksum that it states. Get a new copy.")
    try:
        content, arrays = _open(data, name, kind, version, oldest)
        del data  # the arrays are copies
        built = build(content, arrays)
        if arrays and not isinstance(built, Archive):
            raise ValueError(f"it holds arrays that are not used: {', '.join(sorted(arrays))}")
    except (MismatchError, MemoryError):  # memory is bounded by the file, so this is not its fault
        raise
    except Exception as error:  # foreign content may cause any error
        raise ValueError(brief(f"{name!r} is not consistent: {error or type(error).__name__}.")) from error
    return built


def take(arrays: Arrays, name: str, dtype: DTypeLike, shape: tuple[int | None, ...]) -> NDArray[Any]:
    """Remove an array from those of a file and return it, if it has this type and shape, where None is any length."""
    array = arrays.pop(name, None)
    if array is None:
        raise ValueError(f"the array {name!r} is missing")
    fits = array.ndim == len(shape) and all(want in (None, size) for want, size in zip(shape, array.shape, strict=True))
    if array.dtype != dtype or not fits:
        raise ValueError(f"{name} is {array.dtype}, {array.shape}, not {np.dtype(dtype)}, {shape}")
    return array


class MismatchError(ValueError):
    """An intact file of another kind or version than its reader needs."""


def _check_magic(data: bytes, name: str) -> None:
    magic = data[_NAME_AT : _NAME_AT + len(_HEADER)]
    if data[:4] != b"PK\x03\x04" or magic != _HEADER.encode():
        raise ValueError(f"{name!r} is not a file of boostbp: its first bytes are {data[:4]!r}.")


def _open(data: bytes, name: str, kind: str, version: int, oldest: int) -> Archive:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {member.filename: member for member in archive.infolist()}
        if len(members) < len(archive.infolist()):
            raise ValueError("two of its members have one name")
        if any(member.compress_type not in _METHODS for member in members.values()) or members[_HEADER].compress_type:
            raise ValueError("a member is neither stored nor deflated, or its header is not stored")
        n_bytes = sum(member.file_size for member in members.values())
        if n_bytes > MAX_RATIO * len(data):
            raise ValueError(f"it says that its members hold {n_bytes} bytes, more than {MAX_RATIO} times its own")
        text = _bytes(archive, members.pop(_HEADER)).decode("utf-8", "surrogatepass")
        header = json.loads(text, parse_constant=_refuse)
        if header["format"] != "boostbp" or header["kind"] != kind:
            raise MismatchError(f"{name!r} is a {header['kind']} file of {header['format']}, not a {kind} of boostbp.")
        _check_version(name, kind, header["version"], header["boostbp"], version, oldest)
        arrays = {name.removesuffix(".npy"): _array(name, _bytes(archive, member)) for name, member in members.items()}
        return Archive(header["content"], arrays)


def _check_version(name: str, kind: str, version: object, writer: object, latest: int, oldest: int) -> None:
    of_file = f"{name!r} has version {version} of the {kind} format and was written by boostbp {writer}; this boostbp"
    if not isinstance(version, int) or isinstance(version, bool) or version > latest:
        raise MismatchError(f"{of_file} reads up to version {latest}: update it.")
    if version < 1:
        raise ValueError(f"versions count from 1, and it has {version}")
    if version < oldest:
        raise MismatchError(f"{of_file} reads it from version {oldest} on: fit and save it anew.")


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not a value of JSON")


def _bytes(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """Return the bytes of a member; no more than the stated size is decompressed."""
    with archive.open(member) as stream:
        data = stream.read(member.file_size)
    if len(data) != member.file_size:
        raise ValueError(f"{member.filename!r} has fewer bytes than it states")
    return data


def _array(name: str, data: bytes) -> NDArray[Any]:
    """Return the array of a member, whose header must state its exact size."""
    stream = io.BytesIO(data)
    shape, fortran, dtype = read_header(stream)
    body = memoryview(data)[stream.tell() :]
    if dtype.str not in _DTYPES or fortran or math.prod(shape) * dtype.itemsize != len(body):
        raise ValueError(f"{name!r} is not consistent: {dtype}, {shape!r:.99}, and {len(body)} bytes")
    array = np.ndarray(shape, dtype, body)
    if dtype.kind == "b" and array.view(np.uint8).max(initial=0) > 1:
        raise ValueError(f"{name!r} is not consistent: a truth value is neither 0 nor 1")
    # a copy, as the core needs aligned, writable arrays
    return array.astype(dtype.newbyteorder("="))
