"""Configurations of BoostBP+: rungs of its ladder of quality."""

from __future__ import annotations

from tabarena.systems.boostbp.system import BoostBPSystemModel
from tabarena.utils.config_utils import SystemConfigGenerator

gen_boostbp_plus = SystemConfigGenerator(
    model_cls=BoostBPSystemModel,
    name="BoostBP+",
    manual_configs=[{}, {"quality": 5}],
)
