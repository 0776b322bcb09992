"""Kernel machines: support vectors in batch and incrementally, the discriminant, and their calibration.

May import `isbor.prediction` and what stands below it; knows nothing of `isbor.search` and `isbor.gp`.
"""
