"""What leaves the package: files of models."""

from boostbp.storage import packed_state as packed_state  # what estimators are for skops
from boostbp.storage.models import load, save

__all__ = ["load", "save"]
