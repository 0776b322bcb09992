"""Arrays in single precision, integers and sparse matrices: the model of the same numbers, without a copy."""

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.metrics.pairwise import rbf_kernel

from isbor import GPOR, ISBOR, ISVOR, KDLOR, SBOR, SVOR, sources
from isbor.data import large_tables, numbers
from isbor.data.encoding import learn_numbers, learn_table
from isbor.data.numbers import NumberTable
from isbor.estimators.linear import OrderedProbit

N, D = 900, 12


def counts(n=N, seed=0):
    """Rows of small numbers, most of them zero, with grades; every number is one in half precision."""
    random = np.random.default_rng(seed)
    X = np.where(random.random((n, D)) < 0.3, random.integers(-8, 20, (n, D)), 0) / 4
    score = X[:, 0] + np.sin(X[:, 1]) + 0.3 * random.normal(size=n)
    return X, np.digitize(score, [-0.5, 0.4, 2.0])


@pytest.fixture(scope="module")
def table():
    return counts()


def fitted(X, y, n_searched):
    """Fit to a table; if `n_searched` is given, so many rows are searched, and 100 are read at a time."""
    with pytest.MonkeyPatch.context() as patch:
        if n_searched is not None:
            patch.setattr(large_tables, "_SAMPLE_ROWS", n_searched)
            patch.setattr(numbers, "_MOST_ROWS", 100)
        return ISBOR(basis="mixed", n_members=1, effort="fast").fit(X, y)


def unordered(X):
    """Return a sparse matrix whose entries are stored in parts, in any order."""
    random = np.random.default_rng(0)
    whole = sp.coo_array(X)
    order = random.permutation(2 * whole.nnz)
    rows, columns = (np.tile(index, 2)[order] for index in whole.coords)
    data = np.concatenate([whole.data - 1.0, np.ones(whole.nnz)])[order]
    matrix = sp.csr_array((data, columns, np.zeros(len(X) + 1, np.int64)), shape=X.shape, copy=True)
    by_row = np.argsort(rows, kind="stable")
    matrix.data, matrix.indices = data[by_row], columns[by_row].astype(np.int64)
    matrix.indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(X)))])
    assert not matrix.has_sorted_indices and not matrix.has_canonical_format
    return matrix


FORMS = {
    "csr_array": sp.csr_array,
    "csr_matrix in single precision": lambda X: sp.csr_matrix(X.astype(np.float32)),
    "csc_array": sp.csc_array,
    "coo_matrix": sp.coo_matrix,
    "lil_array": sp.lil_array,
    "parts of entries, unordered": unordered,
    "single precision": lambda X: X.astype(np.float32),
    "half precision": lambda X: X.astype(np.float16),
    "by columns": np.asfortranarray,
    "pandas, single precision": lambda X: pd.DataFrame(X.astype(np.float32)),
    "polars, single precision": lambda X: pl.DataFrame(X.astype(np.float32)),
}


SEARCHED = {"few rows": None, "many rows": 300}


@pytest.fixture(scope="module", params=SEARCHED)
def searched(request):
    """How many of the rows are searched: all, or a sample."""
    return SEARCHED[request.param]


@pytest.fixture(scope="module")
def expected(table, searched):
    return fitted(*table, searched)


@pytest.mark.parametrize("form", FORMS)
def test_the_model_is_that_of_the_same_numbers(form, table, searched, expected):
    X, y = table
    given = FORMS[form](X)
    model = fitted(given, y, searched)
    assert model.n_relevance_ > 1
    assert_array_equal(model.thresholds_, expected.thresholds_)
    assert_array_equal(model.relevance_, expected.relevance_)
    for method in ("predict", "predict_proba", "decision_function", "out_of_range", "noise_scale"):
        assert_array_equal(getattr(model, method)(given), getattr(expected, method)(X))
    for ours, theirs in zip(
        (*model.latent(given, return_std=True), *model.predict_proba_interval(given)),
        (*expected.latent(X, return_std=True), *expected.predict_proba_interval(X)),
        strict=True,
    ):
        assert_array_equal(ours, theirs)
    assert repr(model.parallel_lines(given, y)) == repr(expected.parallel_lines(X, y))
    if searched is None:
        assert expected.trace_[-1].stage != "all rows"
    else:
        assert expected.trace_[-1].n_rows == len(np.unique(np.column_stack(table), axis=0))


