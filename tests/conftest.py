import pytest
from hypothesis import settings

from isbor.search.compilation import ensure_compiled
from tests.problems import noisy_rows

# No deadlines: the machine may be busy, and the first example of a process may wait for compiled code.
settings.register_profile("isbor", deadline=None)
settings.load_profile("isbor")


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
