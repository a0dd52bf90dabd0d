"""Archives: the documented format, and the refusal of everything else."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import zipfile

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
HEADER = {"format": "boostbp", "kind": "model", "version": 1, "boostbp": "9", "arrays": ["x"], "content": None}


@pytest.fixture
def path(tmp_path):
    where = tmp_path / "file"
    archive.write(where, kind="model", version=1, content={"text": "ä\ud800", "list": [1, None]}, arrays=ARRAYS)
    return where


def read(path):
    return archive.read(path, kind="model", version=1)


def npy(array, **options):
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, **options)
    return buffer.getvalue()


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
    with np.load(path, allow_pickle=False) as held:
        np.testing.assert_array_equal(held["reals"], ARRAYS["reals"])
    with zipfile.ZipFile(path) as file:
        assert file.testzip() is None
        assert json.loads(file.read("boostbp.json").decode("utf-8", "surrogatepass"))["kind"] == "model"


def test_a_file_made_from_the_description_is_read(tmp_path):
    forge(tmp_path / "file", [("boostbp.json", json.dumps(HEADER)), ("x.npy", npy(np.arange(3.0)))])
    np.testing.assert_array_equal(read(tmp_path / "file").arrays["x"], np.arange(3.0))


def test_same_content_gives_same_bytes(path, tmp_path):
    content, arrays = read(path)
    archive.write(tmp_path / "again", kind="model", version=1, content=content, arrays=arrays)
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


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
        path.write_bytes(changed)
        with pytest.raises(ValueError, match=r"is not a file of boostbp|was changed|is corrupted"):
            read(path)


def test_truncated_or_longer_file_is_refused(path):
    data = path.read_bytes()
    for length in range(len(data)):
        path.write_bytes(data[:length])
        with pytest.raises(ValueError, match="is not a file of boostbp" if length < 42 else "truncated"):
            read(path)
    path.write_bytes(data + b"\n")
    with pytest.raises(ValueError, match="was changed"):
        read(path)


@pytest.mark.parametrize(
    "foreign",
    [b"", b"a,b\n1,2\n", pickle.dumps({"a": 1}), npy(np.zeros(9)), b"\0" * 5000],
    ids=["empty", "csv", "pickle", "npy", "zeros"],
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


class Bomb:
    """An object that leaves a mark when it is unpickled."""

    def __init__(self, mark):
        self.mark = str(mark)

    def __reduce__(self):
        return os.mkdir, (self.mark,)


def test_pickled_array_is_refused_and_not_executed(tmp_path):
    mark = tmp_path / "mark"
    data = npy(np.array([Bomb(mark)], object), allow_pickle=True)
    forge(tmp_path / "file", [("boostbp.json", json.dumps(HEADER)), ("x.npy", data)])
    with pytest.raises(ValueError, match="array 'x'"):
        read(tmp_path / "file")
    assert not mark.exists()


def huge():
    """An array that states 8 exabytes and has 8 bytes."""
    return npy(np.zeros(1)).replace(b"(1,), }" + b" " * 20, b"(1152921504606846976,), }"[:27].ljust(27))


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([("boostbp.json", "{")], "Expecting"),
        ([("boostbp.json", "[]")], "is not consistent"),
        ([("boostbp.json", "[" * 100_000)], "is not consistent"),
        ([("boostbp.json", '{"format": NaN}')], "NaN"),
        ([("boostbp.json", b"\xff\xfe")], "decode"),
        ([("boostbp.json", json.dumps(HEADER))], "its members are not those"),
        ([("boostbp.json", json.dumps(HEADER)), ("x.npy", b"")], "no header of numpy's format"),
        ([("boostbp.json", json.dumps(HEADER)), ("y.npy", npy(np.zeros(2)))], "its members are not those"),
        ([("boostbp.json", json.dumps(HEADER)), ("x.npy", npy(np.zeros(2)) + b"0")], "not consistent"),
        ([("boostbp.json", json.dumps(HEADER)), ("x.npy", npy(np.zeros(2))[:-1])], "not consistent"),
        ([("boostbp.json", json.dumps(HEADER)), ("x.npy", npy(np.zeros(2, complex)))], "no header of numpy's format"),
        ([("boostbp.json", json.dumps(HEADER)), ("x.npy", npy(np.zeros((2, 2), order="F")))], "not consistent"),
        (
            [("boostbp.json", json.dumps(HEADER)), ("x.npy", npy(np.zeros(2), version=(2, 0)))],
            "no header of numpy's format",
        ),
        ([("boostbp.json", json.dumps(HEADER)), ("x.npy", npy(np.array([2], np.uint8).view(bool)))], "truth value"),
        ([("boostbp.json", json.dumps(HEADER)), ("x.npy", huge())], r"1152921504606846976,\), 8 bytes"),
        ([("boostbp.json", json.dumps(HEADER | {"version": "1"})), ("x.npy", npy(np.zeros(2)))], "version 1"),
    ],
)
def test_forged_file_is_refused(tmp_path, members, message):
    forge(tmp_path / "file", members)
    with pytest.raises(ValueError, match=message):
        read(tmp_path / "file")


def test_compressed_file_is_refused(tmp_path):
    members = [("boostbp.json", json.dumps(HEADER)), ("x.npy", npy(np.zeros(1000)))]
    forge(tmp_path / "file", members, zipfile.ZIP_DEFLATED)
    with pytest.raises(ValueError, match="compressed"):
        read(tmp_path / "file")


def test_overlapping_members_are_refused(tmp_path):
    """Two members that state the same bytes would take their memory twice."""
    path, header = tmp_path / "file", HEADER | {"arrays": ["x", "y"]}
    forge(path, [("boostbp.json", json.dumps(header)), ("x.npy", npy(np.zeros(9))), ("y.npy", npy(np.zeros(9)))])
    assert list(read(path).arrays) == ["x", "y"]
    data = bytearray(path.read_bytes())
    begin = int.from_bytes(data[-85:-81], "little")  # of the directory, in the zip's last record
    first, second = (data.index(name, begin) - 46 for name in (b"x.npy", b"y.npy"))
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
