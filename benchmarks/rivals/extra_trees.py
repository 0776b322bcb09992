"""scikit-learn's extremely randomised trees."""

from sklearn.ensemble import ExtraTreesClassifier

from benchmarks.rivals.median import MedianClassifier

__all__ = ["ExtraTrees"]


class ExtraTrees(MedianClassifier):
    """The average of many trees; a class that no leaf has seen gets probability 0."""

    def __init__(self, n_estimators: int | None = None, min_samples_leaf: int | None = None) -> None:
        self.n_estimators = n_estimators
        self.min_samples_leaf = min_samples_leaf

    def _unfitted(self) -> ExtraTreesClassifier:
        return ExtraTreesClassifier(**self._given(), n_jobs=1, random_state=0)

    def _size(self, fitted: ExtraTreesClassifier) -> int:
        return len(fitted.estimators_)
