"""Speed suites: `python -m benchmarks --help`."""
