"""Hidden layers by number and by name."""

from __future__ import annotations

import numpy as np
import pytest

from tests.model.models import CASES, FLOWERS, fitted, regressor


@pytest.mark.parametrize(("kind", "backend"), CASES)
def test_all_layers_are_those_that_a_forward_pass_goes_through(kind, backend):
    model, X = fitted(kind, backend)
    h, _ = model.network_.forward(model._read(X).X)
    hidden = model.hidden_representation(X)
    assert len(hidden) == len(h) - 2
    for number, (found, expected) in enumerate(zip(hidden, h[1:-1], strict=True)):
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(model.hidden_representation(X, number), expected)
        np.testing.assert_array_equal(model.transform(X, layer=number - len(hidden)), expected)
        assert model.hidden_names(number) == [f"h{number}_{k}" for k in range(found.shape[1])]


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
