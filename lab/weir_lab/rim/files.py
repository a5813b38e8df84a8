# SPDX-License-Identifier: MIT
"""Files that are replaced whole. A full disk, or a kill, leaves the old ones.

A new file is written beside the old one, and takes its name only once it is on disk.
"""

import contextlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from weir_lab.rim.errors import LabError

PART = ".part"  # behind the name of a file that is being written


def replace(contents: Mapping[Path, str | bytes]) -> None:
    """Writes all files, and then replaces the old ones. Text becomes UTF-8.

    A symbolic link remains, and a file keeps its mode.

    Raises:
        LabError: a file could not be written. If the disk is full, none is replaced.
    """
    parts = {path: _beside(path) for path in contents}
    path = Path()
    try:
        for path, content in contents.items():
            _write(parts[path], content)
            with contextlib.suppress(FileNotFoundError):
                shutil.copymode(path, parts[path])
        for path in contents:
            parts[path].replace(path.resolve())
    except OSError as error:
        raise LabError(f"{path}: {error.strerror}") from error
    finally:
        for part in parts.values():
            with contextlib.suppress(OSError):  # most have their names
                part.unlink()


def _beside(path: Path) -> Path:
    own = path.resolve()
    return own.with_name(own.name + PART)


def encoded(text: str) -> bytes:
    """The text in UTF-8. Bytes of a path that are not UTF-8 are escaped, in JSON as JSON does."""
    return text.encode(errors="backslashreplace")


def _write(path: Path, content: str | bytes) -> None:
    with path.open("wb") as file:
        file.write(content if isinstance(content, bytes) else encoded(content))
        file.flush()
        os.fsync(file.fileno())
