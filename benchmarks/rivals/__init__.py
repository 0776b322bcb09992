"""Classifiers of other packages that the scoreboard compares with, one module for each package."""
