"""Which basis functions: selection by evidence, the width, and the family of functions.

May import `isbor.prediction` and what stands below it; knows nothing of `isbor.kernel` and `isbor.gp`.
"""
