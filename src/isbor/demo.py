"""The command ``isbor demo``: `ISBOR` and two other models on the paper's saddle, in a table and a picture.

The others are scikit-learn's gradient-boosted trees, which do not use the order of the classes, and the
linear ordered probit, which does but is linear. All predict the median of their distribution over the
classes, the best decision for the mean absolute error. The true latent score, without noise, gives the lowest
error that can be expected.

All models run on one thread. That makes their times comparable. More threads gain little on so few rows, and
on busy cores they can slow the trees down to a minute.
"""

import io
import os
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

from isbor._core.trace import Step
from isbor._core.types import FloatArray, IntArray
from isbor.datasets import SADDLE_THRESHOLDS, make_saddle, saddle_labels
from isbor.estimators import ISBOR
from isbor.estimators.linear import OrderedProbit
from isbor.metrics import accuracy, mean_absolute_error, ranked_probability_score
from isbor.plots import LatentDisplay, require_matplotlib
from isbor.search.compilation import compile_search, ensure_compiled

__all__ = ["LEAST_ROWS", "Demo", "Outcome", "check_request", "run_demo"]

LEAST_ROWS = 100  # for training: with fewer, one of the five classes may be missing
_LARGEST_SEED = 2**32 - 1  # scikit-learn's limit
_NOISE = 0.5
_CLASSES = np.arange(1, len(SADDLE_THRESHOLDS) + 2)
_ROWS_IN_PICTURE = 500  # test rows; more would cover the colours
_ENDINGS = (".pdf", ".png", ".svg")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The results of one model on the test rows."""

    name: str
    mae: float
    accuracy: float
    rps: float | None = None  # None without probabilities
    size: str | None = None  # such as "4 vectors"
    seconds: float | None = None  # of the fit


@dataclass(frozen=True, slots=True)
class Demo:
    """The results of a demo."""

    model: ISBOR
    n_train: int
    n_test: int
    isbor: Outcome
    peers: tuple[Outcome, ...]
    truth: Outcome  # of the true latent score
    noise_to_signal: float  # the true value, to compare with the model's `sigma_`
    picture: Path | None = None  # None if there is none


def run_demo(
    n_train: int = 10_000,
    n_test: int = 11_000,
    *,
    seed: int = 0,
    output: Path | None = Path("isbor-demo.png"),
    console: Console | None = None,
) -> Demo:
    """Fit ISBOR and two other models to the saddle and compare them on test rows.

    Parameters
    ----------
    n_train, n_test : int
        Number of training rows, at least `LEAST_ROWS`, and of test rows.
    seed : int
        Random seed, from 0 to 2³² - 1.
    output : Path or None
        File for the picture, ending in .png, .pdf or .svg; None draws no picture.
    console : rich Console or None
        Where to print; None prints nothing.

    Returns
    -------
    Demo

    Raises
    ------
    OSError
        If `output` cannot be written. This is checked first.
    ValueError
        If a number is out of range, or `output` has another ending.
    """
    check_request(n_train, n_test, seed=seed, output=output)
    console = Console(quiet=True) if console is None else console
    _say(
        console,
        "Synthetic data: five ordered classes, cut from a saddle.\n"
        f"{n_train:,} training rows, {n_test:,} test rows.",
    )

    rng = np.random.default_rng(seed)
    X, y, score = make_saddle(n_train, noise=_NOISE, random_state=rng, return_score=True)
    X_test, y_test, score_test = make_saddle(n_test, noise=_NOISE, random_state=rng, return_score=True)
    with console.status("Loading compiled code (the first time it is compiled, in about half a minute)"):
        ensure_compiled()
        compile_search()
    with console.status("ISBOR") as progress, threadpool_limits(1):
        model = ISBOR(n_jobs=1, callback=lambda step: progress.update(_describe(step)))
        isbor = _assess("ISBOR", model, X, y, X_test, y_test)
        progress.update("Gradient-boosted trees")
        trees = HistGradientBoostingClassifier(random_state=seed)
        of_trees = _assess("Gradient-boosted trees", trees, X, y, X_test, y_test)
        progress.update("Linear ordered probit")
        linear = _assess("Linear ordered probit", OrderedProbit(n_jobs=1), X, y, X_test, y_test)
    model.callback = None  # its progress line is gone
    n_trees = trees.n_iter_ * trees.n_trees_per_iteration_
    found = Demo(
        model=model,
        n_train=n_train,
        n_test=n_test,
        isbor=replace(isbor, size=f"{model.n_relevance_:,} vectors"),
        peers=(replace(of_trees, size=f"{n_trees:,} trees"), replace(linear, size=f"{X.shape[1]} slopes")),
        truth=_outcome("True latent score", y_test, saddle_labels(score_test)),
        noise_to_signal=_NOISE / float(score.std()),
    )
    console.print(_table(found))
    _say(
        console,
        "MAE: mean absolute error, RPS: ranked probability score; lower is better. Seconds: fit on one "
        "thread. The last row predicts from the true latent score, without noise: no model is better on "
        "average.\n",
    )
    _say(console, " ".join(_findings(found)))
    if output is not None:
        try:
            _draw(found, X_test, y_test, output)
        except ImportError as error:
            _say(console, f"\nNo picture: {error}", soft_wrap=True)
        else:
            found = replace(found, picture=output.absolute())
            _say(console, f"\nPicture: {found.picture}", soft_wrap=True)
    _say(
        console,
        "\nTo use it on your own data (y: ordered labels, for instance 1 to 5):\n\n"
        "    from isbor import ISBOR\n"
        "    ISBOR().fit(X, y).predict_proba(X_new)",
        soft_wrap=True,
    )
    return found


def check_request(n_train: int, n_test: int, *, seed: int, output: Path | None) -> None:
    """Raise a ValueError or an OSError if `run_demo` cannot run with these arguments."""
    if n_train < LEAST_ROWS:
        raise ValueError(
            f"There are {n_train} training rows; at least {LEAST_ROWS} are needed, so that all five classes "
            "occur."
        )
    if n_test < 1:
        raise ValueError(f"There are {n_test} test rows; at least 1 is needed.")
    if not 0 <= seed <= _LARGEST_SEED:
        raise ValueError(f"The seed is {seed}; a whole number from 0 to {_LARGEST_SEED} is needed.")
    if output is not None:
        _check_output(output)


def _check_output(output: Path) -> None:
    if output.suffix.lower() not in _ENDINGS:
        raise ValueError(
            f"The picture cannot be written to {str(output)!r}: the name must end in one of "
            f"{', '.join(_ENDINGS)}."
        )
    if output.is_dir():
        raise IsADirectoryError(f"{str(output)!r} is a directory; give the name of a file for the picture.")
    directory = output.absolute().parent
    if not directory.is_dir():
        raise FileNotFoundError(
            f"There is no directory {str(directory)!r} for the picture; create it or choose another."
        )
    if not os.access(output if output.exists() else directory, os.W_OK):
        raise PermissionError(f"The picture cannot be written to {str(output)!r}; choose another place.")


# --- Models -----------------------------------------------------------------------------------------------


def _median_labels(proba: FloatArray) -> IntArray:
    """Return the label at which the cumulative probability reaches one half."""
    labels: IntArray = _CLASSES[np.argmax(proba.cumsum(axis=1) >= 0.5, axis=1)]
    return labels


def _assess(
    name: str, model: Any, X: FloatArray, y: IntArray, X_test: FloatArray, y_test: IntArray
) -> Outcome:
    """Fit a model and evaluate it on the test rows."""
    start = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - start
    proba = model.predict_proba(X_test)
    return replace(
        _outcome(name, y_test, _median_labels(proba)),
        rps=ranked_probability_score(y_test, proba, labels=_CLASSES),
        seconds=seconds,
    )


def _outcome(name: str, y: IntArray, predicted: IntArray) -> Outcome:
    return Outcome(
        name, mean_absolute_error(y, predicted, labels=_CLASSES), accuracy(y, predicted, labels=_CLASSES)
    )


# --- Report -----------------------------------------------------------------------------------------------


def _say(console: Console, text: str, *, soft_wrap: bool = False) -> None:
    """Print plain text, without rich's markup and colours."""
    console.print(text, markup=False, highlight=False, soft_wrap=soft_wrap)


