"""Scikit-learn estimators."""

from typing import TYPE_CHECKING

from boostbp.runtime.lazy import lazy_names

if TYPE_CHECKING:
    from boostbp.estimators.autoencoder import BoostBPAutoencoder
    from boostbp.estimators.classifier import BoostBPClassifier
    from boostbp.estimators.ranker import BoostBPRanker
    from boostbp.estimators.regressor import BoostBPRegressor
    from boostbp.estimators.time_to_event import BoostBPSurvival
else:
    _MODULES = {
        "autoencoder": "BoostBPAutoencoder", "classifier": "BoostBPClassifier", "ranker": "BoostBPRanker",
        "regressor": "BoostBPRegressor", "time_to_event": "BoostBPSurvival",
    }  # fmt: skip
    __getattr__, __dir__ = lazy_names(__name__, _MODULES)

__all__ = ["BoostBPAutoencoder", "BoostBPClassifier", "BoostBPRanker", "BoostBPRegressor", "BoostBPSurvival"]
