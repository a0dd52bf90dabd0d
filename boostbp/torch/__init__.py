"""Layers of boosted trees at any place of a torch model: `GBDTModule`, and `GBDTStep` that trains them.

Forward and backward work on tensors of any floating type; inside all is float64. A tensor on another
device is copied to the CPU and its result back, in each pass: 8 bytes for each of its numbers, and a
synchronisation. There are first derivatives only; a second one raises.

**How trees learn.** They have no parameters that an optimizer could move. In train mode each backward
pass leaves dL/doutput of its rows with the module. A step moves the outputs of these rows along it,
and fits the trees again, from scratch, to where they moved (Algorithm 1 of the paper). The first
forward call in train mode makes the first trees. In eval mode nothing is left and nothing is fitted,
and gradients pass through to the modules below.

**One rule for batches.** A step takes the rows of all forward calls that got a gradient from
``backward()`` since the last step, one call under the other, and fits the trees to these rows and no
others; `torch.autograd.grad` trains nothing. So go through *all* training rows before a step, in one
call or in mini-batches. A step with fewer or more rows than the last one raises, and so does one with
other rows, or in another order, where the trees see data; the first step is believed, unless
``GBDTStep(model, n_rows=...)`` says how many rows there are. Above modules that learn nothing else
tells, so that there it must be said. A loader that draws with replacement brings some rows twice and
others never: that raises where the trees see data or rows are announced by number. Momentum belongs to
rows: they must come in the same order each time, or be announced by number, `GBDTStep.rows`. Gradients
of passes that only the neural layers learn from are dropped by `GBDTStep.zero_grad`, or never left by
layers in eval mode.

**How it settles.** Trees jump with each fit, and the loss with them. Tell `GBDTStep.step` the loss, and
steps get shorter where it has stopped falling; keep a copy of the best model, or of its state_dict, by
validation. To go on after an interruption, save `GBDTStep.state_dict` beside those of model and
optimizer. Trees have no weights to average: `torch.optim.swa_utils.AveragedModel` keeps the trees that it
copied first. `torch.func`, forward-mode derivatives, `torch.jit` and ``torch.export`` do not see into
trees, and raise. `torch.compile` compiles what stands around a tree layer, and calls the layer as it is: one break of
the graph for each.

**What is missing.** In rows of data NaN means that a value is missing. NaN that comes from modules that
learn raises, as it would make all their weights NaN while trees hide it: fill missing cells below such
modules, and give them to trees beside what these learn. Without gradients it raises where a column that
had no missing value in training is missing in all rows of a call. A gradient with NaN raises, too.

>>> import torch
>>> _ = torch.manual_seed(0)
>>> x, y = torch.randn(200, 4), torch.randn(200, 1)
>>> model = torch.nn.Sequential(GBDTModule(4, 8), torch.nn.Linear(8, 1))
>>> trees, adam = GBDTStep(model, n_rows=200), torch.optim.Adam(model.parameters())
>>> for epoch in range(2):
...     adam.zero_grad()
...     loss = torch.nn.functional.mse_loss(model(x), y)
...     loss.backward()
...     adam.step()
...     trees.step(loss=loss)
"""

from __future__ import annotations

from boostbp.torch.gbdt_step import GBDTStep
from boostbp.torch.module import GBDTModule

__all__ = ["GBDTModule", "GBDTStep"]