def _describe(step: Step) -> str:
    # Short enough for one line of 80 columns.
    doing = {"selection": "comparison", "width": "width search", "fit": "fit"}[step.stage]
    return (
        f"ISBOR, {doing}: {step.n_active} functions on {step.n_rows:,} rows, "
        f"log evidence {step.log_evidence:,.1f}"
    )


def _table(found: Demo) -> Table:
    table = Table(box=SIMPLE_HEAD)
    table.add_column("model")
    for heading in ("MAE", "accuracy", "RPS", "size", "seconds"):
        table.add_column(heading, justify="right")
    for outcome in (found.isbor, *found.peers, found.truth):
        table.add_row(
            outcome.name,
            f"{outcome.mae:.4f}",
            f"{outcome.accuracy:.2%}",
            "—" if outcome.rps is None else f"{outcome.rps:.4f}",
            outcome.size or "—",
            "—" if outcome.seconds is None else f"{outcome.seconds:.1f}",
            style="bold" if outcome is found.isbor else None,
            end_section=outcome is found.peers[-1],
        )
    return table


def _findings(found: Demo) -> list[str]:
    """Return the results in sentences."""
    model = found.model
    excess = round(found.isbor.mae - found.truth.mae, 4)
    if excess == 0:
        distance = "the same as"
    else:
        distance = f"{abs(excess):.4f} {'above' if excess > 0 else 'below'}"
    return [
        f"ISBOR needs {model.n_relevance_:,} relevance vectors for {found.n_train:,} training rows.",
        f"Its MAE is {distance} that of the true latent score.",
        f"It estimates the ratio of noise to signal as {model.sigma_:.4f}; the true value is "
        f"{found.noise_to_signal:.4f}.",
    ]


def _draw(found: Demo, X: FloatArray, y: IntArray, output: Path) -> None:
    """Write the picture of the model, with some test rows."""
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 6.4), dpi=140, layout="constrained")
    ax = figure.add_subplot()
    shown = slice(_ROWS_IN_PICTURE)
    LatentDisplay.from_estimator(found.model, X[shown], y[shown], ax=ax)
    ax.set_title(
        f"Latent score and predicted classes of ISBOR: {found.model.n_relevance_:,} relevance vectors\n"
        f"for {found.n_train:,} training rows, MAE {found.isbor.mae:.4f} on {found.n_test:,} test rows",
        fontsize=11,
    )
    # In memory first, so that an existing file is replaced as a whole or not at all.
    picture = io.BytesIO()
    figure.savefig(picture, format=output.suffix.lower().removeprefix("."))
    output.write_bytes(picture.getvalue())
