"""Estimators in the manner of scikit-learn."""

from boostbp.estimators.autoencoder import BoostBPAutoencoder
from boostbp.estimators.classifier import BoostBPClassifier
from boostbp.estimators.regressor import BoostBPRegressor

__all__ = ["BoostBPAutoencoder", "BoostBPClassifier", "BoostBPRegressor"]
