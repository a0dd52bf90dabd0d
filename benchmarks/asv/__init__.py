"""Speed over commits, measured by airspeed velocity: `asv run` in this folder."""
