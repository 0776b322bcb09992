"""Solvers that select functions centred on rows, all with one metric: gram, sequential, batch.

"gram" is the default, "sequential" the paper's slow algorithm, "batch" that of SBOR.

May import `isbor.search.starts`, `recorder` and `settings`, and the packages below `isbor.search`.
"""
