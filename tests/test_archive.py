"""Archives: the documented format, and the refusal of everything else."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import tracemalloc
import zipfile
import zlib

import numpy as np
import pytest

from boostbp import archive

ARRAYS = {
    "reals": np.array([[0.1, np.nan, -0.0], [np.inf, 5e-324, 1.0]]),
    "wide": np.array([-(2**63), 2**63 - 1]),
    "narrow": np.array([-1, 7], np.int32),
    "bits": np.array([2**32 - 1], np.uint32),
    "leaf": np.array([[3], [255]], np.uint8),
    "truth": np.array([True, False]),
    "none": np.empty((0, 4)),
    "point": np.array(1.5),
}
ARRAY = ["<f8", [2], False]
HEADER = {"format": "boostbp", "kind": "model", "version": 1, "boostbp": "9", "arrays": {"x": ARRAY}, "content": None}


@pytest.fixture(params=[False, True], ids=["plain", "compressed"])
def path(tmp_path, request):
    where, content = tmp_path / "file", {"text": "ä\ud800", "list": [1, None]}
    archive.write(where, kind="model", version=1, content=content, arrays=ARRAYS, compress=request.param)
    return where


def read(path):
    return archive.load(path, archive.Archive, kind="model", version=1)


def read_bytes(data):
    return archive.from_bytes(bytes(data), "file", archive.Archive, kind="model", version=1)


def packed(array):
    return zlib.compress(np.ascontiguousarray(array).tobytes())


def saying(*facts, **more):
    """The header of a file with one array, of which it says this."""
    return json.dumps(HEADER | {"arrays": {"x": list(facts)}} | more)


def forge(path, members, compression=zipfile.ZIP_STORED):
    """A file with a valid checksum, made from the description of the format alone."""
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, data in members:
            file.writestr(name, data)
        file.comment = b"boostbp sha256:" + b"0" * 64
    data = path.read_bytes()[:-64]
    path.write_bytes(data + hashlib.sha256(data).hexdigest().encode())


def test_content_and_arrays_come_back(path):
    content, arrays = read(path)
    assert content == {"text": "ä\ud800", "list": [1, None]}
    assert list(arrays) == list(ARRAYS)
    for name, array in arrays.items():
        assert (array.dtype, array.shape) == (ARRAYS[name].dtype, ARRAYS[name].shape)
        assert array.tobytes() == ARRAYS[name].tobytes()
        assert array.flags.c_contiguous
        assert array.flags.writeable
        assert array.flags.aligned


def test_other_programs_read_it(path):
    with zipfile.ZipFile(path) as file:
        assert file.testzip() is None
        header = json.loads(file.read("boostbp.json").decode("utf-8", "surrogatepass"))
        dtype, shape, planes = header["arrays"]["reals"]
        data = np.frombuffer(zlib.decompress(file.read("reals.z")), np.uint8)
    data = data.reshape(-1, shape[0]).T if planes else data
    np.testing.assert_array_equal(np.frombuffer(data.tobytes(), dtype).reshape(shape), ARRAYS["reals"])


@pytest.mark.parametrize("planes", [False, True])
def test_a_file_made_from_the_description_is_read(tmp_path, planes):
    array = np.array([[0.1, -2.0], [np.pi, 1e300], [np.inf, 0.0]])
    of_rows = [row.tobytes() for row in array]
    data = b"".join(bytes(row[k] for row in of_rows) for k in range(16)) if planes else b"".join(of_rows)
    forge(tmp_path / "file", [("boostbp.json", saying("<f8", [3, 2], planes)), ("x.z", zlib.compress(data))])
    np.testing.assert_array_equal(read(tmp_path / "file").arrays["x"], array)


def test_same_content_gives_same_bytes(path, tmp_path):
    content, arrays = read(path)
    ways = [tmp_path / "plain", tmp_path / "small"]
    for compress, way in enumerate(ways):
        archive.write(way, kind="model", version=1, content=content, arrays=arrays, compress=bool(compress))
    assert path.read_bytes() in [way.read_bytes() for way in ways]


def test_compression_makes_small_files_of_numbers_that_do_not_repeat(tmp_path):
    rng, sizes = np.random.default_rng(0), []
    arrays = {"x": rng.normal(size=10_000), "short": rng.integers(0, 256, (10_000, 2)) / 256, "i": np.arange(10_000)}
    for compress in (False, True):
        archive.write(tmp_path / "file", kind="model", version=1, content=None, arrays=arrays, compress=compress)
        sizes.append((tmp_path / "file").stat().st_size)
        for name, array in read(tmp_path / "file").arrays.items():
            assert array.tobytes() == arrays[name].tobytes()
    assert sizes[0] > sum(array.nbytes for array in arrays.values())
    assert sizes[1] < 75_000 + 30_000 + 5_000  # noise of 53 bits; of 8 bits and an exponent; what follows a rule


def test_what_would_be_too_small_to_be_read_is_not_compressed(tmp_path):
    arrays = {"x": np.zeros(1_000_000)}
    archive.write(tmp_path / "file", kind="model", version=1, content=None, arrays=arrays, compress=True)
    assert not read(tmp_path / "file").arrays["x"].any()


def test_any_order_and_byte_order_of_an_array_is_stored(tmp_path):
    array = np.arange(6.0).reshape(2, 3)
    turned = np.asfortranarray(array).astype(">f8")
    archive.write(tmp_path / "file", kind="model", version=1, content=None, arrays={"x": turned})
    got = read(tmp_path / "file").arrays["x"]
    np.testing.assert_array_equal(got, array)
    assert got.dtype == np.float64


def test_change_of_any_byte_is_noticed(path):
    data = path.read_bytes()
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 1 << place % 8
        with pytest.raises(ValueError, match=r"is not a file of boostbp|was changed|is corrupted"):
            read_bytes(changed)
    path.write_bytes(changed)
    with pytest.raises(ValueError, match="is corrupted"):
        read(path)


def test_truncated_or_longer_file_is_refused(path):
    data = path.read_bytes()
    for length in range(len(data)):
        with pytest.raises(ValueError, match="is not a file of boostbp" if length < 42 else "truncated"):
            read_bytes(data[:length])
    for other, says in (
        (data[:7], "is not a file of boostbp"),
        (data[:-1], "truncated"),
        (data + b"\n", "was changed"),
    ):
        path.write_bytes(other)
        with pytest.raises(ValueError, match=says):
            read(path)


@pytest.mark.parametrize(
    "foreign",
    [b"", b"a,b\n1,2\n", pickle.dumps({"a": 1}), packed(np.zeros(9)), b"\0" * 5000],
    ids=["empty", "csv", "pickle", "zlib", "zeros"],
)
def test_foreign_file_is_refused(path, foreign):
    path.write_bytes(foreign)
    with pytest.raises(ValueError, match="is not a file of boostbp"):
        read(path)


def test_foreign_zip_is_refused(path):
    np.savez(path.with_suffix(".npz"), a=np.zeros(3))
    with pytest.raises(ValueError, match="is not a file of boostbp"):
        read(path.with_suffix(".npz"))


def test_later_version_and_other_kind_are_refused(path):
    archive.write(path, kind="model", version=2, content=None, arrays={})
    with pytest.raises(ValueError, match=r"has version 2 .* reads up to version 1: update"):
        read(path)
    archive.write(path, kind="checkpoint", version=1, content=None, arrays={})
    with pytest.raises(ValueError, match="is a checkpoint file of boostbp, not a model"):
        read(path)


X = packed(np.zeros(2))


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([("boostbp.json", "{")], "Expecting"),
        ([("boostbp.json", "[]")], "is not consistent"),
        ([("boostbp.json", "[" * 100_000)], "is not consistent"),
        ([("boostbp.json", '{"format": NaN}')], "NaN"),
        ([("boostbp.json", b"\xff\xfe")], "decode"),
        ([("boostbp.json", json.dumps(HEADER))], "its members are not those"),
        ([("boostbp.json", json.dumps(HEADER)), ("y.z", X)], "its members are not those"),
        ([("boostbp.json", json.dumps(HEADER | {"arrays": ["x"]})), ("x.z", X)], "is not consistent"),
        ([("boostbp.json", json.dumps(HEADER | {"version": "1"})), ("x.z", X)], "version 1"),
        ([("boostbp.json", saying("<f8", [2], False)), ("x.z", b"")], "not as many bytes"),
        ([("boostbp.json", saying("<f8", [2], False)), ("x.z", bytes(16))], "unknown compression method"),
        ([("boostbp.json", saying("<f8", [2], False)), ("x.z", X + b"0")], "not as many bytes"),
        ([("boostbp.json", saying("<f8", [2], False)), ("x.z", X[:-1])], "not as many bytes"),
        ([("boostbp.json", saying("<f8", [2], False)), ("x.z", X[:-1] + b"0")], "incorrect data check"),
        ([("boostbp.json", saying("<f8", [1], False)), ("x.z", X)], "not as many bytes"),
        ([("boostbp.json", saying("<f8", [3], False)), ("x.z", X)], "not as many bytes"),
        ([("boostbp.json", saying("<c16", [1], False)), ("x.z", X)], "array 'x' is not consistent: '<c16'"),
        ([("boostbp.json", saying("|O", [2], False)), ("x.z", X)], r"array 'x' is not consistent: '\|O'"),
        ([("boostbp.json", saying(">f8", [2], False)), ("x.z", X)], "array 'x' is not consistent: '>f8'"),
        ([("boostbp.json", saying("<f8", [-2], False)), ("x.z", X)], r"array 'x' is not consistent: .*\[-2\]"),
        ([("boostbp.json", saying("<f8", [True, 2], False)), ("x.z", X)], "array 'x' is not consistent"),
        ([("boostbp.json", saying("<f8", 2, False)), ("x.z", X)], "array 'x' is not consistent"),
        ([("boostbp.json", saying("<f8", [2], 1)), ("x.z", X)], "array 'x' is not consistent"),
        ([("boostbp.json", saying("<f8", [], True)), ("x.z", packed(np.zeros(1)))], "array 'x' is not consistent"),
        ([("boostbp.json", saying("<f8", [2])), ("x.z", X)], "is not consistent"),
        ([("boostbp.json", saying("<f8", [0, 10**20], False)), ("x.z", zlib.compress(b""))], "is not consistent"),
        ([("boostbp.json", saying("|b1", [1], False)), ("x.z", packed(np.array([2], np.uint8)))], "truth value"),
        ([("boostbp.json", saying("<f8", [2**60], False)), ("x.z", X)], "hold 9223372036854775808 bytes, more than 64"),
    ],
)
def test_forged_file_is_refused(tmp_path, members, message):
    forge(tmp_path / "file", members)
    with pytest.raises(ValueError, match=message):
        read(tmp_path / "file")


@pytest.mark.parametrize("stated", [1, 500_000, 1 << 26])
def test_bomb_is_refused_and_takes_no_memory(tmp_path, stated):
    """64 MB of zeros in 64 kB, whatever the header says of them."""
    bomb = zlib.compress(bytes(1 << 26), 9)
    forge(tmp_path / "file", [("boostbp.json", saying("|u1", [stated], False)), ("x.z", bomb)])
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"not as many bytes|more than 64 times its own"):
            read(tmp_path / "file")
        assert tracemalloc.get_traced_memory()[1] < 5 << 20
    finally:
        tracemalloc.stop()


def test_member_that_the_zip_compresses_is_refused(tmp_path):
    forge(tmp_path / "file", [("boostbp.json", saying("<f8", [2], False)), ("x.z", X)], zipfile.ZIP_DEFLATED)
    with pytest.raises(ValueError, match="compressed by the zip"):
        read(tmp_path / "file")


def test_overlapping_members_are_refused(tmp_path):
    """Two members that state the same bytes would take their memory twice."""
    path, header = tmp_path / "file", HEADER | {"arrays": {"x": ARRAY, "y": ARRAY}}
    forge(path, [("boostbp.json", json.dumps(header)), ("x.z", X), ("y.z", X)])
    assert list(read(path).arrays) == ["x", "y"]
    data = bytearray(path.read_bytes())
    begin = int.from_bytes(data[-85:-81], "little")  # of the directory, in the zip's last record
    first, second = (data.index(name, begin) - 46 for name in (b"x.z", b"y.z"))
    data[second + 42 : second + 46] = data[first + 42 : first + 46]
    data[-64:] = hashlib.sha256(data[:-64]).hexdigest().encode()
    path.write_bytes(data)
    with pytest.raises(ValueError, match="its members overlap"):
        read(path)


@pytest.mark.parametrize("more", ["before", "between", "comment"])
def test_bytes_that_belong_to_no_member_are_refused(path, more):
    data = path.read_bytes()
    at = {"before": 0, "between": data.index(b"PK\x03\x04", 4), "comment": len(data) - 79}[more]
    data = data[:at] + b"\0" * 50 + data[at:-64]
    path.write_bytes(data + hashlib.sha256(data).hexdigest().encode())
    with pytest.raises(ValueError, match="is not a file of boostbp" if more == "before" else "is not consistent"):
        read(path)


@pytest.mark.parametrize("error", [TypeError("a"), KeyError("b"), RecursionError(), EOFError(), SyntaxError("c")])
def test_whatever_a_file_makes_its_reader_do_is_a_value_error(path, error):
    def build(content, arrays):
        raise error

    with pytest.raises(ValueError, match="is not consistent"):
        archive.load(path, build, kind="model", version=1)


def test_arrays_are_taken_by_name_type_and_shape():
    arrays = {"x": np.zeros((2, 3)), "y": np.zeros(2, np.int32)}
    assert archive.take(arrays, "x", float, (None, 3)).shape == (2, 3)
    for name, dtype, shape in (("x", float, (2, 3)), ("y", "i8", (2,)), ("y", "i4", (3,))):
        with pytest.raises(ValueError, match=f"'{name}' is missing|{name} is int32"):
            archive.take(dict(arrays), name, dtype, shape)


def test_foreign_file_without_an_end_is_refused_at_once():
    if not os.path.exists("/dev/zero"):
        pytest.skip("needs /dev/zero")
    with pytest.raises(ValueError, match="is not a file of boostbp"):
        read("/dev/zero")


def test_failed_write_leaves_the_old_file(path, monkeypatch):
    before = path.read_bytes()
    with pytest.raises(TypeError, match="array 'x' is object"):
        archive.write(path, kind="model", version=1, content=None, arrays={"x": np.array([print], object)})
    with pytest.raises(ValueError, match="not JSON compliant"):
        archive.write(path, kind="model", version=1, content=np.nan, arrays={})

    def fail(file):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        archive.write(path, kind="model", version=1, content=None, arrays={})
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == ["file"]
