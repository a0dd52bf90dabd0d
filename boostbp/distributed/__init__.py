"""Training on the rows of several workers, which all get the same model."""

from boostbp.backends.xgboost_network import Address, WorkersLostError, tracked
from boostbp.distributed.worker import fit_worker

__all__ = ["Address", "WorkersLostError", "fit_worker", "tracked"]
