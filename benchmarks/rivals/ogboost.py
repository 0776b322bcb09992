"""ogboost: gradient boosting of a latent score with thresholds, by regression trees."""

import warnings

from sklearn.tree import DecisionTreeRegressor

from benchmarks.rivals.median import MedianClassifier

with warnings.catch_warnings():
    # Its default tree has a name of the squared error that scikit-learn no longer uses.
    warnings.simplefilter("ignore", FutureWarning)
    from ogboost import GradientBoostingOrdinal

__all__ = ["OGBoost"]


class OGBoost(MedianClassifier):
    """ogboost's estimator with its defaults: 100 trees of depth 3, probit."""

    def _unfitted(self) -> GradientBoostingOrdinal:
        return GradientBoostingOrdinal(base_learner=DecisionTreeRegressor(max_depth=3), random_state=0)

    def _size(self, fitted: GradientBoostingOrdinal) -> int:
        return int(fitted.n_estimators_)
