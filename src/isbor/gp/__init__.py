"""Gaussian processes: the posterior by Laplace's approximation or EP, and the hyperparameters.

May import `isbor.prediction` and the packages below it, but not `isbor.search` and `isbor.kernel`.
"""
