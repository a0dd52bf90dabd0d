"""BoostBP, one layer: model, search space and metadata."""

from __future__ import annotations

from tabarena.models.boostbp.hpo import gen_boostbp
from tabarena.models.boostbp.info import boostbp_info, boostbp_method_metadata

__all__ = ["boostbp_info", "boostbp_method_metadata", "gen_boostbp"]
