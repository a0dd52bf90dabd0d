"""Multi-layered gradient boosted trees, trained by back-propagation on the trees of LightGBM or XGBoost."""

from typing import TYPE_CHECKING

from boostbp.runtime.lazy import lazy_names
from boostbp.runtime.versions import __version__, show_versions

if TYPE_CHECKING:
    from boostbp.backends import check_backend
    from boostbp.estimators import (
        BoostBPAutoencoder,
        BoostBPClassifier,
        BoostBPRanker,
        BoostBPRegressor,
        BoostBPSurvival,
    )
    from boostbp.estimators.nested_parameters import paper_settings
    from boostbp.estimators.single_layer import fit_layer
    from boostbp.export import lightgbm_linear_to_onnx, to_c, to_onnx
    from boostbp.interop.switching import from_lightgbm, from_xgboost
    from boostbp.losses.check_loss import check_loss
    from boostbp.network import callbacks
    from boostbp.network.layers import LayerSpec
    from boostbp.network.settings import BackpropSpec
    from boostbp.storage import load, save
    from boostbp.trees.basis import Elementwise
else:
    _MODULES = {
        "backends": "check_backend",
        "estimators": "BoostBPAutoencoder BoostBPClassifier BoostBPRanker BoostBPRegressor BoostBPSurvival",
        "estimators.nested_parameters": "paper_settings", "estimators.single_layer": "fit_layer",
        "export": "lightgbm_linear_to_onnx to_c to_onnx", "interop.switching": "from_lightgbm from_xgboost",
        "losses.check_loss": "check_loss", "metrics": "",
        "network": "callbacks", "network.layers": "LayerSpec", "network.settings": "BackpropSpec",
        "storage": "load save", "trees.basis": "Elementwise",
    }  # fmt: skip
    __getattr__, __dir__ = lazy_names(__name__, _MODULES)

__all__ = [
    "BackpropSpec", "BoostBPAutoencoder", "BoostBPClassifier", "BoostBPRanker", "BoostBPRegressor", "BoostBPSurvival",
    "Elementwise", "LayerSpec", "__version__", "callbacks", "check_backend", "check_loss", "fit_layer",
    "from_lightgbm", "from_xgboost", "lightgbm_linear_to_onnx", "load", "paper_settings", "save", "show_versions",
    "to_c", "to_onnx",
]  # fmt: skip
