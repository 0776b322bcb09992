"""`KDLOR`, kernel discriminant learning."""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np

from isbor._core.types import LabelArray
from isbor.data.encoding import Missing
from isbor.data.rows import TrainingRows
from isbor.data.training import ClassWeight
from isbor.estimators.kernel_machines import KERNEL_PARAMETERS, BatchKernelClassifier, Gamma
from isbor.estimators.parameters import POSITIVE, Allowed, choice
from isbor.kernel.discriminant import solve_discriminant
from isbor.kernel.kernels import CutScore, Kernel, KernelName

__all__ = ["KDLOR"]


class KDLOR(BatchKernelClassifier[CutScore]):
    r"""Kernel discriminant learning for ordinal regression.

    Wanted is a direction w in feature space in which classes are narrow and their means m_k follow each
    other:

    .. math::
        \min_{w, \rho}\; w^\top S_w w - C\rho \quad\text{such that}\quad w^\top (m_{k+1} - m_k) \ge \rho .

    Its dual has r - 1 variables. What takes time is the scatter within classes, S_w, in terms of the kernel:
    a product and a factorisation of matrices of rows × rows, O(n³) time and O(n²) memory (two such matrices).

    Parameters
    ----------
    C : float, default=1.0
        Weight of the distance between classes. It sets the unit of the score and changes no prediction.
    u : float, default=0.001
        Ridge that makes the scatter invertible, as a share of the mean of its diagonal.
    thresholds : "midpoint" or "weighted", default="midpoint"
        Thresholds halfway between the projected means of neighbours, or at their mean weighted by the sizes
        of the two classes, as in the paper of Sun et al.
    kernel : "rbf", "linear", "poly" or "precomputed", default="rbf"
        Kernel of the standardised features; "precomputed" means that X holds kernel values.
    gamma : "scale" or float, default="scale"
        Coefficient of "rbf" and "poly"; "scale" is one over the number of features that vary.
    degree : int, default=3
        Degree of "poly".
    coef0 : float, default=0.0
        Constant of "poly".
    probability : bool, default=True
        Whether to learn class probabilities, by an ordered probit on the scores of rows held back. That takes
        five more fits to four fifths of the rows each: three times the time, in all. The only row of a class
        is never held back.
    missing : "auto", "indicator" or "error", default="auto"
        What to do with missing cells, as in `ISBOR`.
    classes : sequence of labels, default=None
        All labels, lowest first. Needed for strings; for others it names levels that may be missing from y.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, by label. "balanced" gives all classes the same total weight.
    n_jobs : int or None, default=None
        Threads of predictions. None means all cores.
    random_state : int, RandomState or None, default=None
        Chooses which rows are held back together. None is a fixed choice.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels in order.
    thresholds_ : ndarray of shape (n_classes - 1,)
        Thresholds of the score.
    dual_coef_ : ndarray of shape (n_support,)
        Weights of the kernels in the score.
    support_ : ndarray of shape (n_support,)
        Row numbers of these rows in the training data: all distinct rows.
    support_vectors_ : ndarray of shape (n_support, n_columns)
        The rows, as they were encoded.
    gamma_ : float
        Coefficient of the kernel.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    B.-Y. Sun, J. Li, D. D. Wu, X.-M. Zhang and W.-B. Li, "Kernel Discriminant Learning for Ordinal
    Regression", IEEE Transactions on Knowledge and Data Engineering, 2010.

    Examples
    --------
    >>> from isbor import KDLOR
    >>> from isbor.datasets import make_saddle
    >>> X, y = make_saddle(400, random_state=0)
    >>> model = KDLOR().fit(X, y)
    >>> bool((model.predict(X) == y).mean() > 0.9)
    True
    """

    _allowed: ClassVar[dict[str, Allowed]] = {
        "C": POSITIVE,
        "u": POSITIVE,
        "thresholds": choice("midpoint", "weighted"),
        **KERNEL_PARAMETERS,
    }

    def __init__(
        self,
        *,
        C: float = 1.0,
        u: float = 1e-3,
        thresholds: Literal["midpoint", "weighted"] = "midpoint",
        kernel: KernelName = "rbf",
        gamma: Gamma = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        probability: bool = True,
        missing: Missing = "auto",
        classes: Sequence[Any] | LabelArray | None = None,
        class_weight: ClassWeight = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.C = C
        self.u = u
        self.thresholds = thresholds
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.probability = probability
        self.missing = missing
        self.classes = classes
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _solve(self, rows: TrainingRows, kernel: Kernel) -> CutScore:
        cut = solve_discriminant(
            kernel.gram(rows),
            rows.y,
            rows.weight,
            ridge=self.u,
            weighted_thresholds=self.thresholds == "weighted",
        )
        return CutScore(self.C * cut.coef, self.C * cut.thresholds, cut.n_iter)
