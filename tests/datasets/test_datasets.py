"""The data sets: counts, rules, file format, and what is said when a file cannot be had."""

import gzip
import os
import sys
from pathlib import Path
from unittest.mock import Mock
from urllib.error import URLError

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import chi2
from sklearn.utils import Bunch

from isbor.datasets import (
    SADDLE_THRESHOLDS,
    cut_by_rank,
    load_benchmark,
    make_balance_scale,
    make_saddle,
    saddle_labels,
)
from isbor.datasets.catalogue import BENCHMARKS
from isbor.datasets.files import write_table

BALANCE_COUNTS = [288, 49, 288]


def benchmark_file(name):
    """The path of a benchmark file; these are not ours to ship."""
    path = Path(os.environ.get("ISBOR_DATA", ""), name)
    if not path.is_file():
        pytest.skip(f"{name} is not found: set ISBOR_DATA to the directory of the benchmark files")
    return path


@pytest.fixture
def openml(monkeypatch):
    """Let OpenML send what is given, instead of what it has; gives the function that was called."""

    def send(data, target):
        found = Bunch(data=data, target=target, feature_names=[f"a{i}" for i in range(data.shape[1])])
        fetch = Mock(return_value=found)
        monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
        return fetch

    return send


@pytest.fixture
def no_files(monkeypatch, tmp_path):
    """An empty cache, no ISBOR_DATA and no network; gives the cache directory."""

    monkeypatch.delenv("ISBOR_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("sklearn.datasets.fetch_openml", Mock(side_effect=URLError("no route to host")))
    return tmp_path / "cache" / "isbor"


def swd_lines():
    """A file of the shape of SWD, with other numbers and one missing value."""
    rng = np.random.default_rng(0)
    table = np.column_stack([rng.integers(1, 5, (1000, 10)), np.resize([1, 2, 3, 4], 1000)])
    lines = [",".join(map(str, row)) for row in table.tolist()]
    lines[0] = lines[0][lines[0].index(",") :]
    return [",".join([*(f"in{i}" for i in range(1, 11)), "target"]), *lines]


def write_swd(directory, lines):
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "swd.csv").write_text("\n".join(lines) + "\n")


def test_saddle_has_its_shape_and_follows_its_rule():
    X, y, score = make_saddle(500, noise=0.0, random_state=3, return_score=True)
    assert X.shape == (500, 2) and X.min() >= 0 and X.max() <= 10
    assert_allclose(score, 10 * (X[:, 0] - 5) * (X[:, 1] - 5))
    assert_array_equal(y, 1 + sum(score > cut for cut in SADDLE_THRESHOLDS))


def test_saddle_labels_put_a_cut_in_the_class_below_it():
    assert_array_equal(saddle_labels(SADDLE_THRESHOLDS), [1, 2, 3, 4])
    assert_array_equal(saddle_labels(np.nextafter(SADDLE_THRESHOLDS, np.inf)), [2, 3, 4, 5])


def test_saddle_counts_agree_with_the_paper():
    paper = np.array([4431, 4535, 3949, 3780, 4305])
    ours = np.bincount(make_saddle(random_state=0)[1], minlength=6)[1:]
    assert ours.sum() == paper.sum()
    statistic = np.sum((ours - paper) ** 2 / (ours + paper))  # two samples of one size, 4 degrees of freedom
    assert statistic < chi2.ppf(0.999, df=4)


@pytest.mark.parametrize("noise", [0.5, 2.0])
def test_the_true_score_has_the_error_that_the_noise_makes(noise):
    # A label changes where noise carries the score over a cut b: in the mean p(b) E|noise| rows a cut, where
    # the product of two uniforms on [-5, 5], times 10, has the density p(b) = ln(250 / |b|) / 500.
    expected = np.sum(np.log(250 / np.abs(SADDLE_THRESHOLDS)) / 500) * noise * np.sqrt(2 / np.pi)
    _, y, score = make_saddle(400_000, noise=noise, random_state=1, return_score=True)
    error = np.abs(y - saddle_labels(score))
    assert abs(error.mean() - expected) < 4 * error.std() / np.sqrt(len(error))


def test_saddle_seeds_repeat_and_generators_advance():
    for one, other in ((5, np.random.default_rng(5)), (np.random.RandomState(5), np.random.RandomState(5))):
        for first, again in zip(
            make_saddle(20, random_state=one), make_saddle(20, random_state=other), strict=True
        ):
            assert_array_equal(first, again)
    rng = np.random.default_rng(5)
    assert not np.array_equal(make_saddle(20, random_state=rng)[0], make_saddle(20, random_state=rng)[0])
    assert make_saddle(20)[0].shape == (20, 2)


