"""ordboost: scikit-learn's boosted trees for each threshold, made monotone.

Where two cumulative probabilities had to be made equal, the class between them has probability 0.
"""

from ordboost import OrdBoostClassifier

from benchmarks.rivals.median import MedianClassifier

__all__ = ["OrdBoost"]


class OrdBoost(MedianClassifier):
    """ordboost's classifier with its defaults."""

    def _unfitted(self) -> OrdBoostClassifier:
        return OrdBoostClassifier(n_jobs=1, random_state=0)

    def _size(self, fitted: OrdBoostClassifier) -> int:
        return sum(int(edge.n_iter_) for edge in fitted.estimators_)
