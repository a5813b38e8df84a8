# SPDX-License-Identifier: MIT
"""Finds the includes, functions and calls of a C file by its outer form, without a parser.

It relies on the layout of clang-format: the braces of a function are in column 0,
and a statement is indented by four columns for each level of nesting.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass

INDENT = 4

_OPAQUE = re.compile(
    r"""
      /\*.*?\*/                     # comment
    | //[^\n]*                      # comment to the end of the line
    | "(?:\\.|[^"\\\n])*"           # string
    | '(?:\\.|[^'\\\n])*'           # character
    """,
    re.VERBOSE | re.DOTALL,
)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)
_CONTROL = re.compile(r"(?:\} *)?(?:if|else|for|while|do|switch)\b")


@functools.lru_cache(maxsize=4096)
def blank(text: str) -> str:
    """The text with spaces in place of comments and of the content of strings.

    Every other character keeps its line and column.
    """

    def hide(match: re.Match[str]) -> str:
        found = match.group()
        if found[0] in "\"'":
            return found[0] + " " * (len(found) - 2) + found[0]
        return re.sub(r"[^\n]", " ", found)

    return _OPAQUE.sub(hide, text)


@dataclass(frozen=True)
class Include:
    line: int
    path: str
    ours: bool  # in quotes


def includes(text: str) -> list[Include]:
    """The #include lines, in order, without those in comments."""
    code = blank(text)
    found = []
    for match in _INCLUDE.finditer(text):
        if code[match.start() : match.end()].strip().startswith("#"):
            line = text.count("\n", 0, match.end()) + 1
            found.append(Include(line, match.group(1) or match.group(2), bool(match.group(1))))
    return found


@dataclass(frozen=True)
class Function:
    name: str
    line: int  # of the opening brace
    length: int  # lines, both braces included
    depth: int  # of the deepest control statement; 1 is not nested
    deepest_line: int


def functions(text: str) -> Iterator[Function]:
    """Every function body: from a `{` in column 0 to the next `}` there."""
    lines = blank(text).splitlines()
    opening = None
    for index, line in enumerate(lines):
        if line.rstrip() == "{":
            opening = index
        elif line.startswith("}") and opening is not None:
            depth, deepest = _nesting(lines, opening + 1, index)
            name = _name_before(lines, opening)
            yield Function(name, opening + 1, index - opening + 1, depth, deepest + 1)
            opening = None


def _nesting(lines: list[str], begin: int, end: int) -> tuple[int, int]:
    depth, deepest = 0, begin
    for index in range(begin, end):
        code = lines[index].lstrip(" ")
        if not _CONTROL.match(code) or _ends_do(code):
            continue
        level = (len(lines[index]) - len(code)) // INDENT
        if level > depth:
            depth, deepest = level, index
    return depth, deepest


def _ends_do(code: str) -> bool:
    return code.startswith("}") and "while" in code and code.rstrip().endswith(";")


def _name_before(lines: list[str], opening: int) -> str:
    """The name of the function whose body opens here: the word before its parameters."""
    head = ""
    for index in range(opening - 1, -1, -1):
        line = lines[index]
        if not line.strip() or line.startswith(("}", "#")) or line.rstrip().endswith(";"):
            break
        head = line + " " + head
    match = re.search(r"(\w+)\s*\(", re.sub(r"__attribute__\s*\(\(.*?\)\)", "", head))
    return match.group(1) if match else "?"


def calls(text: str, name: str) -> Iterator[int]:
    """The lines that call or declare `name`, without comments and strings."""
    code = blank(text)
    for match in re.finditer(rf"(?<![\w.>]){re.escape(name)}\s*\(", code):
        yield code.count("\n", 0, match.start()) + 1
