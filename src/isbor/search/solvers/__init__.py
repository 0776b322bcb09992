"""Solvers that select functions centred on rows, all of one metric: gram, sequential, batch.

May import `isbor.search.starts`, `recorder` and `settings`, and what stands below `isbor.search`.
"""
