"""Multi-layered gradient boosted trees, trained by back-propagation on the trees of LightGBM or XGBoost."""

from boostbp.runtime.lazy import lazy_imports
from boostbp.runtime.versions import __version__, show_versions

with lazy_imports(globals(), "metrics"):
    from boostbp.backends import check_backend
    from boostbp.estimators.autoencoder import BoostBPAutoencoder
    from boostbp.estimators.classifier import BoostBPClassifier
    from boostbp.estimators.nested_parameters import paper_settings
    from boostbp.estimators.ranker import BoostBPRanker
    from boostbp.estimators.regressor import BoostBPRegressor
    from boostbp.estimators.single_layer import fit_layer
    from boostbp.estimators.time_to_event import BoostBPSurvival
    from boostbp.export import lightgbm_linear_to_onnx, to_c, to_onnx
    from boostbp.losses.check_loss import check_loss
    from boostbp.network import callbacks
    from boostbp.network.layers import LayerSpec
    from boostbp.network.settings import BackpropSpec
    from boostbp.storage import load, save
    from boostbp.trees.basis import Elementwise

__all__ = [
    "BackpropSpec", "BoostBPAutoencoder", "BoostBPClassifier", "BoostBPRanker", "BoostBPRegressor", "BoostBPSurvival",
    "Elementwise", "LayerSpec", "__version__", "callbacks", "check_backend", "check_loss", "fit_layer",
    "lightgbm_linear_to_onnx", "load", "paper_settings", "save", "show_versions", "to_c", "to_onnx",
]  # fmt: skip
