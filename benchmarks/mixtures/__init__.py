"""The paper's mixtures of trees and neural networks, as estimators; they need torch.

Whoever builds a mixture of their own puts layers of trees into a torch model: `boostbp.torch`.
"""

from benchmarks.mixtures.estimators import GBDTNNClassifier, GBDTNNRegressor, NNGBDTClassifier, NNGBDTRegressor

__all__ = ["GBDTNNClassifier", "GBDTNNRegressor", "NNGBDTClassifier", "NNGBDTRegressor"]
