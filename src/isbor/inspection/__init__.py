"""What a fitted score does with the features: relevance, explanations of rows, effects, changes.

May import `isbor.prediction` and the packages below it.
"""
