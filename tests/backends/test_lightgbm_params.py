"""The defaults of LightGBM's native parameters."""

from __future__ import annotations

import numpy as np
import pytest

from boostbp.backends import native_params


def test_lightgbm_s_own_defaults_are_of_the_kinds_that_are_written_down() -> None:
    import lightgbm

    data = lightgbm.Dataset(np.zeros((9, 1)), np.zeros(9), params={"verbosity": -1})
    text = lightgbm.train({"verbosity": -1, "num_threads": 1}, data, 1).model_to_string()
    defaults = lightgbm.Booster(model_str=text).params
    if not defaults:
        pytest.skip("LightGBM before 4.6 does not read the parameters of a model")
    allowed = native_params.LIGHTGBM.allowed
    assert len(allowed.keys() & defaults.keys()) > 30
    for name in allowed.keys() & defaults.keys():
        value = allowed[name](name, defaults[name])
        assert value == defaults[name]
        assert isinstance(value, bool) == isinstance(defaults[name], bool)
        assert isinstance(value, str) == isinstance(defaults[name], str)
