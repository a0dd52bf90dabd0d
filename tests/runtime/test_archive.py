"""Archives: the documented format, and the refusal of everything else."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import tracemalloc
import zipfile
import zlib

import numpy as np
import pytest

from boostbp.runtime import archive

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
HEADER = {"format": "boostbp", "kind": "model", "version": 1, "boostbp": "9", "content": None}


@pytest.fixture(params=[False, True], ids=["plain", "compressed"])
def path(tmp_path, request):
    where, content = tmp_path / "file", {"text": "ä\ud800", "list": [1, None]}
    archive.write(where, kind="model", version=1, content=content, arrays=ARRAYS, compress=request.param)
    return where


def read(path):
    return archive.read(path, archive.Archive, kind="model", version=1)


def read_bytes(data):
    return archive.from_bytes(bytes(data), "file", archive.Archive, kind="model", version=1)


def npy(array):
    """The bytes of an array in a file of numpy."""
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def saying(header, data=bytes(16), version=b"\x01\x00"):
    """The bytes of an array with a header of one's own: a dict as text."""
    text = header.encode()
    return b"\x93NUMPY" + version + len(text).to_bytes(2, "little") + text + data


def describing(descr, shape, *, fortran=False):
    """The header of an array that states this."""
    return f"{{'descr': {descr!r}, 'fortran_order': {fortran}, 'shape': {shape}}}"


def forge(path, members, compression=zipfile.ZIP_STORED):
    """A file with a valid checksum, made from the description of the format alone."""
    with zipfile.ZipFile(path, "w") as file:
        for number, (name, data) in enumerate(members):
            file.writestr(name, data, compression if number else zipfile.ZIP_STORED)
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
    assert header["content"] == {"text": "ä\ud800", "list": [1, None]}
    with np.load(path, allow_pickle=False) as file:
        for name, array in ARRAYS.items():
            assert file[name].dtype == array.dtype
            assert file[name].tobytes() == array.tobytes()


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_file_made_from_the_description_is_read(tmp_path, compression):
    array = np.array([[0.1, -2.0], [np.pi, 1e300], [np.inf, 0.0]])
    forge(tmp_path / "file", [("boostbp.json", json.dumps(HEADER)), ("x.npy", npy(array))], compression)
    np.testing.assert_array_equal(read(tmp_path / "file").arrays["x"], array)


def test_same_content_gives_same_bytes(path, tmp_path):
    content, arrays = read(path)
    ways = [tmp_path / "plain", tmp_path / "small"]
    for compress, way in enumerate(ways):
        archive.write(way, kind="model", version=1, content=content, arrays=arrays, compress=bool(compress))
    assert path.read_bytes() in [way.read_bytes() for way in ways]


def test_compression_makes_small_files(tmp_path):
    sizes, arrays = [], {"x": np.arange(1000.0).repeat(10), "i": np.arange(10_000) % 7}
    for compress in (False, True):
        archive.write(tmp_path / "file", kind="model", version=1, content=None, arrays=arrays, compress=compress)
        sizes.append((tmp_path / "file").stat().st_size)
        for name, array in read(tmp_path / "file").arrays.items():
            assert array.tobytes() == arrays[name].tobytes()
    assert sizes[0] > sum(array.nbytes for array in arrays.values())
    assert sizes[1] < sizes[0] / 10


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
    [b"", b"a,b\n1,2\n", pickle.dumps({"a": 1}), zlib.compress(bytes(9)), b"\0" * 5000],
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


