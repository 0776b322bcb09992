"""`KDLOR`: kernel discriminant learning for ordinal regression."""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np

from isbor._core.types import LabelArray
from isbor.data.cells import Missing
from isbor.data.rows import TrainingRows
from isbor.data.weights import ClassWeight
from isbor.estimators.kernel_machines import KERNEL_PARAMETERS, BatchKernelClassifier, Gamma
from isbor.estimators.parameters import POSITIVE, Allowed, choice
from isbor.kernel.discriminant import solve_discriminant
from isbor.kernel.kernels import CutScore, Kernel, KernelName

__all__ = ["KDLOR"]


class KDLOR(BatchKernelClassifier[CutScore]):
    r"""Kernel discriminant learning for ordinal regression.

    The score is the projection on a direction w in feature space in which classes are narrow and their means
    m_k are far apart and in order:

    .. math::
        \min_{w, \rho}\; w^\top S_w w - C\rho \quad\text{such that}\quad w^\top (m_{k+1} - m_k) \ge \rho .

    The dual has r - 1 variables. Most of the time goes into the within-class scatter S_w, in terms of the
    kernel: a product and a factorisation of matrices of rows × rows, which take O(n³) time and O(n²) memory
    (two such matrices).

    Parameters
    ----------
    C : float, default=1.0
        Weight of the distance between classes. It sets the unit of the score and does not change predictions.
    u : float, default=0.001
        Ridge that makes the scatter matrix invertible, as a share of the mean of its diagonal. It should be
        tuned, together with `gamma`; larger values regularise more.
    thresholds : "midpoint" or "weighted", default="midpoint"
        Thresholds in the middle between the projected means of adjacent classes, or at the mean weighted by
        the sizes of the two classes, as in the paper of Sun et al.
    kernel : "rbf", "linear", "poly" or "precomputed", default="rbf"
        Kernel of the standardised features. "precomputed" means that X is a matrix of kernel values.
    gamma : "scale" or float, default="scale"
        Coefficient of "rbf" and "poly". "scale" is 1 / number of features that vary.
    degree : int, default=3
        Degree of "poly".
    coef0 : float, default=0.0
        Constant of "poly".
    probability : bool, default=True
        Whether to learn class probabilities, by an ordered probit on the scores of held-out rows. This takes
        five more fits, each to four fifths of the rows, and multiplies the total time by about three. The
        only row of a class is never held out. Set False if labels are enough.
    missing : "auto", "indicator" or "error", default="auto"
        How to treat missing cells, see `ISBOR`.
    classes : sequence of labels, default=None
        All classes, lowest first. Required for strings, unless y is an ordered categorical. For other labels,
        it can name classes that do not occur in y.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, by label; they multiply the sample weights. "balanced" gives all classes the
        same total weight.
    n_jobs : int or None, default=None
        Number of threads for predictions. None means all cores.
    random_state : int, RandomState or None, default=None
        Selects the folds of held-out rows. None means a fixed choice.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Classes, lowest first.
    thresholds_ : ndarray of shape (n_classes - 1,)
        Thresholds of the score.
    dual_coef_ : ndarray of shape (n_support,)
        Weights of the kernels in the score.
    support_ : ndarray of shape (n_support,)
        Row numbers of the support vectors in the training data: all distinct rows.
    support_vectors_ : ndarray of shape (n_support, n_columns)
        The support vectors; categorical features are encoded.
    gamma_ : float
        Coefficient of the kernel.
    n_iter_ : int
        Always 1.
    column_names_ : ndarray of shape (n_columns,)
        Names of the encoded columns, see `ISBOR`.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    SVOR : Support vectors: slower, and usually more accurate.
    ISBOR : Nothing to tune, and probabilities of its own.

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
        super().__init__(missing, classes, class_weight, n_jobs, random_state)
        self.C = C
        self.u = u
        self.thresholds = thresholds
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.probability = probability

    def _solve(self, rows: TrainingRows, kernel: Kernel) -> CutScore:
        cut = solve_discriminant(
            kernel.gram(rows),
            rows.y,
            rows.weight,
            ridge=self.u,
            weighted_thresholds=self.thresholds == "weighted",
        )
        return CutScore(self.C * cut.coef, self.C * cut.thresholds, cut.n_iter)
