"""Figures of a report: `style` has their common look, `study` lists them, the others draw them.

May import `reporting.tables`, `isbor.plots` and below.
"""
