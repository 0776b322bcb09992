"""Gaussian processes: the posterior by Laplace's approximation or by EP, and the hyper-parameters.

May import `isbor.prediction` and what stands below it; knows nothing of `isbor.search` and `isbor.kernel`.
"""
