"""`load`, which reads the files that `save` of an estimator writes."""

from os import PathLike
from pathlib import Path

from isbor.estimators.base import OrdinalClassifier
from isbor.estimators.gpor import GPOR
from isbor.estimators.isbor import ISBOR
from isbor.estimators.isvor import ISVOR
from isbor.estimators.kdlor import KDLOR
from isbor.estimators.linear import OrderedProbit
from isbor.estimators.restoring import restored
from isbor.estimators.sbor import SBOR
from isbor.estimators.svor import SVOR

__all__ = ["load"]

_KINDS: dict[str, type[OrdinalClassifier]] = {
    kind.__name__: kind for kind in (ISBOR, SBOR, SVOR, ISVOR, GPOR, KDLOR, OrderedProbit)
}


def load(path: str | PathLike[str]) -> OrdinalClassifier:
    """Read a fitted estimator from a file that its method `save` wrote.

    No content of a file makes this run code, so files need not be trusted. Everything in a file is checked
    before it is used. docs/model-files.md describes the format.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    estimator : object
        The estimator, of the class that was saved, with the same predictions and attributes. Its parameters
        `callback` and `checkpoint` are None.

    Raises
    ------
    ModelFileError
        A ValueError: the file is not a model file, is damaged, or has a format that only later versions read.
    OSError
        The file cannot be opened.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import isbor
    >>> from isbor.datasets import make_saddle
    >>> X, y = make_saddle(100, random_state=0)
    >>> model = isbor.KDLOR().fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(Path(folder) / "saddle.isbor")
    ...     again = isbor.load(Path(folder) / "saddle.isbor")
    >>> bool((again.predict_proba(X) == model.predict_proba(X)).all())
    True
    """
    return restored(_KINDS, Path(path).read_bytes())
