"""LightGBM's C functions: rounds as by its Python interface, arrays within their bounds, sums in any order."""

from __future__ import annotations

import math

import lightgbm
import numpy as np
import pytest

from boostbp.backends import _lightgbm_calls
from boostbp.backends._lightgbm_calls import exactly_summed
from tests.core.test_reading import custom_booster, same_arrays


@pytest.mark.parametrize(("columns", "leaves"), [(1, 4), (3, 8), (2, 500)])
def test_rounds_by_the_c_functions_are_those_of_the_python_interface(columns: int, leaves: int) -> None:
    booster, grad, hess = custom_booster(columns, leaves)
    other, *_ = custom_booster(columns, leaves)
    booster.reset_parameter({"objective": "none"})
    for number in range(3):
        scaled = grad / np.float32(1 + number)
        assert booster.current_iteration() == other.current_iteration() == number
        _lightgbm_calls.update(lightgbm, booster, scaled, hess)
        flat = (scaled[0], hess[0]) if columns == 1 else (scaled.T, hess.T)
        other.update(fobj=lambda *_, flat=flat: flat)
        read = _lightgbm_calls.trees_of(lightgbm, booster, number, columns)
        whole = other.model_to_string(start_iteration=number, num_iteration=1)
        assert len(read) == whole.count("\nTree=") == columns
        same_arrays(read, _lightgbm_calls.trees_in_text(whole))


def test_arrays_that_the_library_would_read_beyond_are_refused() -> None:
    booster, grad, hess = custom_booster(2, 4)
    for wrong in (hess[:1], hess[:, ::2], np.asfortranarray(hess)):
        with pytest.raises(ValueError, match="do not lie side by side"):
            _lightgbm_calls.update(lightgbm, booster, grad, wrong)


@pytest.mark.parametrize("n_rows", [1000, 10**8])
def test_sums_of_gradients_are_exact_in_any_order(n_rows):
    values = np.random.default_rng(0).normal(size=(2, 4000)).astype(np.float32) ** 5
    values[1] *= np.float32(1e-20)
    near = exactly_summed(values, n_rows)
    assert near.dtype == np.float32
    largest = np.abs(values).max(axis=1, keepdims=True)
    assert (np.abs(near - values) <= largest * n_rows * 2.0**-52).all()
    for row in near.astype(np.float64):
        assert len({np.add.accumulate(order)[-1] for order in (row, row[::-1], np.sort(row))}) == 1
        assert float(row.sum()) == math.fsum(row)
