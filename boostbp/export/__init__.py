"""Fitted models outside Python: ONNX graphs, and C without dependencies."""

from boostbp.export.c_program import to_c
from boostbp.export.linear_boosters import lightgbm_linear_to_onnx
from boostbp.export.onnx_models import to_onnx

__all__ = ["lightgbm_linear_to_onnx", "to_c", "to_onnx"]
