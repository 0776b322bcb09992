"""The statistical model: the likelihood of an ordered label, and the basis functions of the latent score.

May import `isbor.data` and what stands below it.
"""
