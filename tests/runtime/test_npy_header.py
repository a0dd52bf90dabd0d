"""Headers of NumPy's files are read as NumPy reads them, and not parsed unless that takes little memory."""

from __future__ import annotations

import io

import numpy as np
import pytest
from numpy.lib import format as npy

from boostbp.runtime.npy_header import read_header

ARRAYS = [
    np.zeros((2, 3)),
    np.zeros((2, 3), order="F"),
    np.zeros(()),
    np.zeros((0, 4), np.int8),
    np.array(["text"]),
    np.array(["2020-01-01"], "M8[D]"),
    np.zeros(1, "V7"),
    np.zeros(2, [("event", "?"), ("time", "<f8")]),
    np.zeros(2, [("a(b", "<f8", (2, 3)), ("n", [("x", "i4"), ("y", [("z", "u1")])])]),
    np.zeros(2, [(("title", "x"), "f8"), ("it's", "f8"), ("a\\b", "f8"), ('"', "f8")]),
    np.zeros(2, np.dtype({"names": ["a", "b"], "formats": ["u1", "f8"]}, align=True)),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: str(array.dtype))
@pytest.mark.parametrize("version", [(1, 0), (2, 0)])
def test_headers_of_numpy_are_read_as_by_numpy(array, version):
    file = io.BytesIO()
    npy.write_array(file, array, version=version)
    file.seek(0)
    shape, is_fortran, dtype = read_header(file)
    assert (shape, dtype) == (array.shape, array.dtype)
    assert is_fortran == (array.flags.f_contiguous and not array.flags.c_contiguous)
    items = np.frombuffer(file.read(), dtype).reshape(shape, order="F" if is_fortran else "C")
    assert items.tobytes() == array.tobytes()


HEADER = "{{'descr': '<f8', 'fortran_order': False, 'shape': ({},), }}"
CHAINS = [
    HEADER.format("-" * 9000 + "2"),
    HEADER.format("~" * 9000 + "2"),
    HEADER.format("1-" * 4000 + "2"),
    HEADER.format("not " * 2000 + "2"),
    HEADER.format("(" * 4000 + ")" * 4000),
    HEADER.format("2" + "[0]" * 3000),
    HEADER.format("9" * 9000),
    HEADER.format("2 " * 4000),
    HEADER.format("'" * 8999),
    HEADER.format(" " * 20_000 + "2"),
    HEADER.format(9 * "(" + "2," + 9 * ")"),
    "1" + ".a" * 4000,
    "[" * 9000,
    "{1:" * 3000,
]


@pytest.mark.parametrize("text", CHAINS, ids=lambda text: text[:70])
def test_chains_and_nests_are_refused_before_python_parses_them(text):
    file = io.BytesIO(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode())
    with pytest.raises(ValueError, match="its header is not one that NumPy writes: "):
        read_header(file)
