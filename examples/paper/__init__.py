"""The experiments of the paper: each is a module, ``python -m examples.paper.NAME``; `all` runs them all."""
