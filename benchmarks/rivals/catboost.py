"""CatBoost: boosted symmetric trees. A tree has a value for each class and counts once."""

from catboost import CatBoostClassifier

from benchmarks.rivals.median import MedianClassifier

__all__ = ["CatBoost"]


class CatBoost(MedianClassifier):
    """CatBoost's classifier; without a learning rate it chooses one by the number of rows and trees."""

    def __init__(
        self, iterations: int | None = None, depth: int | None = None, learning_rate: float | None = None
    ) -> None:
        self.iterations = iterations
        self.depth = depth
        self.learning_rate = learning_rate

    def _unfitted(self) -> CatBoostClassifier:
        return CatBoostClassifier(
            **self._given(), thread_count=1, random_seed=0, verbose=False, allow_writing_files=False
        )

    def _size(self, fitted: CatBoostClassifier) -> int:
        return int(fitted.tree_count_)
