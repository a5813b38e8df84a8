# SPDX-License-Identifier: MIT
"""Reads the conformance cases by the same rules as the reader in C.

tests/conformance/README.md describes the format. Only a running server knows its
entity tags, so their places stay in the text until `Case.filled`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

CASES = Path(__file__).resolve().parent.parent / "conformance/cases"
ETAG = re.compile(r"\{etag ([^}]*)\}")
BRACES = re.compile(r"\{(?:(\d+)\*([^}]*)|[^}]*)\}")
ESCAPE = re.compile(r"\\(?:([rnt0\\])|x([0-9A-Fa-f]{2})|.?)", re.DOTALL)
ONLY_HTTP1 = "HTTP/1.1 only: "
PLAIN = {"r": "\r", "n": "\n", "t": "\t", "0": "\0", "\\": "\\"}


class CaseError(Exception):
    """A case file with an error in its format."""


def _unescape(match: re.Match[str]) -> str:
    plain, code = match.groups()
    if code:
        return chr(int(code, 16))
    if plain:
        return PLAIN[plain]
    raise CaseError(f"a backslash that begins no escape: {match[0]!r}")


def expand_plain(text: str) -> str:
    """Text without braces; one character for each byte."""
    if wrong := re.search(r"[^ -~]", text):
        raise CaseError(f"a byte that must be written as \\xHH: {wrong[0]!r}")
    return ESCAPE.sub(_unescape, text)


def expand(text: str) -> bytes:
    """The bytes that a written form stands for."""
    done, end = [], 0
    for braces in BRACES.finditer(text):
        if braces[1] is None:
            raise CaseError(f"braces that are neither a repetition nor a name: {braces[0]}")
        done.append(expand_plain(text[end : braces.start()]))
        done.append(int(braces[1]) * expand_plain(braces[2]))
        end = braces.end()
    rest = text[end:]
    if "{" in rest:
        raise CaseError("a brace that is not closed")
    done.append(expand_plain(rest))
    return "".join(done).encode("latin-1")


@dataclass(frozen=True)
class Case:
    """A request and the expected answers, both in their written form."""

    file: str
    line: int
    title: str
    request: str
    expect: tuple[str, ...]
    row: int = 0
    half_close: bool = False
    expire: bool = False
    only_http1: bool = False  # HTTP/2 has nothing that corresponds

    @property
    def id(self) -> str:
        """A short and unique name without spaces."""
        where = f"{Path(self.file).stem}:{self.line}" + (f".{self.row}" if self.row else "")
        return re.sub(r"[^!-~]+", "-", f"{where}:{self.title}")[:100]

    @property
    def end(self) -> str:
        """The state of the connection at the end: open, waiting, closed or cut."""
        return self.expect[-1].removeprefix("then ")

    @property
    def answers(self) -> list[tuple[str, ...]]:
        """The lines of each expected answer, with repetitions expanded."""
        groups: list[list[str]] = []
        for line in self.expect[:-1]:
            if line.startswith("status "):
                groups.append([])
            groups[-1].append(line)
        answers = []
        for group in groups:
            more = [int(line[7:]) for line in group if line.startswith("repeat ")]
            lines = tuple(line for line in group if not line.startswith("repeat "))
            answers += [lines] * (1 + sum(more))
        return answers

    def filled(self, etag: Callable[[str], str]) -> Case:
        """The case with the entity tags of the running server filled in."""

        def fill(text: str) -> str:
            return ETAG.sub(lambda match: etag(match[1]), text)

        return replace(self, request=fill(self.request), expect=tuple(map(fill, self.expect)))


def _cells(row: str) -> list[str]:
    cells = [cell.strip() for cell in row.strip().strip("|").split("|")]
    return [cell[1:-1] if len(cell) >= 2 and cell[0] == cell[-1] == "`" else cell for cell in cells]


def _case(
    file: str,
    line: int,
    title: str,
    blocks: dict[str, str],
    row: int = 0,
    cells: dict[str, str] | None = None,
    *,
    only_http1: bool = False,
) -> Case:
    cells = cells or {}

    def fill(text: str) -> str:
        return re.sub(r"\{(\w+)\}", lambda match: cells.get(match[1], match[0]), text)

    lines = blocks["request"].splitlines()
    last = lines[-1] if lines else ""
    if last.startswith("@"):
        lines.pop()
    return Case(
        file=file,
        line=line,
        title=": ".join([title, *list(cells.values())[:1]]),
        request=fill("".join(lines)),
        expect=tuple(fill(text) for text in blocks["response"].splitlines() if text),
        row=row,
        half_close=last == "@half-close",
        expire=last == "@expire",
        only_http1=only_http1,
    )


def read_section(file: str, line: int, text: str) -> list[Case]:
    """The cases of one `## ` section: one, or one for each row of its table."""
    title = text.partition("\n")[0]
    blocks = dict(re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    if set(blocks) != {"request", "response"}:
        raise CaseError(f"{file}:{line}: a case needs a request and a response block")
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    only = any(each.startswith(ONLY_HTTP1) for each in prose.splitlines())
    table = [_cells(row) for row in prose.splitlines() if row.startswith("|")]
    if not table:
        return [_case(file, line, title, blocks, only_http1=only)]
    names, rows = table[0], table[2:]
    return [
        _case(
            file, line, title, blocks, number, dict(zip(names, row, strict=True)), only_http1=only
        )
        for number, row in enumerate(rows, 1)
    ]


def read_cases(folder: Path = CASES) -> list[Case]:
    """Every case of a folder, in the order of the files' names."""
    cases = []
    for path in sorted(folder.glob("*.md")):
        text = path.read_text()
        for found in re.finditer(r"^## (.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL):
            line = text.count("\n", 0, found.start()) + 1
            cases += read_section(path.name, line, found[1])
    return cases
