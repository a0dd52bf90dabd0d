"""Evaluation metrics of predictions, by name or the user's own."""

from boostbp.metrics.base import Metric, default_metric, load

__all__ = ["Metric", "default_metric", "load"]
