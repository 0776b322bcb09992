"""Solvers that select functions centred on rows, all with one metric: gram, sequential, batch.

May import `isbor.search.starts`, `recorder` and `settings`, and the packages below `isbor.search`.
"""
