"""The search over functions with centres and metrics of their own.

May import the modules of `isbor.search` that select among given functions, and what stands below them.
"""
