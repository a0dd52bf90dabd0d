"""The result of a fit, `model.Model`, and what it says of itself: summary, health, attributions, leaf regressions."""
