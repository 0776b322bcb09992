"""Model files: fitted estimators as data, which can be opened without trusting them.

May import `isbor.search`, `isbor.kernel` and the packages below them. docs/model-files.md describes the
format.
"""
