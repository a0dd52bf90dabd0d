"""The frontier: error against the seconds of a fit, every model with its default settings."""
