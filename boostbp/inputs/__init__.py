"""What users hold (arrays, tables, sparse matrices) turned into what growers bin."""

from boostbp.inputs.repair import Repair

__all__ = ["Repair"]
