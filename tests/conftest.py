import pytest

from tests.problems import noisy_rows


@pytest.fixture(scope="session")
def noisy():
    return noisy_rows(150, seed=3)


@pytest.fixture(scope="session")
def few(noisy):
    """Enough rows for promises that hold whatever the rows are."""
    return noisy[0][:60], noisy[1][:60]
