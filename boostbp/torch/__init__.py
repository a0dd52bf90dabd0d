"""Layers of boosted trees at any place in a torch model: `GBDTModule`, and `GBDTStep`, which trains them.

Forward and backward accept tensors of any floating type on any device, and compute in float64 on the CPU. Only first
derivatives exist; a second derivative raises an error.

**How trees learn.** Trees have no parameters for an optimizer. In train mode, each backward pass stores dL/doutput of
its rows in the module. A step moves the outputs of these rows along it, and fits new trees to the moved outputs
(Algorithm 1 of the paper). The first forward call in train mode fits the first trees. In eval mode nothing is stored or
fitted, and gradients pass through to the modules below.

**Batches.** A step uses the rows of all forward calls that received a gradient from ``backward()`` since the last step,
in the order of the calls, and fits the trees to these rows only; `torch.autograd.grad` trains nothing. So pass *all*
training rows through the model before a step, in one call or in mini-batches.

- A step raises an error if it has another number of rows than the last one. If the input of the trees is data, it also
  does for other rows, another order, or rows that a loader draws with replacement.
- The first step sets the number of rows, unless ``GBDTStep(model, n_rows=...)`` states it. Above modules that learn, it
  must be stated.
- Momentum belongs to rows: they must have the same order each time, or be announced by number, with `GBDTStep.rows`.
- `GBDTStep.zero_grad` drops the gradients of passes that train only neural layers; layers in eval mode store none.

**Convergence.** Trees change abruptly with each fit, and so does the loss. If `GBDTStep.step` gets the loss, steps
become shorter when it stops falling; keep a copy of the best model, or of its state_dict, by validation. To continue
after an interruption, save `GBDTStep.state_dict` with the states of the model and of the optimizer. Trees have no
weights to average: `torch.optim.swa_utils.AveragedModel` keeps the trees that it copied first. `torch.func`,
forward-mode derivatives, `torch.jit` and ``torch.export`` cannot trace trees, and raise errors. `torch.compile`
compiles the modules around a tree layer and calls the layer itself, with one graph break for each.

**Missing values.** In data, NaN is a missing value. NaN from modules that learn is an error: all their weights would
become NaN while trees hide it. Fill missing cells below such modules, and pass the cells to trees together with the
output of these modules. A gradient with NaN is an error, too.

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
