"""Basis families, one module each, and their catalogue.

May import the solvers, the adaptive search and the width search of `isbor.search`.
"""
