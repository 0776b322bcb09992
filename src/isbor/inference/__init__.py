"""Inference for given basis functions: mode of weights and thresholds, evidence and its gradient, noise.

May import `isbor.model` and the packages below it.
"""
