import pytest

from isbor.search.compilation import ensure_compiled
from tests.problems import noisy_rows


def pytest_configure(config):
    """Compile before the workers begin, so that they need not all do it."""
    if not hasattr(config, "workerinput"):
        ensure_compiled()


@pytest.fixture(scope="session")
def noisy():
    return noisy_rows(150, seed=3)


@pytest.fixture(scope="session")
def few(noisy):
    """Enough rows for promises that hold whatever the rows are."""
    return noisy[0][:60], noisy[1][:60]
