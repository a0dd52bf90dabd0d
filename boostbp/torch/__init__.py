"""Layers of boosted trees at any place of a torch model: `GBDTModule`, and `GBDTStep` that trains them.

Forward and backward take tensors of any floating type; all computing is in float64. In each pass a tensor on another
device is copied to the CPU and its result back: 8 bytes for each of its numbers, and a synchronisation. There are first
derivatives only; a second derivative raises.

**How trees learn.** Trees have no parameters for an optimizer to move. In train mode each backward pass leaves
dL/doutput of its rows with the module. A step moves the outputs of these rows along it and fits the trees again, from
scratch, to the moved outputs (Algorithm 1 of the paper). The first forward call in train mode fits the first trees. In
eval mode nothing is left and nothing is fitted, and gradients pass through to the modules below.

**One rule for batches.** A step takes the rows of all forward calls that got a gradient from ``backward()`` since the
last step, in the order of the calls, and fits the trees to these rows and no others; `torch.autograd.grad` trains
nothing. So pass *all* training rows through the model before a step, in one call or in mini-batches.

- A step raises if it has fewer or more rows than the last one. Where the trees see data, it also raises for other rows
  or another order.
- The first step sets the number of rows, unless ``GBDTStep(model, n_rows=...)`` states it. Above modules that learn, it
  must be stated, as nothing else tells.
- A loader that draws with replacement repeats some rows and misses others. That raises where the trees see data or rows
  are announced by number.
- Momentum belongs to rows: they must come in the same order each time, or be announced by number, `GBDTStep.rows`.
- `GBDTStep.zero_grad` drops the gradients of passes that only the neural layers learn from; layers in eval mode leave
  none.

**How it settles.** Trees jump with each fit, and the loss with them. Give the loss to `GBDTStep.step`, and steps get
shorter when it has stopped falling; keep a copy of the best model, or of its state_dict, by validation. To continue
after an interruption, save `GBDTStep.state_dict` beside the states of the model and of the optimizer. Trees have no
weights to average: `torch.optim.swa_utils.AveragedModel` keeps the trees that it copied first. `torch.func`,
forward-mode derivatives, `torch.jit` and ``torch.export`` do not see into trees, and raise. `torch.compile` compiles
the modules around a tree layer and calls the layer as it is: one break of the graph for each.

**Missing values.** In rows of data NaN means a missing value. NaN from modules that learn raises: all their weights
would become NaN while trees hide it. Fill missing cells below such modules, and give the cells to trees beside the
output of these modules. Without gradients, a column that is NaN in all rows of a call raises if it had no missing value
in training. A gradient with NaN raises, too.

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
