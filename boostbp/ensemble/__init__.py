"""The ensemble: candidates trained on one problem, weighted by its held-out rows, and summed to one network.

Reading order:

- `problem` and `quality_levels`: the rows and settings of a fit, and its limits;
- `candidates`, `candidate_settings`: the list of candidates, and how each differs from the user's network;
- `candidate`, `output_layers`, `directions`, `residual_quantiles`, `trained_candidate`: how one candidate is trained;
- `schedule`, `race`, `many_rows`, `work`, `budget`, `parallel`: the order of training, its cost, time and threads;
- `weights`, `average`, `weighted_sum`, `safeguard`, `refits`, `looks`: the choice of the model, and its last steps;
- `ensemble`, which calls them, and `constants`, which holds the tuned numbers.
"""
