"""The container: a zip archive of three members that are not compressed, with their checksums.

=============  ===============================================================
arrays.bin     all arrays, one after the other
model.json     everything else
sha256         checksums of the two, in the format of the program `sha256sum`
=============  ===============================================================

Since nothing is compressed, what is read is never larger than the file. Dates are fixed, so the same content
gives the same bytes.
"""

from hashlib import sha256
from io import BytesIO
from zipfile import ZIP_STORED, ZipFile, ZipInfo

from isbor.files.errors import ModelFileError, damaged

__all__ = ["packed", "unpacked"]

_MEMBERS = ["arrays.bin", "model.json", "sha256"]
_FIRST_BYTES = b"PK\x03\x04"  # of every zip archive that is not empty
_READABLE_BY_ALL = 0o644 << 16
_UNIX = 3


def packed(description: bytes, arrays: bytes) -> bytes:
    """Return the content of a file."""
    archive = BytesIO()
    with ZipFile(archive, "w", ZIP_STORED) as zipped:
        for name, content in zip(
            _MEMBERS, (arrays, description, _checksums(description, arrays)), strict=True
        ):
            member = ZipInfo(name)  # of 1 January 1980
            member.create_system, member.external_attr = _UNIX, _READABLE_BY_ALL
            zipped.writestr(member, content)
    return archive.getvalue()


def unpacked(content: bytes) -> tuple[bytes, bytes]:
    """Return description and arrays, checked by their checksums."""
    if not content.startswith(_FIRST_BYTES):
        raise ModelFileError(
            f"The file begins with {content[:8]!r}, so it is no model file of isbor. Pass a file that `save` "
            "wrote."
        )
    try:
        with ZipFile(BytesIO(content)) as zipped:
            members = zipped.infolist()
            names = [member.filename for member in members]
            if names != _MEMBERS:
                raise ModelFileError(
                    f"The file is a zip archive of {names[:5]}; a model file of isbor holds {_MEMBERS}. Pass "
                    "a file that `save` wrote."
                )
            if any(member.compress_type != ZIP_STORED for member in members):
                raise damaged("its members are compressed")
            arrays, description, checksums = (zipped.read(member) for member in members)
    except ModelFileError:
        raise
    except Exception as error:  # of many kinds: whatever reading a damaged archive may lead to
        raise damaged(f"its archive cannot be read ({error})") from error
    if checksums != _checksums(description, arrays):
        raise damaged("its checksum is wrong, so it is not as it was written")
    return description, arrays


def _checksums(description: bytes, arrays: bytes) -> bytes:
    lines = zip((arrays, description), _MEMBERS, strict=False)
    return "".join(f"{sha256(content).hexdigest()}  {name}\n" for content, name in lines).encode()
