"""The seven benchmark sets of the paper: files, shapes, descriptions and codes of categories."""

from dataclasses import dataclass, field

__all__ = ["BENCHMARKS", "Benchmark", "Codes"]


@dataclass(frozen=True, slots=True)
class Codes:
    """The categories that the codes first, first + 1, … of a column stand for."""

    categories: tuple[str, ...]
    ordered: bool = False
    first: int = 1


@dataclass(frozen=True, slots=True)
class Benchmark:
    """Description of one benchmark set."""

    file: str
    shape: tuple[int, int]  # rows, features
    n_classes: int
    continuous: bool  # whether the target in the file is a number, to be cut by rank
    openml_id: int | None
    about: str
    codes: dict[str, Codes] = field(default_factory=dict)  # of each categorical feature, by name


# From the help page of the set in the R package ElemStatLearn.
_MARKETING_CODES = {
    "sex": Codes(("Male", "Female")),
    "marital": Codes(
        (
            "Married",
            "Living together, not married",
            "Divorced or separated",
            "Widowed",
            "Single, never married",
        )
    ),
    "age": Codes(("14-17", "18-24", "25-34", "35-44", "45-54", "55-64", "65 and over"), ordered=True),
    "edu": Codes(
        (
            "Grade 8 or less",
            "Grades 9 to 11",
            "Graduated high school",
            "1 to 3 years of college",
            "College graduate",
            "Grad study",
        ),
        ordered=True,
    ),
    "occupation": Codes(
        (
            "Professional/managerial",
            "Sales worker",
            "Factory worker/laborer/driver",
            "Clerical/service worker",
            "Homemaker",
            "Student, high school or college",
            "Military",
            "Retired",
            "Unemployed",
        )
    ),
    "lived": Codes(
        (
            "Less than one year",
            "One to three years",
            "Four to six years",
            "Seven to ten years",
            "More than ten years",
        ),
        ordered=True,
    ),
    "dual_income": Codes(("Not married", "Yes", "No")),
    "household": Codes(("1", "2", "3", "4", "5", "6", "7", "8", "9 or more"), ordered=True),
    "householdu18": Codes(("0", "1", "2", "3", "4", "5", "6", "7", "8", "9 or more"), ordered=True, first=0),
    "status": Codes(("Own", "Rent", "Live with parents/family")),
    "home_type": Codes(("House", "Condominium", "Apartment", "Mobile home", "Other")),
    "ethnic": Codes(
        (
            "American Indian",
            "Asian",
            "Black",
            "East Indian",
            "Hispanic",
            "Pacific Islander",
            "White",
            "Other",
        )
    ),
    "language": Codes(("English", "Spanish", "Other")),
}

BENCHMARKS = {
    "bs": Benchmark(
        "balance_scale.csv",
        (625, 4),
        3,
        continuous=False,
        openml_id=11,
        about="Balance Scale (UCI): the side to which a loaded scale tips, 1 = left, 2 = balanced, "
        "3 = right. The full grid of 5^4 cases, without noise; computed from its rule if no file is found. "
        "A file may have the rows in another order.",
    ),
    "swd": Benchmark(
        "swd.csv",
        (1000, 10),
        4,
        continuous=False,
        openml_id=1028,
        about="Social Workers' Decisions (A. Ben-David): risk to a child in four grades, from ten scores. "
        "Only 280 rows are distinct, and equal rows may have different labels. "
        "Rows come in blocks of one class: shuffle before splitting.",
    ),
    "marketing": Benchmark(
        "marketing.csv",
        (8993, 13),
        9,
        continuous=False,
        openml_id=None,
        about="Marketing (Impact Resources, Inc., 1987; R package ElemStatLearn): household income in nine "
        "brackets, from 13 categorical features, five of them ordered. 2694 cells in 2117 rows are missing.",
        codes=_MARKETING_CODES,
    ),
    "bank": Benchmark(
        "bank8fm.csv.gz",
        (8192, 8),
        5,
        continuous=True,
        openml_id=572,
        about="Bank8FM (DELVE): rate of customers rejected by simulated banks, cut by rank into five "
        "classes.",
    ),
    "computer": Benchmark(
        "cpu_small.csv.gz",
        (8192, 12),
        5,
        continuous=True,
        openml_id=562,
        about="Computer activity (DELVE, cpu_small): share of time in user mode, cut by rank into five "
        "classes. The share has only 56 different values, so rows with the same share are in different "
        "classes, and part of the error cannot be avoided. Features have heavy tails.",
    ),
    "calhouse": Benchmark(
        "cal_housing.csv.gz",
        (20640, 8),
        5,
        continuous=True,
        openml_id=537,
        about="California housing (Pace & Barry, 1997; StatLib): median house value of a district, cut by "
        "rank into five classes. The features are totals, not averages as in scikit-learn's version. Rows "
        "are ordered by place: shuffle before splitting. The copy on OpenML has other column names and "
        "another order of columns.",
    ),
    "census": Benchmark(
        "house_16h.csv.gz",
        (22784, 16),
        5,
        continuous=True,
        openml_id=574,
        about="Census (DELVE, house_16H): median house price of a place in the 1990 US census, cut by rank "
        "into five classes. The feature P1, a population count, is extremely skewed.",
    ),
}
