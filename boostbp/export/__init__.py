"""Fitted models outside Python: ONNX graphs, and C without dependencies."""

from boostbp.export.c_program import to_c
from boostbp.export.onnx_models import to_onnx

__all__ = ["to_c", "to_onnx"]
