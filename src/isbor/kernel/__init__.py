"""Kernel machines: batch and incremental support vector machines, discriminant analysis, calibration.

May import `isbor.prediction` and the packages below it, but not `isbor.search` and `isbor.gp`.
"""
