"""Given basis functions: the mode of weights and thresholds, the evidence and its gradient, the noise.

May import `isbor.model` and what stands below it.
"""
