"""Tables of a report: `table` renders one, `study` lists them, the other modules fill them.

May import `reporting.results` and `reporting.significance`, not `reporting.figures`.
"""
