"""BoostBP as a model of other frameworks; each in a file of its own, which imports its framework."""
