"""What an experiment is: models, data sets and splits, and how a TOML file describes them.

Everything here is frozen data with checks; nothing is computed. May import estimators, metrics, datasets and
below, and nothing else of `isbor.experiments`.
"""
