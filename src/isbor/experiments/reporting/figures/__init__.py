"""Figures of a report: `style` is their common look, `study` says which ones there are, the others draw them.

May import `reporting.tables`, `isbor.plots` and below.
"""
