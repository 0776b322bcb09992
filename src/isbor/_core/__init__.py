"""Foundations: array types, threads, small linear algebra, the trace of a fit, warnings.

May import no other package of `isbor`.
"""
