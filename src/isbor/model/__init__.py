"""The statistical model: the likelihood of ordered labels, and the basis functions of the latent score.

May import `isbor.data` and the packages below it.
"""
