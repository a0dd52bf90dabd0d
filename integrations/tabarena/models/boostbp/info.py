"""Metadata of BoostBP, one layer."""

from __future__ import annotations

from tabarena.models._method_metadata import MethodMetadata
from tabarena.models._model_info import ModelInfo
from tabarena.models.boostbp.hpo import gen_boostbp
from tabarena.models.boostbp.model import BoostBPModel

boostbp_method_metadata = MethodMetadata.config(
    method="BoostBP",
    display_name="BoostBP",
    ag_key="BOOSTBP",
    config_default="BoostBP_c1_default_BAG_L1",
    compute="cpu",
    can_hpo=True,
    is_bag=True,
    suite="tabarena-2026-11-26",
    date="2026-11-26",
    date_introduced="2026-11-26",
    reference_url="https://arxiv.org/abs/2109.11863",
)

boostbp_info = ModelInfo(
    model_cls=BoostBPModel,
    search_space=gen_boostbp,
    method_metadata=boostbp_method_metadata,
    pip_extra=("boostbp>=0.1",),
)
