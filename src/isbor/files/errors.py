"""The error of files that are no model files, and of models that no file can hold."""

__all__ = ["ModelFileError", "damaged"]


class ModelFileError(ValueError):
    """A file is not a model file that this version can read, or a model cannot be stored in one.

    See Also
    --------
    load : Open a model file.
    ISBOR.save : Write one.

    Examples
    --------
    >>> import isbor, tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     try:
    ...         isbor.load(file.name)
    ...     except isbor.ModelFileError:
    ...         print("not a model file")
    not a model file
    """


def damaged(what: str) -> ModelFileError:
    """Return the error for a file whose content cannot be that of a model."""
    return ModelFileError(f"The file is damaged: {what}. Use another copy of it, or save the model again.")
