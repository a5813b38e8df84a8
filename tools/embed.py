#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes files as C arrays for a program that embeds them: plain, compressed, and with tags.

    tools/embed.py OUTPUT NAME=FILE...

Each file becomes an element PAGE_ASSET(name, media type, tag, bytes, compressed bytes) of the
output, which src/page/ includes. The same files always give the same output. The build runs this
program, so it needs the system's Python and no package.
"""

from __future__ import annotations

import gzip
import hashlib
import sys
from pathlib import Path

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
TAG_DIGITS = 16
NUMBERS_IN_LINE = 24


def bytes_of(name: str, data: bytes) -> str:
    rows = [
        ",".join(map(str, data[at : at + NUMBERS_IN_LINE]))
        for at in range(0, len(data), NUMBERS_IN_LINE)
    ]
    return f"static const unsigned char {name}[] = {{\n" + ",\n".join(rows) + "\n};\n"


def embed(files: dict[str, Path]) -> str:
    arrays, elements = "", ""
    for number, (name, path) in enumerate(sorted(files.items())):
        data = path.read_bytes()
        if not data:
            raise ValueError(f"{path} is empty")
        arrays += bytes_of(f"plain_{number}", data)
        arrays += bytes_of(f"packed_{number}", gzip.compress(data, mtime=0))
        tag = hashlib.sha256(data).hexdigest()[:TAG_DIGITS]
        elements += (
            f'    PAGE_ASSET("{name}", "{TYPES[path.suffix]}", "{tag}", '
            f"plain_{number}, packed_{number}) \\\n"
        )
    return f"{arrays}#define PAGE_ASSETS \\\n{elements}\n"


def main() -> int:
    output, *words = sys.argv[1:]
    files = {}
    for word in words:
        name, _, path = word.partition("=")
        files[name] = Path(path)
    Path(output).write_text(embed(files))
    return 0


if __name__ == "__main__":
    sys.exit(main())
