import numpy as np
import pytest

from isbor import GPOR, ISBOR, ISVOR, KDLOR, SBOR, SVOR
from isbor.estimators.parameters import ParameterError

X = np.arange(12.0)[:, None]
Y = np.arange(12) // 4


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"C": float("nan")}, "SVOR has C=nan: a finite number above 0 is needed."),
        ({"C": np.inf}, "SVOR has C=inf: a finite number above 0 is needed."),
        ({"C": True}, "SVOR has C=True: a finite number above 0 is needed."),
        ({"C": "1"}, "SVOR has C='1': a finite number above 0 is needed."),
        ({"C": [1.0]}, "SVOR has C=[1.0]: a finite number above 0 is needed."),
        ({"coef0": None}, "SVOR has coef0=None: a finite number is needed."),
        ({"degree": 2.0}, "SVOR has degree=2.0: an integer of at least 1 is needed."),
        ({"degree": True}, "SVOR has degree=True: an integer of at least 1 is needed."),
        ({"probability": 1}, "SVOR has probability=1: True or False is needed."),
        (
            {"kernel": ["rbf"]},
            "SVOR has kernel=['rbf']: 'rbf', 'linear', 'poly' or 'precomputed' is needed.",
        ),
        ({"n_jobs": 1.5}, "SVOR has n_jobs=1.5: an integer or None is needed."),
        (
            {"class_weight": "even"},
            "SVOR has class_weight='even': a dict, 'balanced' or None is needed.",
        ),
        (
            {"random_state": -1},
            "SVOR has random_state=-1: an integer from 0 to 2**32 - 1, a RandomState or None is needed.",
        ),
        (
            {"random_state": "0"},
            "SVOR has random_state='0': an integer from 0 to 2**32 - 1, a RandomState or None is needed.",
        ),
        (
            {"C": 0, "tol": -1},
            "SVOR has C=0: a finite number above 0 is needed; tol=-1: a finite number above 0 is needed.",
        ),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_error_names_what_was_found_and_what_is_needed(parameters, message):
    with pytest.raises(ParameterError) as error:
        SVOR(**parameters).fit(X, Y)
    assert str(error.value) == message


def test_error_is_a_value_error_and_a_type_error():
    for error in (ValueError, TypeError):
        with pytest.raises(error, match="callback='print': a function or None is needed"):
            ISBOR(callback="print").fit(X, Y)


def test_a_long_value_is_cut():
    with pytest.raises(ParameterError, match=r"C=\[0, 1, 2, 3, 4, 5, \.\.\.\]: a finite"):
        KDLOR(C=list(range(1000))).fit(X, Y)


@pytest.mark.parametrize(
    "parameters",
    [
        {"C": np.float32(1.0), "degree": np.int64(2), "probability": np.False_},
        {"C": 1, "coef0": -1, "n_jobs": np.int32(1)},
        {"random_state": np.random.RandomState(0), "class_weight": {0: 2.0}},
        {"random_state": np.uint8(0), "kernel": np.str_("linear")},
    ],
    ids="-".join,
)
def test_scalars_of_numpy_are_accepted(parameters):
    KDLOR(**parameters).fit(X, Y)


@pytest.mark.parametrize("system", [GPOR, ISBOR, ISVOR, KDLOR, SBOR, SVOR])
def test_no_parameter_goes_unchecked(system):
    class Odd:
        """Of no type that a parameter may have."""

    for name in system().get_params():
        with pytest.raises(ValueError, match=rf"\b{name}\b.*(is needed|Pass a list)"):
            system(**{name: Odd()}).fit(X, Y)
