"""How options are read."""

__all__ = ["names"]


def names(text: str | None) -> list[str] | None:
    """Return names separated by commas."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]
