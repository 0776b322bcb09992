"""Models of all systems and families, whose exports are compared with their predictions."""

from isbor import GPOR, ISBOR, ISVOR, KDLOR, SBOR, SVOR

__all__ = ["FAMILIES", "GRADES", "MODELS"]

GRADES = ["poor", "fair", "good"]

MODELS = {
    "rbf": ISBOR(basis="rbf"),
    "ard": ISBOR(basis="rbf", metric="ard"),
    "mixed": ISBOR(basis="mixed", effort="fast"),
    "sbor": SBOR(),
    "gpor": GPOR(),
    "gpor ep ard": GPOR(inference="ep", metric="ard", max_iter=20),
    "svor": SVOR(),
    "svor poly": SVOR(kernel="poly", degree=2, coef0=1.0),
    "svor linear": SVOR(kernel="linear"),
    "isvor": ISVOR(),
    "kdlor": KDLOR(),
}

# Of `ISBOR`, as if they had been selected; with a temperature.
FAMILIES = {"gp": ("gp",), "rbf + mixed + gp": ("rbf", "mixed", "gp")}
