"""The experiments behind the documents' tables: ``isbor reproduce benchmarks.studies:PAPER`` runs one.

Models are called and keyed as in isbor's catalogue, so that a fit of the paper's study counts here as well.
ISBOR was developed on these sets: the seven with other splits (seeds from 100 on), the 17 others likewise.
"""

from dataclasses import replace

from benchmarks.other_sets import SETS
from isbor.experiments import (
    CATALOGUE,
    Experiment,
    Holdout,
    ImportedData,
    Limits,
    Model,
    Saddle,
    Search,
    Share,
    Task,
    load_study,
)
from isbor.experiments.reporting.tables.paper import PAPER_VECTORS

__all__ = ["OTHER_SETS", "PAPER", "SADDLE", "SEVENTY", "SYSTEMS"]

ISBOR = replace(CATALOGUE["isbor"], title="ISBOR()")
RBF = replace(CATALOGUE["isbor-evidence"], title='ISBOR(basis="rbf")')
FEW = replace(RBF, name="isbor-few", title='ISBOR(basis="rbf", max_vectors=k)')
MIXED = Model("isbor-mixed", 'ISBOR(basis="mixed")', "isbor:ISBOR", {"basis": "mixed"})
TREES = replace(CATALOGUE["trees"], title="boosted trees")
LOGISTIC = Model("logistic", "LogisticAT", "skordinal.classifiers:LogisticAT", inputs="numbers")
_WIDTHS = tuple(4.0**k for k in range(-3, 2))
SVOR = Model(
    "svor-skordinal",
    "SVOR (skordinal)",
    "benchmarks.estimators:SVOR",
    grid={"width": _WIDTHS, "C": (0.1, 1.0, 10.0, 100.0, 1000.0)},
    inputs="numbers",
)
KDLOR = Model(
    "kdlor-skordinal",
    "KDLOR (skordinal)",
    "benchmarks.estimators:KDLOR",
    grid={"width": _WIDTHS, "u": (1e-4, 1e-3, 1e-2, 1e-1)},
    inputs="numbers",
    rows_at_most=16_000,  # it holds 3.1 matrices of rows × rows: 6.3 GB
)

_SEARCH = Search(folds=5, rows_at_most=2000)
_LIMITS = Limits(seconds=4 * 3600.0, memory=8.0)
_SETS = load_study("benchmarks").tasks
_LARGE = tuple(task.name for task in _SETS[2:])  # above 5,000 rows
# There SVOR and KDLOR have five splits, and a fit of SVOR with C = 1000 would take hours.
_SLOW = {
    (name, model.name): replace(model, splits_at_most=5)
    for name in _LARGE
    for model in (replace(SVOR, grid={"width": _WIDTHS, "C": (0.1, 1.0, 10.0, 100.0)}), KDLOR)
}
_AS_MANY = {
    (name, FEW.name): replace(FEW, parameters={**FEW.parameters, "max_vectors": int(vectors)})
    for name, vectors in PAPER_VECTORS["isbor-cv"].items()
    if isinstance(vectors, float)
}

PAPER = Experiment(
    name="comparison-paper",
    title="ISBOR and its peers with the paper's numbers of training rows",
    models=(ISBOR, RBF, FEW, TREES, SVOR, KDLOR, LOGISTIC),
    tasks=_SETS,
    splits=20,
    search=_SEARCH,
    limits=_LIMITS,
    variants={**_SLOW, **_AS_MANY},
)
SEVENTY = replace(
    PAPER,
    name="comparison-70-30",
    title="ISBOR and its peers on 70 % of the rows",
    tasks=tuple(replace(task, scheme=Share(0.7)) for task in _SETS),
)
OTHER_SETS = Experiment(
    name="other-sets",
    title="ISBOR and its peers on 17 small public sets",
    models=(ISBOR, RBF, MIXED, TREES, SVOR, LOGISTIC),
    tasks=tuple(
        Task(name, name, ImportedData("benchmarks.other_sets:load_set", name), Share(0.7)) for name in SETS
    ),
    splits=10,
    search=_SEARCH,
    limits=_LIMITS,
    # Above 500 rows its search takes minutes a split.
    variants={
        (name, SVOR.name): replace(SVOR, splits_at_most=0)
        for name in ("breast_cancer", "era", "lev", "anes96", "fair", "randhie")
    },
)
SADDLE = Experiment(
    name="saddle",
    title="The saddle, 10,000 training rows",
    models=(
        Model("true-saddle", "the true function", "benchmarks.estimators:TrueSaddle"),
        ISBOR,
        RBF,
        TREES,
        replace(SVOR, title="SVOR (skordinal), C=100, gamma=1", parameters={"C": 100, "width": 2}, grid={}),
        LOGISTIC,
    ),
    tasks=(Task("saddle", "Saddle", Saddle(21_000), Holdout(10_000)),),
    splits=5,
)
SYSTEMS = Experiment(
    name="systems",
    title="The systems of the paper with their defaults",
    models=(
        ISBOR,
        RBF,
        Model("sbor", "SBOR()", "isbor:SBOR"),
        Model("gpor", "GPOR()", "isbor:GPOR"),
        Model("gpor-ard", 'GPOR(metric="ard")', "isbor:GPOR", {"metric": "ard"}),
        Model("gpor-ep", 'GPOR(inference="ep")', "isbor:GPOR", {"inference": "ep"}),
        Model("svor", "SVOR(C=10)", "isbor:SVOR", {"C": 10.0}),
        Model("kdlor", "KDLOR()", "isbor:KDLOR"),
    ),
    tasks=(*_SETS[:2], Task("saddle", "Saddle, 1,000 rows", Saddle(6000), Holdout(1000))),
    splits=20,
)
