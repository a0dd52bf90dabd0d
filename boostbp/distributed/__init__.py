"""Training on the rows of several workers: the same model, whatever starts the workers."""

from boostbp.backends.xgboost_network import Address, WorkersLostError, tracked
from boostbp.distributed.worker import fit_worker

__all__ = ["Address", "WorkersLostError", "fit_worker", "tracked"]
