"""What estimators of clusters share, without a cluster: the estimator for one machine, and results for no rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from boostbp import BoostBPClassifier
from boostbp.distributed.on_cluster import OnCluster, no_rows_of

X = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["a", "b"])
Y = np.where(X["a"] > 0, "rising", "falling")


class Here(OnCluster, BoostBPClassifier):
    _local = BoostBPClassifier


def test_the_estimator_for_one_machine_has_the_parameters_and_the_model():
    local = BoostBPClassifier((), n_estimators=3).fit(X, Y)
    model = Here((), n_estimators=5)
    with pytest.raises(NotFittedError):
        model.to_local()
    model._take(local)
    assert model.get_params()["n_estimators"] == 5  # what a fit leaves replaces no parameter
    again = model.to_local()
    assert type(again) is BoostBPClassifier
    np.testing.assert_array_equal(again.predict_proba(X), local.predict_proba(X))
    model._take(BoostBPClassifier((), n_estimators=3).fit(X.to_numpy(), Y))
    assert not hasattr(model, "feature_names_in_")


@pytest.mark.parametrize("rows", [X, X.to_numpy()], ids=["names", "no names"])
def test_no_rows_have_the_shapes_and_types_of_rows(rows):
    local = BoostBPClassifier((), n_estimators=3).fit(rows, Y)
    for method, shape in (("predict", (0,)), ("predict_proba", (0, 2))):
        nothing = no_rows_of(local, method)
        assert nothing.shape == shape
        assert nothing.dtype == getattr(local, method)(rows).dtype
