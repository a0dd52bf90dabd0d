"""One layer: its bound input, the rounds of its fit, its forward and its backward pass."""

from boostbp.network.layers.bound import BoundInput as BoundInput
from boostbp.network.layers.bound import LayerSettings as LayerSettings
from boostbp.network.layers.bound import LossObjective as LossObjective
from boostbp.network.layers.bound import Objective as Objective
from boostbp.network.layers.bound import SquaredObjective as SquaredObjective
from boostbp.network.layers.layer import Fit as Fit
from boostbp.network.layers.layer import Layer as Layer
from boostbp.network.layers.layer import Trace as Trace
from boostbp.network.layers.layer import fit as fit
from boostbp.network.layers.layer_spec import LayerSpec as LayerSpec