def test_balance_scale_is_the_grid_in_lexicographic_order():
    X, y = make_balance_scale()
    assert X.dtype == np.float64 and y.dtype == np.intp
    assert_array_equal(np.lexsort(X.T[::-1]), np.arange(625))
    assert len(np.unique(X, axis=0)) == 625
    assert_array_equal(np.bincount(y)[1:], BALANCE_COUNTS)
    for row, label in (([5, 5, 1, 1], 1), ([2, 3, 3, 2], 2), ([1, 1, 1, 2], 3)):
        assert y[np.flatnonzero((X == row).all(axis=1))] == label


def test_balance_scale_has_the_rows_of_the_file():
    file = np.loadtxt(benchmark_file("balance_scale.csv"), delimiter=",", skiprows=1)
    assert {tuple(row) for row in file} == {tuple(row) for row in np.column_stack(make_balance_scale())}


@given(target=st.lists(st.integers(-5, 5), min_size=1, max_size=60), n_classes=st.integers(1, 60))
def test_cut_by_rank_is_even_ordered_and_stable(target, n_classes):
    n_classes = min(n_classes, len(target))
    labels = cut_by_rank(target, n_classes)
    sizes = np.bincount(labels)[1:]
    assert len(sizes) == n_classes and sizes[0] - sizes[-1] <= 1 and (np.diff(sizes) <= 0).all()
    order = np.lexsort([np.arange(len(target)), target])  # by target, then by row
    assert (np.diff(labels[order]) >= 0).all()


@pytest.mark.parametrize(
    ("name", "n_features", "counts"),
    [
        ("bs", 4, BALANCE_COUNTS),
        ("swd", 10, [32, 352, 399, 217]),
        ("marketing", 13, [1745, 775, 667, 813, 722, 1110, 969, 1308, 884]),
        ("bank", 8, [1639, 1639, 1638, 1638, 1638]),
        ("computer", 12, [1639, 1639, 1638, 1638, 1638]),
        ("calhouse", 8, [4128] * 5),
        ("census", 16, [4557, 4557, 4557, 4557, 4556]),
    ],
)
def test_benchmarks_have_their_rows_and_classes(name, n_features, counts):
    directory = benchmark_file(BENCHMARKS[name].file).parent
    found = load_benchmark(name, data_home=directory, as_frame=False)
    assert_array_equal(np.bincount(found.target)[1:], counts)
    assert found.data.shape == (sum(counts), n_features)
    assert found.data.dtype == np.float64 and found.target.dtype == np.intp
    assert len(found.feature_names) == n_features and "target" not in found.feature_names
    assert np.isnan(found.data).sum() == (2694 if name == "marketing" else 0)
    assert found.name == name and "Source: " in found.DESCR


def write_marketing(directory, **cells):
    """A file of the shape of Marketing, R's names in its header; `cells` puts values into its first row."""
    rng = np.random.default_rng(0)
    names = ["Sex", "Marital", "Age", "Edu", "Occupation", "Lived", "Dual_Income", "Household"]
    names += ["Householdu18", "Status", "Home_Type", "Ethnic", "Language"]
    table = np.column_stack([rng.integers(1, 3, (8993, 13)), np.resize(np.arange(1, 10), 8993)])
    lines = [list(map(str, row)) for row in table.tolist()]
    for name, cell in cells.items():
        lines[0][names.index(name)] = cell
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "marketing.csv").write_text("\n".join(map(",".join, [[*names, "target"], *lines])) + "\n")


def test_marketing_is_a_frame_of_categories():
    directory = benchmark_file("marketing.csv").parent
    frame, y = load_benchmark("marketing", data_home=directory, return_X_y=True)
    codes = load_benchmark("marketing", data_home=directory, as_frame=False).data
    assert frame.shape == (8993, 13) and len(y) == 8993
    assert [len(frame[name].cat.categories) for name in frame] == [2, 5, 7, 6, 9, 5, 3, 9, 10, 3, 5, 8, 3]
    ordered = [name for name in frame if frame[name].cat.ordered]
    assert ordered == ["age", "edu", "lived", "household", "householdu18"]
    positions = np.column_stack([frame[name].cat.codes for name in frame])
    first = np.where(frame.columns == "householdu18", 0, 1)
    assert_array_equal(np.where(positions < 0, np.nan, positions + first), codes)
    # No one who is single, widowed or divorced has a dual income, and the retired are old.
    couples = {"Married", "Living together, not married"}
    assert set(frame["marital"][frame["dual_income"] == "Yes"].dropna()) == couples
    assert frame["age"][frame["occupation"] == "Retired"].mode()[0] == "65 and over"


