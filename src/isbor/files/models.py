"""Files of fitted estimators, whatever these are: their parameters, and their attributes of known types."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isbor._core.whole_files import write_whole
from isbor._version import __version__
from isbor.files.arrays import ArrayReader
from isbor.files.checks import check
from isbor.files.codecs import Reader, Writer, codec_of
from isbor.files.container import packed, unpacked
from isbor.files.errors import ModelFileError, damaged
from isbor.files.formats import FORMAT, in_this_format

__all__ = ["StoredModel", "content_of", "stored_model", "write_file"]

_MAX_DESCRIPTION = 64_000_000  # bytes of model.json
_MEMBERS = {"format", "isbor", "estimator", "parameters", "fitted", "objects", "arrays"}


@dataclass(frozen=True, slots=True)
class StoredModel:
    """What a file says of an estimator."""

    estimator: str  # name of its class
    parameters: dict[str, Any]
    fitted: dict[str, Any]  # attributes by name


def content_of(model: StoredModel, types: Mapping[str, Any]) -> bytes:
    """Return the content of a file; `types` are those of the attributes."""
    writer, parameter = Writer(), codec_of(Any)
    parameters = {name: parameter.write(value, writer) for name, value in sorted(model.parameters.items())}
    fitted = {
        name: codec_of(types[name]).write(value, writer) for name, value in sorted(model.fitted.items())
    }
    description = {
        "format": FORMAT,
        "isbor": __version__,
        "estimator": model.estimator,
        "parameters": parameters,
        "fitted": fitted,
        "objects": writer.objects,
        "arrays": writer.arrays.table,
    }
    text = json.dumps(description, separators=(",", ":"), allow_nan=False).encode()
    if len(text) > _MAX_DESCRIPTION:
        raise ModelFileError(
            f"The description of the model has {len(text)} bytes; files hold at most {_MAX_DESCRIPTION}. "
            "Pickle the model, or leave out columns of so many categories."
        )
    return packed(text, writer.arrays.content())


def stored_model(content: bytes, types: Mapping[str, Mapping[str, Any]]) -> StoredModel:
    """Return what a file says; `types` are those of the attributes of each class of estimators."""
    text, arrays = unpacked(content)
    if len(text) > _MAX_DESCRIPTION:
        raise damaged(f"model.json has {len(text)} bytes, which is more than any model needs")
    description = in_this_format(_parsed(text))
    try:
        if description.keys() != _MEMBERS:
            raise damaged("model.json lacks members, or has unknown ones")
        name, parameters, fitted = (description[key] for key in ("estimator", "parameters", "fitted"))
        if not isinstance(name, str) or name not in types:
            raise damaged(f"it holds an estimator {name!r}, which isbor does not have")
        if not isinstance(parameters, dict) or not isinstance(fitted, dict):
            raise damaged("it has no parameters, or no attributes")
        if not fitted.keys() <= types[name].keys():
            raise damaged(f"it holds attributes that {name} does not have")
        reader = Reader(ArrayReader(description["arrays"], arrays), description["objects"], check)
        return StoredModel(
            name,
            {key: codec_of(Any).read(node, reader) for key, node in parameters.items()},
            {key: codec_of(types[name][key]).read(node, reader) for key, node in fitted.items()},
        )
    except RecursionError as error:
        raise damaged("a parameter is nested too deeply") from error


def _parsed(text: bytes) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise damaged(f"model.json cannot be read ({error})") from error


def write_file(path: Path, content: bytes) -> None:
    """Write a model file as a whole, or leave what was there as it was."""
    try:
        write_whole(path, content)
    except OSError as error:
        is_folder_missing = isinstance(error, FileNotFoundError)
        remedy = "Create its folder first" if is_folder_missing else "Save it elsewhere"
        what = f"The model was not saved, and nothing was changed: {error.strerror}. {remedy}"
        raise OSError(error.errno, what, str(path)) from error
