# SPDX-License-Identifier: MIT
"""Reads src/site/mime.def and draws it as the table of docs/media-types.md."""

from __future__ import annotations

import re

LINE = re.compile(
    r'^MIME\("([^"]+)", "([^"]+)", (FIXED|FILL)\)|^/\* ([^*]+?)(?:, [^*]*)? \*/$', re.M
)
MARK = "<!-- drawn from src/site/mime.def by tools/tidy.py -->\n"
END = "<!-- end -->"


def _section(title: str, types: dict[str, list[str]]) -> str:
    rows = "".join(f"| `{name}` | {' '.join(types[name])} |\n" for name in types)
    return f"\n## {title}\n\n| type | endings |\n|---|---|\n{rows}"


def tables(mime_def: str) -> str:
    """A table for each section of the file: a type, and the endings that have it."""
    drawn, title, types = "", "", dict[str, list[str]]()
    for ending, name, trust, heading in LINE.findall(mime_def):
        if heading:
            drawn += _section(title, types) if types else ""
            title, types = heading, {}
        else:
            types.setdefault(name, []).append(ending if trust == "FIXED" else f"{ending}\\*")
    return drawn + _section(title, types)


def with_tables(page: str, mime_def: str) -> str:
    """The page with the tables between its marks drawn again."""
    before, begin, rest = page.partition(MARK)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError("the marks of the media types are missing")
    return f"{before}{begin}{tables(mime_def)}\n{end}{after}"
