"""What leaves the package: files of models."""

from boostbp.storage import state as state  # what estimators are for skops
from boostbp.storage.models import load, save

__all__ = ["load", "save"]