def test_meanings_of_codes(no_files):
    write_marketing(no_files, Age="7", Householdu18="0", Household="9", Ethnic="", Marital="5")
    first = load_benchmark("marketing").data.iloc[0]
    found = first[["Age", "Householdu18", "Household", "Marital"]].to_list()
    assert found == ["65 and over", "0", "9 or more", "Single, never married"]
    assert pd.isna(first["Ethnic"])


def test_without_pandas_frames_are_of_polars_and_without_both_there_are_none(no_files, monkeypatch):
    write_marketing(no_files, Age="7", Ethnic="")
    with_pandas = load_benchmark("marketing").data
    monkeypatch.setitem(sys.modules, "pandas", None)
    frame = load_benchmark("marketing").data
    assert isinstance(frame, pl.DataFrame) and isinstance(frame["Age"].dtype, pl.Enum)
    assert isinstance(frame["Sex"].dtype, pl.Categorical)
    assert frame["Age"][0] == "65 and over" and frame["Ethnic"][0] is None
    for name in frame.columns:
        assert frame[name].fill_null("").to_list() == with_pandas[name].astype(object).fillna("").to_list()
    monkeypatch.setitem(sys.modules, "polars", None)
    array = load_benchmark("marketing").data
    assert isinstance(array, np.ndarray) and array[0, 2] == 7 and np.isnan(array[0, 11])
    with pytest.raises(ImportError, match="needs pandas or polars, and neither is installed.*as_frame=False"):
        load_benchmark("marketing", as_frame=True)


def test_balance_scale_needs_no_file_and_is_a_frame_on_request(no_files):
    X, y = make_balance_scale()
    found = load_benchmark("BS")
    assert isinstance(found.data, np.ndarray)
    assert_array_equal(found.data, X)
    assert_array_equal(found.target, y)
    assert found.feature_names == ["left_weight", "left_distance", "right_weight", "right_distance"]
    frame, y_beside_frame = load_benchmark("bs", return_X_y=True, as_frame=True)
    assert isinstance(frame, pd.DataFrame) and list(frame.columns) == found.feature_names
    assert_array_equal(frame.to_numpy(), X)
    assert_array_equal(y_beside_frame, y)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make_saddle(0), "n_samples is 0; at least 1"),
        (lambda: make_saddle(10, noise=-1.0), "noise is -1.0; a finite standard deviation"),
        (lambda: cut_by_rank([1.0, np.nan], 2), r"shape \(2,\) and 1 value\(s\) that are not finite"),
        (lambda: cut_by_rank([[1.0, 2.0]], 2), r"shape \(1, 2\)"),
        (lambda: cut_by_rank([1.0, 2.0], 3), r"n_classes is 3 for 2 row\(s\)"),
        (lambda: load_benchmark("iris"), r"name is 'iris'; the benchmark sets are 'bs', .*'census'"),
        (lambda: load_benchmark("bs", as_frame="pandas"), "as_frame is 'pandas'; True, False or 'auto'"),
    ],
)
def test_impossible_parameters_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_codes_without_a_meaning_are_refused(no_files):
    write_marketing(no_files, Age="8")
    with pytest.raises(ValueError, match=r"marketing\.csv holds 8 in the column 'Age'; 1 to 7 or an empty"):
        load_benchmark("marketing")
    assert load_benchmark("marketing", as_frame=False).data[0, 2] == 8
    path = no_files / "marketing.csv"
    path.write_text(path.read_text().replace("Age", "Years"))
    with pytest.raises(ValueError, match=r"has a column 'Years'; sex, marital, .*as_frame=False"):
        load_benchmark("marketing")


def test_files_are_looked_for_in_turn(no_files, monkeypatch, tmp_path):
    places = [tmp_path / "given", tmp_path / "environment", no_files]
    monkeypatch.setenv("ISBOR_DATA", str(places[1]))
    for place in reversed(places):  # each new file stands before those already there
        write_swd(place, swd_lines())
        found = load_benchmark("SWD", data_home=places[0])
        assert str(place) in found.DESCR
    assert np.isnan(found.data[0, 0]) and np.isnan(found.data).sum() == 1  # the missing field
    assert_array_equal(np.bincount(found.target)[1:], [250] * 4)


