"""A compiled loop is entered with arguments of one signature."""

import numpy as np

from boostbp.trees.kernels import moments


def test_an_index_of_another_size_is_widened_but_never_cut():
    kind = moments.fill.kinds[3]
    assert kind.convert(np.arange(3, dtype=np.int32)).dtype == np.int64
    narrow = moments.fill.kinds[0]
    wide = np.array([0, 1 << 40])
    assert narrow.convert(wide) is wide  # compiled for as it is
