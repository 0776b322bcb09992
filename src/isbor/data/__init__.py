"""From tables and labels to training rows: labels, data frames, encoding, scaling, warps.

May import `isbor._core`.
"""
