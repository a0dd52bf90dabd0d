"""The ensemble: candidates trained on one problem, weighted by its held-out rows, and summed to one network.

Reading order:

- `problem` and `budget`: the rows and settings of a fit, and what it may spend;
- `candidates`, `candidate_settings`: the list of candidates, and how each differs from the user's network;
- `candidate`, `output_layers`, `hidden_units`: how one candidate is trained;
- `plan`: what a fit trains, decided once;
- `driver`, `schedule`, `many_rows`: the candidates in training, and their order;
- `average`, `weighted_sum`, `safeguard`, `refits`: the choice of the model, and its last steps;
- `ensemble`, which calls them, and `constants`, which holds the tuned numbers.
"""
