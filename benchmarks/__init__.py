"""Benchmarks of isbor: each module is a command that prints a table of quality beside time."""