X = npy(np.zeros(2))
HEAD = json.dumps(HEADER)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([("boostbp.json", "{")], "Expecting"),
        ([("boostbp.json", "[]")], "is not consistent"),
        ([("boostbp.json", "[" * 100_000)], "is not consistent"),
        ([("boostbp.json", '{"format": NaN}')], "NaN"),
        ([("boostbp.json", b"\xff\xfe")], "decode"),
        ([("boostbp.json", json.dumps(HEADER | {"version": "1"}))], "version 1"),
        ([("boostbp.json", HEAD), ("x.npy", X), ("x.npy", X)], "two of its members have one name"),
        ([("boostbp.json", HEAD), ("x.npy", b"")], "is not consistent"),
        ([("boostbp.json", HEAD), ("x.npy", bytes(16))], "is not consistent"),
        ([("boostbp.json", HEAD), ("x.npy", X[:40])], "is not consistent"),
        ([("boostbp.json", HEAD), ("x.npy", X + b"0")], "'x.npy' is not consistent: .* 17 bytes"),
        ([("boostbp.json", HEAD), ("x.npy", X[:-1])], "'x.npy' is not consistent: .* 15 bytes"),
        ([("boostbp.json", HEAD), ("x.npy", saying(describing("<f8", (2,)), version=b"\x03\x00"))], "version .3, 0."),
        ([("boostbp.json", HEAD), ("x.npy", saying("{" * 9000))], "its header is not one that NumPy writes"),
        ([("boostbp.json", HEAD), ("x.npy", saying("{'descr': print()}"))], "is not consistent"),
        ([("boostbp.json", HEAD), ("x.npy", saying("[" * 9000))], "is not consistent"),
        ([("boostbp.json", HEAD), ("x.npy", saying(describing("<f8", (2,)) + 50_000 * " "))], "is not consistent"),
        *(
            ([("boostbp.json", HEAD), ("x.npy", saying(text))], "is not consistent")
            for text in (
                describing("<f8", (1,)), describing("<f8", (3,)), describing("<c16", (1,)), describing("|O", (2,)),
                describing(">f8", (2,)), describing("<f8", (-2,)), describing("<f8", (-1, -2)), describing("<f8", 2),
                describing("<f8", (2, 1), fortran=True), describing("<f8", (2**60,)), describing([("a", "<f8")], (2,)),
                describing("<U999999999", ()), describing("<f8", (0, 10**20)), describing("|V16", (1,)),
            )
        ),
        ([("boostbp.json", HEAD), ("x.npy", saying(describing("<f8", (0, 10**20)), b""))], "is not consistent"),
        ([("boostbp.json", HEAD), ("x.npy", saying(describing("|b1", (1,)), b"\2"))], "truth value"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore:Duplicate name")
def test_forged_file_is_refused(tmp_path, members, message):
    forge(tmp_path / "file", members)
    with pytest.raises(ValueError, match=message):
        read(tmp_path / "file")


def test_pickles_are_not_read(tmp_path):
    with open(tmp_path / "objects.npy", "wb") as file:
        np.save(file, np.array([print], object), allow_pickle=True)
    forge(tmp_path / "file", [("boostbp.json", HEAD), ("x.npy", (tmp_path / "objects.npy").read_bytes())])
    with pytest.raises(ValueError, match=r"'x.npy' is not consistent: object"):
        read(tmp_path / "file")


def changed_sizes(path, name, stated):
    """Let the directory of a zip state another size of a member, decompressed."""
    data = bytearray(path.read_bytes())
    begin = int.from_bytes(data[-85:-81], "little")  # of the directory, in the zip's last record
    at = data.index(name.encode(), begin) - 46
    data[at + 24 : at + 28] = stated.to_bytes(4, "little")
    data[-64:] = hashlib.sha256(data[:-64]).hexdigest().encode()
    path.write_bytes(data)


@pytest.mark.parametrize("stated", [1, 500_000, 1 << 26])
def test_bomb_is_refused_and_takes_no_memory(tmp_path, stated):
    """64 MB of zeros in 64 kB, whatever the directory says of them."""
    forge(tmp_path / "file", [("boostbp.json", HEAD), ("x.npy", bytes(1 << 26))], zipfile.ZIP_DEFLATED)
    changed_sizes(tmp_path / "file", "x.npy", stated)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"is not consistent"):
            read(tmp_path / "file")
        assert tracemalloc.get_traced_memory()[1] < 5 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions_are_refused(tmp_path, compression):
    forge(tmp_path / "file", [("boostbp.json", HEAD), ("x.npy", X)], compression)
    with pytest.raises(ValueError, match="neither stored nor deflated"):
        read(tmp_path / "file")


def test_deflated_header_is_refused(tmp_path):
    """A few bytes of it could be gigabytes of lists."""
    with zipfile.ZipFile(tmp_path / "zip", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("boostbp.json", HEAD)
        file.comment = b"boostbp sha256:" + b"0" * 64
    data = (tmp_path / "zip").read_bytes()[:-64]
    with pytest.raises(ValueError, match="its header is not stored"):
        read_bytes(data + hashlib.sha256(data).hexdigest().encode())


def test_members_that_state_the_same_bytes_take_the_memory_that_they_state(tmp_path):
    path, big = tmp_path / "file", npy(np.zeros(100_000))
    forge(path, [("boostbp.json", HEAD), *((f"x{k}.npy", big) for k in range(100))], zipfile.ZIP_DEFLATED)
    with pytest.raises(ValueError, match="more than 64 times its own"):
        read(path)


def test_bytes_before_the_first_member_are_refused(path):
    data = b"\0" * 50 + path.read_bytes()[:-64]
    path.write_bytes(data + hashlib.sha256(data).hexdigest().encode())
    with pytest.raises(ValueError, match="is not a file of boostbp"):
        read(path)


@pytest.mark.parametrize("error", [TypeError("a"), KeyError("b"), RecursionError(), EOFError(), SyntaxError("c")])
def test_whatever_a_file_makes_its_reader_do_is_a_value_error(path, error):
    def build(content, arrays):
        raise error

    with pytest.raises(ValueError, match="is not consistent"):
        archive.read(path, build, kind="model", version=1)


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


def test_failed_write_leaves_the_old_file(path, press):
    before = path.read_bytes()
    with pytest.raises(TypeError, match="array 'x' is object"):
        archive.write(path, kind="model", version=1, content=None, arrays={"x": np.array([print], object)})
    with pytest.raises(ValueError, match="not JSON compliant"):
        archive.write(path, kind="model", version=1, content=np.nan, arrays={})

    press(os, "fsync", 1, OSError("disk full"))
    with pytest.raises(OSError, match="disk full"):
        archive.write(path, kind="model", version=1, content=None, arrays={})
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == ["file"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_named_pipe_is_refused_at_once_and_a_pipe_of_the_shell_is_read(path):
    archive.write(path, kind="model", version=1, content=7, arrays={})
    named = path.with_name("pipe")
    os.mkfifo(named)
    with pytest.raises(OSError, match="pipe' is a named pipe, which may never be written"):
        read(named)
    out, into = os.pipe()
    with open(out, "rb"), open(into, "wb") as writer:
        writer.write(path.read_bytes())
        writer.close()
        assert read(f"/dev/fd/{out}").content == 7
