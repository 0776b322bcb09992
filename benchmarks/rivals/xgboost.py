"""XGBoost: boosted trees, one for each class and round (one a round for two classes)."""

from xgboost import XGBClassifier

from benchmarks.rivals.median import MedianClassifier

__all__ = ["XGBoost"]


class XGBoost(MedianClassifier):
    """XGBoost's classifier."""

    def __init__(
        self,
        n_estimators: int | None = None,
        max_depth: int | None = None,
        learning_rate: float | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.learning_rate = learning_rate

    def _unfitted(self) -> XGBClassifier:
        return XGBClassifier(**self._given(), n_jobs=1, random_state=0)

    def _size(self, fitted: XGBClassifier) -> int:
        a_round = 1 if len(self.classes_) == 2 else len(self.classes_)
        return int(fitted.get_booster().num_boosted_rounds()) * a_round
