"""Hidden layers by number and by name."""

from __future__ import annotations

import copy
import warnings
from contextlib import nullcontext

import numpy as np
import pytest

from boostbp.ensemble.weighted_sum import weighted_sum
from tests.inspection.models import CASES, FLOWERS, fitted, regressor
from tests.studies import weighed_at

NO_WEIGHT = "transform: no network has weight in this model"


@pytest.mark.parametrize(("kind", "backend"), CASES)
def test_all_layers_are_those_that_a_forward_pass_goes_through(kind, backend):
    model, X = fitted(kind, backend)
    h, _ = model.network_.forward(model._read(X).X)
    hidden = model.hidden_representation(X)
    assert len(hidden) == len(h) - 2
    for number, (found, expected) in enumerate(zip(hidden, h[1:-1], strict=True)):
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(model.hidden_representation(X, number), expected)
        with nullcontext() if model.history_.weight() else pytest.warns(UserWarning, match=NO_WEIGHT):
            np.testing.assert_array_equal(model.transform(X, layer=number - len(hidden)), expected)
        assert model.hidden_names(number) == [f"h{number}_{k}" for k in range(found.shape[1])]


def test_units_of_a_network_without_weight_are_given_with_a_warning():
    model, frame = fitted("regressor", "lightgbm")
    assert model.history_.weight() == 1.0  # and no warning
    units, single = model.transform(frame), fitted("no hidden layer", "lightgbm")[0].network_
    for weight in (0.0, 0.25):
        average = copy.copy(model)
        average.history_ = weighed_at(model.history_, weight)
        average.network_ = weighted_sum([model.network_, single], [weight, 1.0 - weight])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            np.testing.assert_array_equal(average.transform(frame), units)
            np.testing.assert_array_equal(average.hidden_representation(frame, -1), units)
        assert [one.filename for one in caught] == [__file__] * (weight == 0.0)
        assert all(str(one.message).startswith(NO_WEIGHT) for one in caught)


def test_a_frame_of_another_layer_than_the_last_is_refused():
    model, frame = regressor("lightgbm", epochs=0)
    assert list(model.set_output(transform="pandas").transform(frame)) == list(model.get_feature_names_out())
    with pytest.raises(ValueError, match=r"layer=0 with set_output is not supported.*Use hidden_representation"):
        model.transform(frame, layer=0)
    assert model.hidden_representation(frame, 0).shape == (len(frame), 4)


def test_names():
    model, frame = fitted("skip", "lightgbm")
    assert model.layer_names(0) == list(frame.columns)
    assert model.layer_names(-1) == ["h1_0", "h1_1", "h1_2", *frame.columns]
    assert model.hidden_names() == ["h1_0", "h1_1", "h1_2"]
    assert model.output_names() == ["y"]
    assert fitted("two outputs", "lightgbm")[0].output_names() == ["y0", "y1"]
    assert fitted("classifier", "lightgbm")[0].output_names() == ["0", "1", "2"]
    assert fitted("two classes", "lightgbm")[0].output_names() == ["low"]
    coder, _ = fitted("autoencoder", "lightgbm")
    assert coder.output_names() == coder.layer_names(0) == [f"x{j}" for j in range(FLOWERS.shape[1])]
    for ask, count in ((model.layer_names, 3), (model.hidden_names, 2)):
        with pytest.raises(ValueError, match=f"layer=5 does not exist: there are {count}"):
            ask(5)
