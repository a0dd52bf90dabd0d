"""Explanations of a fitted network: attributions, importances, leaf regressions, health of its layers."""

from __future__ import annotations

from boostbp.inspection.attributions import Attributions, attribute
from boostbp.inspection.health import Health, HealthWarning, LayerHealth, health_of, warn_if_ill
from boostbp.inspection.regressions import LeafRecords, Names, all_leaves, leaf_records
from boostbp.inspection.summary import Summary, importances_over, split_importances, summary_of

__all__ = [
    "Attributions",
    "Health",
    "HealthWarning",
    "LayerHealth",
    "LeafRecords",
    "Names",
    "Summary",
    "all_leaves",
    "attribute",
    "health_of",
    "importances_over",
    "leaf_records",
    "split_importances",
    "summary_of",
    "warn_if_ill",
]
