"""The search over functions with their own centres and metrics.

May import the modules of `isbor.search` that select among given functions, and the packages below.
"""
