"""Sparse Bayesian ordinal regression."""
