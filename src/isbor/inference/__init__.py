"""Inference for given basis functions: mode of weights and thresholds, evidence and its gradient, noise.

All of it rests on the pass over the rows, `expansion`, which takes most of the time.

May import `isbor.model` and the packages below it.
"""
