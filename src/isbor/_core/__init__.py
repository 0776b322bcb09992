"""What everything rests on: array types, threads, small linear algebra, the trace of a fit.

Imports nothing else of the package.
"""
