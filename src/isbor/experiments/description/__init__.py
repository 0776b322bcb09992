"""What an experiment is: models, data sets and splits, and how a TOML file describes them.

Everything here is frozen, checked data; nothing is run. May import estimators, metrics, datasets and
below, and nothing else of `isbor.experiments`.
"""
