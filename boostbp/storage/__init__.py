"""What leaves the package: files of models."""

from boostbp.storage.models import load, save

__all__ = ["load", "save"]
