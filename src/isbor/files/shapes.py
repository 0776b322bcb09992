"""Shapes of the arrays of an object: which of their sizes are the same.

A line such as ``"centres m d, metric m d, offset m"`` names members, or members of members, and their sizes.
A tuple has one size. The sum of sizes that are known already is written ``m+k``.
"""

from operator import attrgetter

import numpy as np

from isbor.files.errors import damaged

__all__ = ["sizes_of"]


def sizes_of(value: object, shapes: str) -> dict[str, int]:
    """Return the sizes by their letters; raise `ModelFileError` if two that should be the same are not."""
    known: dict[str, int] = {}
    for part in filter(None, shapes.split(", ")):
        name, *letters = part.split(" ")
        member = attrgetter(name)(value)
        sizes = (len(member),) if isinstance(member, tuple) else np.shape(member)
        if len(sizes) != len(letters):
            raise damaged(f"{name} of {type(value).__name__} has {len(sizes)} dimensions")
        for letter, size in zip(letters, sizes, strict=True):
            expected = sum(known[term] for term in letter.split("+")) if "+" in letter else known.get(letter)
            if expected is None:
                known[letter] = size
            elif size != expected:
                raise damaged(
                    f"{name} of {type(value).__name__} has {size} entries where {expected} are needed"
                )
    return known
