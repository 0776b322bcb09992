"""From a fitted model to class probabilities and decisions: sparse models, their averages, bands.

May import `isbor.inference` and what stands below it.
"""
