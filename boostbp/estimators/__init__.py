"""Scikit-learn estimators."""

from boostbp.runtime.lazy import lazy_imports

with lazy_imports(globals()):
    from boostbp.estimators.autoencoder import BoostBPAutoencoder
    from boostbp.estimators.classifier import BoostBPClassifier
    from boostbp.estimators.ranker import BoostBPRanker
    from boostbp.estimators.regressor import BoostBPRegressor
    from boostbp.estimators.time_to_event import BoostBPSurvival

__all__ = ["BoostBPAutoencoder", "BoostBPClassifier", "BoostBPRanker", "BoostBPRegressor", "BoostBPSurvival"]
