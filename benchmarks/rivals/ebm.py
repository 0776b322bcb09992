"""The explainable boosting machine (interpret-core): a sum of functions of one or two columns."""

from interpret.glassbox import ExplainableBoostingClassifier

from benchmarks.rivals.median import MedianClassifier

__all__ = ["EBM"]


class EBM(MedianClassifier):
    """The machine; its functions count, not the trees that they are made of."""

    def __init__(self, interactions: int | None = None) -> None:
        self.interactions = interactions

    def _unfitted(self) -> ExplainableBoostingClassifier:
        return ExplainableBoostingClassifier(**self._given(), n_jobs=1, random_state=0)

    def _size(self, fitted: ExplainableBoostingClassifier) -> int:
        return len(fitted.term_names_)
