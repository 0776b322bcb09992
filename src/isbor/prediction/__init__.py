"""From a fitted model to class probabilities and decisions: sparse models, averages, bands.

May import `isbor.inference` and the packages below it.
"""
