"""What leaves the package: files of models."""

from boostbp.interop.storage import load, save

__all__ = ["load", "save"]
