# SPDX-License-Identifier: MIT
"""Makes the folder that the conformance cases are served from, as fixture.txt lists it."""

from __future__ import annotations

import os
from pathlib import Path

from tests.e2e.cases import expand

DESCRIPTION = Path(__file__).resolve().parent.parent / "conformance/fixture.txt"

# Sun, 06 Nov 1994 08:49:37 GMT
MODIFIED_S = 784111777


def offsets(size: int) -> bytes:
    """Bytes that name their place: every 8 bytes are the offset of the first of them."""
    return b"".join(b"%07d\n" % at for at in range(0, size, 8))[:size]


def _make(verb: str, path: str, rest: bytes) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    match verb:
        case "file":
            Path(path).write_bytes(rest)
        case "offsets":
            Path(path).write_bytes(offsets(int(rest)))
        case "link":
            os.symlink(rest, os.fsencode(path))
        case "fifo":
            os.mkfifo(path)
        case "mode":
            Path(path).chmod(int(rest, 8))
        case "time":
            os.utime(path, (int(rest), int(rest)))
        case _:
            raise ValueError(f"fixture.txt does not know `{verb}`")


def make_folder(top: Path) -> Path:
    """Makes all files below `top`; returns the root to serve."""
    root = top / "site"
    late = []
    for line in DESCRIPTION.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        verb, name, *rest = line.split(" ", 2)
        thing = (verb, f"{root}/{os.fsdecode(expand(name))}", expand(rest[0] if rest else ""))
        if verb in ("mode", "time"):
            late.append(thing)
        else:
            _make(*thing)
    for folder, _, files in os.walk(top):
        for path in [folder, *(f"{folder}/{name}" for name in files)]:
            os.utime(path, (MODIFIED_S, MODIFIED_S), follow_symlinks=False)
    for thing in late:
        _make(*thing)
    return root
