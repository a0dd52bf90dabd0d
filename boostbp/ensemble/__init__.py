"""The ensemble: candidates trained on one problem, weighed by its held-out rows, and summed to one network.

In the order of reading: `problem` (what is learnt), `candidates` (the list of what a fit tries), `candidate_settings`
(how each differs from what the user asked for), `candidate` and `output_layers` (how one is trained), `parallel` and
`budget` (in which order, on which threads, for how long), `weights`, `average`, `refits`, and `ensemble`, which calls
them. All tuned numbers are in `constants`.
"""
