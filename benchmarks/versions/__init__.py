"""The present version beside an earlier one: ``python -m benchmarks.versions``."""
