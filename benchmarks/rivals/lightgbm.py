"""LightGBM: boosted trees that grow leaf by leaf."""

from lightgbm import LGBMClassifier

from benchmarks.rivals.median import MedianClassifier

__all__ = ["LightGBM"]


class LightGBM(MedianClassifier):
    """LightGBM's classifier."""

    def __init__(
        self,
        n_estimators: int | None = None,
        num_leaves: int | None = None,
        learning_rate: float | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.num_leaves = num_leaves
        self.learning_rate = learning_rate

    def _unfitted(self) -> LGBMClassifier:
        return LGBMClassifier(**self._given(), n_jobs=1, random_state=0, verbose=-1)

    def _size(self, fitted: LGBMClassifier) -> int:
        return int(fitted.booster_.num_trees())
