import errno
import os
import subprocess
import sys

import pytest

from isbor._core.whole_files import write_whole


def test_a_file_that_is_replaced_is_replaced_as_a_whole(tmp_path):
    file = tmp_path / "file"
    write_whole(file, b"before")
    write_whole(file, b"after")
    assert file.read_bytes() == b"after"
    assert os.listdir(tmp_path) == ["file"]


FULL = """
import resource, sys
from pathlib import Path
from isbor._core.whole_files import write_whole
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    write_whole(Path(sys.argv[1]), bytes(1_000_000))
except OSError as error:
    print(error.errno)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no limits on file sizes")
def test_what_cannot_be_written_changes_nothing(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"before")
    done = subprocess.run([sys.executable, "-c", FULL, str(file)], capture_output=True, text=True, check=True)
    assert done.stdout == f"{errno.EFBIG}\n"
    assert file.read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["file"]


def test_an_interrupt_changes_nothing(tmp_path, monkeypatch):
    def interrupted(descriptor):
        raise KeyboardInterrupt

    file = tmp_path / "file"
    file.write_bytes(b"before")
    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_whole(file, b"after")
    assert file.read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["file"]
