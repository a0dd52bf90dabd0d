"""Metadata of BoostBP+."""

from __future__ import annotations

from tabarena.models._method_metadata import MethodMetadata
from tabarena.systems._system_info import SystemInfo
from tabarena.systems.boostbp.hpo import gen_boostbp_plus
from tabarena.systems.boostbp.system import BoostBPSystemModel

boostbp_plus_method_metadata = MethodMetadata.system(
    method="BoostBP+",
    name="BoostBP+",
    suite="tabarena-2026-11-26",
    compute="cpu",
    date="2026-11-26",
    date_introduced="2026-11-26",
    reference_url="https://arxiv.org/abs/2109.11863",
)

boostbp_plus_info = SystemInfo(
    system_cls=BoostBPSystemModel,
    config_generator=gen_boostbp_plus,
    method_metadata=boostbp_plus_method_metadata,
    pip_extra=("boostbp>=0.1",),
)
