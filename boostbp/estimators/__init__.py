"""scikit-learn faces of the network."""

from boostbp.estimators.autoencoder import BoostBPAutoencoder
from boostbp.estimators.supervised import BoostBPClassifier, BoostBPRegressor

__all__ = ["BoostBPAutoencoder", "BoostBPClassifier", "BoostBPRegressor"]
