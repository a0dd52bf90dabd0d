"""Scikit-learn estimators."""

from boostbp.estimators.autoencoder import BoostBPAutoencoder
from boostbp.estimators.classifier import BoostBPClassifier
from boostbp.estimators.ranker import BoostBPRanker
from boostbp.estimators.regressor import BoostBPRegressor

__all__ = ["BoostBPAutoencoder", "BoostBPClassifier", "BoostBPRanker", "BoostBPRegressor"]
