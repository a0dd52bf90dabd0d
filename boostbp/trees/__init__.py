"""The parts of a fitted layer: trees, leaf regressions, bases, forests."""
