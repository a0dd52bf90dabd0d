"""Explanations of a fitted network: attributions, importances, leaf regressions, health of its layers."""
