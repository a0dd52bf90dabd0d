"""Errors that a table may cause are told from those of a user's code."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
from lightgbm.basic import LightGBMError

from boostbp.backends.failures import is_numerical


@pytest.mark.skipif(find_spec("xgboost") is None, reason="needs xgboost")
def test_errors_of_the_libraries_are_known():
    from xgboost.core import XGBoostError

    assert is_numerical(XGBoostError("Check failed"))
    assert is_numerical(LightGBMError("Check failed"))
    assert not is_numerical(RuntimeError("Check failed"))