def test_a_file_that_cannot_be_had_says_where_it_was_looked_for_and_what_to_do(no_files, tmp_path):
    with pytest.raises(ConnectionError, match=r"swd\.csv is in none of .*ISBOR_DATA") as caught:
        load_benchmark("swd", data_home=tmp_path / "given")
    for part in (str(tmp_path / "given"), str(no_files), "no route to host"):
        assert part in str(caught.value)
    with pytest.raises(FileNotFoundError, match=r"marketing\.csv is in none of .*\n.*ElemStatLearn"):
        load_benchmark("marketing")


def test_a_download_is_kept_in_the_cache_and_reads_back_equal(no_files, openml):
    rng = np.random.default_rng(0)
    data = rng.normal(size=(8192, 8))
    data[3, 2] = np.nan
    fetch = openml(data, rng.random(8192))
    downloaded, cached = load_benchmark("bank"), load_benchmark("bank")
    assert [call.kwargs["data_id"] for call in fetch.call_args_list] == [572]
    assert "OpenML" in downloaded.DESCR and str(no_files) in cached.DESCR
    assert_array_equal(downloaded.data, data)
    assert_array_equal(cached.data, data)
    assert_array_equal(downloaded.target, cached.target)
    assert cached.feature_names == [f"a{i}" for i in range(8)]
    assert [path.name for path in no_files.iterdir()] == ["bank8fm.csv.gz"]  # no part left behind
    assert gzip.decompress((no_files / "bank8fm.csv.gz").read_bytes()).startswith(b"a0,a1,")


def test_a_download_of_another_shape_is_refused_and_not_kept(no_files, openml):
    openml(np.ones((10, 8)), np.arange(10.0))
    message = r"OpenML data set 572 holds .* shape \(10, 8\); \(8192, 8\) is needed"
    with pytest.raises(ValueError, match=message):
        load_benchmark("bank")
    assert not no_files.exists()


def test_nominal_targets_of_a_download_are_ranked(no_files, openml):
    openml(np.ones((1000, 10)), np.resize(np.array(["2", "3", "4", "5"], dtype=object), 1000))
    assert_array_equal(load_benchmark("swd").target[:4], [1, 2, 3, 4])


def test_a_cache_that_cannot_be_written_costs_only_the_cache(no_files, openml, caplog):
    no_files.parent.mkdir()
    no_files.write_text("a file where the directory should be")
    openml(np.ones((8192, 8)), np.arange(8192.0))
    assert load_benchmark("bank").data.shape == (8192, 8)
    assert "could not be stored in the cache" in caplog.text


def test_a_failed_write_leaves_nothing_behind(no_files, monkeypatch):
    monkeypatch.setattr(os, "replace", Mock(side_effect=OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_table(no_files / "x.csv", ["a"], np.ones((2, 1)), np.ones(2))
    assert list(no_files.iterdir()) == []


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda lines: lines[:-1], r"shape \(999, 10\); \(1000, 10\) is needed"),
        (lambda lines: [lines[0].replace("target", "Out1"), *lines[1:]], "last column named 'target'"),
        (lambda lines: [*lines[:-1], lines[-1] + ",7"], "rows of numbers as long as the header"),
        (
            lambda lines: [*lines[:-1], lines[-1].replace(",", ",x", 1)],
            "is not a benchmark file: could not convert",
        ),
        (lambda lines: [*lines[:-1], lines[-1][:-1]], r"has row\(s\) without a target"),
        (lambda lines: [line[:-1] + "1" if i else line for i, line in enumerate(lines)], "holds 1 classes"),
        (lambda lines: [], "is not a benchmark file"),
    ],
)
def test_a_bad_file_is_named(no_files, spoil, message):
    write_swd(no_files, spoil(swd_lines()))
    with pytest.raises(ValueError, match=message) as caught:
        load_benchmark("swd")
    assert str(no_files / "swd.csv") in str(caught.value)


@pytest.mark.parametrize(
    "content", [b"not gzip", gzip.compress(b"a,target\n1,2\n" * 50)[:-12]], ids=["no archive", "cut off"]
)
def test_a_damaged_archive_is_named(no_files, content):
    no_files.mkdir(parents=True)
    (no_files / "bank8fm.csv.gz").write_bytes(content)
    with pytest.raises(ValueError, match=r"bank8fm\.csv\.gz is not a benchmark file: "):
        load_benchmark("bank")
