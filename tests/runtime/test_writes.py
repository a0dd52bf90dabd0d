"""A write to a read-only array is told by its cause, and no other error is taken for one."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from boostbp.runtime.arrays import read_only, refuse_writes

WRITES = {
    "cell": lambda x: x.__setitem__(0, 1.0),
    "output": lambda x: np.add(x, 1.0, out=x),
    "sort": lambda x: x.sort(),
    "shuffle": lambda x: np.random.default_rng(0).shuffle(x),
    "memory": lambda x: memoryview(x).__setitem__(0, 1.0),
    "bytes": lambda x: x.byteswap(inplace=True),
    "pointer": lambda x: (ctypes.c_double * 4).from_buffer(x),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_write_is_told_by_its_cause(name):
    with pytest.raises(ValueError, match=r"^work on a copy$"), refuse_writes("work on a copy"):
        WRITES[name](read_only(np.arange(4.0)))


@pytest.mark.parametrize("kind", [ValueError, TypeError, BufferError])
@pytest.mark.parametrize(
    "text", ["attempt to write a readonly database", "read-only settings", "the table is readonly"]
)
def test_another_error_that_speaks_of_reading_alone_arrives_as_itself(kind, text):
    error = kind(text)
    with pytest.raises(kind) as caught, refuse_writes("work on a copy"):
        raise error
    assert caught.value is error