@pytest.mark.parametrize("form", ["csr_array", "single precision"])
def test_a_stream_goes_on_with_the_same_numbers(form, table, searched, expected):
    X, y = table
    more, grades = counts(200, seed=1)
    ours = fitted(FORMS[form](X), y, searched).partial_fit(FORMS[form](more), grades)
    theirs = fitted(X, y, searched).partial_fit(more, grades)
    assert_array_equal(ours.predict_proba(X), theirs.predict_proba(X))
    assert ours._stream.kept.reservoir.seen == N + 200
    begun = ISBOR(classes=[0, 1, 2, 3], effort="fast").partial_fit(FORMS[form](more), grades)
    again = ISBOR(classes=[0, 1, 2, 3], effort="fast").partial_fit(more, grades)
    assert_array_equal(begun.predict_proba(X), again.predict_proba(X))


@st.composite
def sparse_matrices(draw):
    """Matrices of any format and type, with entries that are stored twice, out of order, or zero."""
    n, d = draw(st.integers(1, 12)), draw(st.integers(1, 5))
    cell = st.tuples(st.integers(0, n - 1), st.integers(0, d - 1), st.integers(-3, 3))
    cells = np.array(draw(st.lists(cell, min_size=1, max_size=30)))
    kind = draw(st.sampled_from([np.float64, np.float32, np.int8, np.bool_, np.uint16]))
    matrix = sp.coo_array((cells[:, 2].astype(kind), (cells[:, 0], cells[:, 1])), shape=(n, d))
    return matrix.asformat(draw(st.sampled_from(["coo", "csr", "csc", "lil", "dok", "bsr", "dia"])))


@given(sparse_matrices(), st.integers(1, 13), st.randoms(use_true_random=False))
def test_blocks_hold_the_numbers_of_the_matrix(matrix, size, random):
    before, dense = matrix.copy(), matrix.toarray().astype(np.float64)
    table, weight = NumberTable.of(matrix), np.ones(len(dense))
    encoding = learn_numbers("ISBOR", table, "error", weight)
    rows = encoding.rows("ISBOR", matrix)
    parts = [rows[first : first + size] for first in range(0, len(rows), size)]
    assert_array_equal(np.concatenate(parts), dense)
    order = random.sample(range(len(dense)), len(dense))
    assert_array_equal(rows[np.array(order)], dense[order])
    np.testing.assert_allclose(encoding.fill, learn_table("ISBOR", dense)[0].fill, atol=1e-12)
    for name in ("data", "indices", "indptr", "row", "col", "offsets"):  # the matrix is as it was
        if hasattr(matrix, name):
            assert_array_equal(getattr(matrix, name), getattr(before, name))


SYSTEMS = [
    SBOR(gamma=0.1),
    ISBOR(gamma=0.1, solver="sequential", patience=0),
    SVOR(),
    ISVOR(),
    GPOR(gamma=0.1),
    KDLOR(),
    OrderedProbit(),
]


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: type(system).__name__)
def test_all_systems_take_sparse_matrices(system, table):
    X, y = table[0][:60], table[1][:60]
    matrix = sp.csc_array(X)
    expected = system.fit(X, y).predict_proba(X)
    assert_array_equal(system.fit(matrix, y).predict_proba(matrix), expected)
    if isinstance(system, ISVOR):
        expected = system.fit(X[:40], y[:40]).partial_fit(X[40:], y[40:]).predict_proba(X)
        parts = sp.csr_array(X[:40]), sp.csr_array(X[40:])
        ours = system.fit(parts[0], y[:40]).partial_fit(parts[1], y[40:])
        assert_array_equal(ours.predict_proba(matrix), expected)


def test_missing_cells_of_a_sparse_matrix(table, searched):
    X, y = table[0].copy(), table[1]
    X[7, 3] = X[500, 3] = np.nan
    matrix = sp.csr_array(X)
    with pytest.MonkeyPatch.context() as patch:
        if searched is not None:
            patch.setattr(large_tables, "_SAMPLE_ROWS", searched)
            patch.setattr(numbers, "_MOST_ROWS", 100)
        with pytest.raises(
            ValueError, match=r"2 cell\(s\), the first \(NaN\) in row 7, column 3; ISBOR needs"
        ):
            ISBOR().fit(matrix, y)
        model = ISBOR(gamma=0.1, missing="indicator")
        expected = model.fit(X, y).predict_proba(X)
        assert_array_equal(model.fit(matrix, y).predict_proba(matrix), expected)
        assert model.column_names_[4] == "x3 missing"


