"""BoostBP as a model of other frameworks, each in its own file, which imports the framework."""
