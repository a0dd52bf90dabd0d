"""BoostBP+, the average of networks and single layers: system, configurations and metadata."""

from __future__ import annotations

from tabarena.systems.boostbp.hpo import gen_boostbp_plus
from tabarena.systems.boostbp.info import boostbp_plus_info, boostbp_plus_method_metadata
from tabarena.systems.boostbp.system import BoostBPSystemModel

__all__ = ["BoostBPSystemModel", "boostbp_plus_info", "boostbp_plus_method_metadata", "gen_boostbp_plus"]
