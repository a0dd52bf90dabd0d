"""What a fitted layer is made of: trees, leaf regressions, the packed forest."""
