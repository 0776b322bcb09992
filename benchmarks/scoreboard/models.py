"""The models of the scoreboard: `ISBOR()` first, then its rivals.

CatBoost, LightGBM and XGBoost run twice: with their defaults, and tuned over number, size and learning rate
of the trees; each grid has the defaults among its points. EBM runs without functions of two columns: with
several classes they take tens of times as long, and are left out of its explanations.
"""

from dataclasses import replace

from benchmarks.studies import ISBOR, LOGISTIC, SVOR, SYSTEMS, TREES
from isbor.experiments import Model

__all__ = ["MODELS", "TUNED"]


def _rival(name: str, title: str, estimator: str, package: str) -> Model:
    return Model(name, title, f"benchmarks.rivals.{estimator}", inputs="numbers", packages=(package,))


_CATBOOST = _rival("catboost", "CatBoost", "catboost:CatBoost", "catboost")
_LIGHTGBM = _rival("lightgbm", "LightGBM", "lightgbm:LightGBM", "lightgbm")
_XGBOOST = _rival("xgboost", "XGBoost", "xgboost:XGBoost", "xgboost")
_EBM = _rival("ebm", "EBM without pairs", "ebm:EBM", "interpret-core")
_EXTRA_TREES = _rival("extra-trees", "ExtraTrees", "extra_trees:ExtraTrees", "scikit-learn")
_GPOR = next(model for model in SYSTEMS.models if model.name == "gpor-ard")


def _tuned(model: Model, **grid: tuple[float | None, ...]) -> Model:
    return replace(model, name=f"{model.name}-tuned", title=f"{model.title}, tuned", grid=grid)


TUNED = (
    _tuned(_CATBOOST, iterations=(250, 1000), depth=(4, 6), learning_rate=(0.03, None)),
    _tuned(_LIGHTGBM, n_estimators=(100, 300), num_leaves=(7, 31), learning_rate=(0.03, 0.1)),
    _tuned(_XGBOOST, n_estimators=(100, 300), max_depth=(3, 6), learning_rate=(0.03, 0.1, 0.3)),
)
"""Boosted trees by cross-validation; None is CatBoost's own choice of its learning rate."""

MODELS = (
    ISBOR,
    Model("isbor-50", "ISBOR(max_vectors=50)", "isbor:ISBOR", {"max_vectors": 50}, tuning=ISBOR.tuning),
    *(_CATBOOST, _LIGHTGBM, _XGBOOST, *TUNED),
    _rival("ogboost", "ogboost", "ogboost:OGBoost", "ogboost"),
    _rival("ordboost", "ordboost", "ordboost:OrdBoost", "ordboost"),
    replace(_EBM, parameters={"interactions": 0}),
    replace(_EXTRA_TREES, parameters={"n_estimators": 500, "min_samples_leaf": 2}),
    TREES,
    replace(_GPOR, tuning="kernel parameters by the evidence", rows_at_most=2000),
    *(replace(model, packages=("skordinal",)) for model in (SVOR, LOGISTIC)),
)
