import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import pytest

from isbor.datasets import make_saddle


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="session")
def saddle():
    return make_saddle(300, random_state=0)
