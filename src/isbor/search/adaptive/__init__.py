"""The search over functions with their own centres and metrics: `search` up to 1,500 rows, `joint` above.

May import the modules of `isbor.search` that select among given functions, and the packages below.
"""
