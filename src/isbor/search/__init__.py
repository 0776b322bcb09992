"""Search for basis functions: selection by evidence, choice of the width and of the basis family.

May import `isbor.prediction` and the packages below it, but not `isbor.kernel` and `isbor.gp`.
"""
