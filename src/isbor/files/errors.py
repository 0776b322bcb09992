"""The error of files that are no model files, and of models that no file can hold."""

__all__ = ["ModelFileError", "damaged"]


class ModelFileError(ValueError):
    """A file is not a model file that this version can read, or a model cannot be stored in one."""


def damaged(what: str) -> ModelFileError:
    """Return the error for a file whose content cannot be that of a model."""
    return ModelFileError(f"The file is damaged: {what}. Use another copy of it, or save the model again.")