def infinite(X):
    X = X.copy()
    X[777, 2] = np.inf
    return X


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X: sp.csr_array(infinite(X)), r"1 cell\(s\), the first \(inf\) in row 777, column 2"),
        (lambda X: infinite(X).astype(np.float32), r"1 cell\(s\), the first \(inf\) in row 777, column 2"),
        (lambda X: sp.csr_array(X[:, :5]), "X has 5 features, but ISBOR is expecting 12 features"),
        (lambda X: X[:, :5].astype(np.float32), "X has 5 features, but ISBOR is expecting 12 features"),
        (lambda X: sp.csr_array(X[:0]), r"Found array with 0 sample\(s\)"),
        (lambda X: sp.coo_array(X[0]), r"sparse array of shape \(12,\); rows and columns are needed"),
        (lambda X: sp.csr_array(X * 1j), "Complex data not supported"),
    ],
)
def test_bad_tables_are_refused(change, message, table, expected):
    bad = change(table[0])
    for method in (expected.predict, expected.out_of_range, expected.predict_proba_interval):
        with pytest.raises(ValueError, match=message):
            method(bad)
    if bad.shape[0] == N and bad.shape[1] == D:
        with pytest.raises(ValueError, match=message):
            fitted(bad, table[1][: bad.shape[0]], 300)


def test_many_rows_with_their_zeros_are_refused_where_all_are_needed(table, monkeypatch):
    monkeypatch.setattr(large_tables, "_SAMPLE_CELLS", 5000)
    message = "X is a sparse matrix of 900 rows and 12 columns; SVOR needs all rows at once with their zeros"
    with pytest.raises(ValueError, match=message):
        SVOR().fit(sp.csr_array(table[0]), table[1])
    SVOR().fit(table[0][:200].astype(np.float32), table[1][:200])


def test_sources_of_sparse_matrices(table, monkeypatch):
    X, y = table
    expected = fitted(X, y, 300)
    monkeypatch.setattr(large_tables, "_SAMPLE_ROWS", 300)
    monkeypatch.setattr(numbers, "_MOST_CELLS", 250 * D)
    batches = lambda: (
        (sp.coo_array(X[first : first + 400]), y[first : first + 400]) for first in (0, 400, 800)
    )
    for table in (sources.open_table((sp.csc_array(X), y)), sources.open_table(batches)):
        assert max(block.X.shape[0] for block in table.blocks()) == 250  # it fits with its zeros
        model = ISBOR(basis="mixed", n_members=1, effort="fast").fit(table)
        np.testing.assert_allclose(model.predict_proba(X), expected.predict_proba(X), atol=1e-6)
    parts = sources.map_blocks(expected.predict_proba, sources.open_table(sp.csr_array(X)))
    np.testing.assert_allclose(np.concatenate(list(parts)), expected.predict_proba(X), atol=1e-12)


def test_a_sparse_kernel_matrix(table):
    X, y = table[0][:80], table[1][:80]
    kernel = rbf_kernel(X, gamma=1.0)
    kernel[kernel < 1e-3] = 0.0
    model = SVOR(kernel="precomputed")
    expected = model.fit(kernel, y).predict(kernel)
    assert_array_equal(model.fit(sp.csr_array(kernel), y).predict(sp.csr_array(kernel)), expected)


MEMORY = """
import resource, sys
import numpy as np
import scipy.sparse as sp
from isbor import ISBOR
from isbor.data import large_tables, numbers
from isbor.data.encoding import learn_numbers, learn_table
from isbor.data.numbers import NumberTable

kind, n, d = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
large_tables._SAMPLE_ROWS = 1000
numbers._MOST_CELLS = 500_000
random = np.random.default_rng(0)
if kind == "sparse":
    X = sp.random_array((n, d), density=0.01, format="csr", rng=random)
    strong = np.asarray(X[:, [0]].todense())[:, 0]
else:
    X = random.random((n, d), dtype=np.float32)
    strong = X[:, 0]
y = np.digitize(strong, [0.25, 0.75]) + (random.random(n) < 0.2)
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
model = ISBOR(basis="rbf", gamma=0.1, max_vectors=3, n_candidates=20, patience=0, n_jobs=1)
model.fit(X[:1200], y[:1200]).predict_proba(X[:1200])  # libraries and buffers
before = peak()
model.fit(X, y)
model.predict_proba(X)
print(peak() - before)
"""


@pytest.mark.parametrize(("kind", "n", "d"), [("sparse", 20_000, 1000), ("single precision", 500_000, 40)])
def test_a_fit_needs_less_memory_than_the_numbers_in_double_precision(kind, n, d):
    command = [sys.executable, "-c", MEMORY, kind, str(n), str(d)]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert float(found.stdout) < 0.5 * n * d * 8e-6, found.stdout
