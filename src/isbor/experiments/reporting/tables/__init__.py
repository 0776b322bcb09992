"""Tables of a report: `table` renders one, `study` says which ones there are, the others fill them.

May import `reporting.results` and `reporting.significance`, not `reporting.figures`.
"""
