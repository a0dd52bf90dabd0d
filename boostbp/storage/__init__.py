"""Files of models."""

from boostbp.storage.models import load, save

__all__ = ["load", "save"]
