#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws docs/conformance.md: which code cites which section of an RFC, and which cases test it.

tools/conformance_map.py           compare the page with the tree; one line for each difference
tools/conformance_map.py --write   write the page

The page is made of citations in the form `RFC 9112 section 6.3`: those in the comments of src/, the
line under the title of each case in tests/conformance/cases/, and for HTTP/2, whose frames are no
cases, the comments right before the unit tests and the docstrings of tests/e2e/test_http2.py. The
rules in tests/e2e/frame_rules.py name their sections themselves. It does not judge whether a
citation is right.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
PAGE = "docs/conformance.md"
CASES = "tests/conformance/cases"
TESTS = "tests/unit/http2"
RULES = "tests/e2e/frame_rules.py"
EXCHANGES = "tests/e2e/test_http2.py"
TITLES = "tools/rfc-sections"
RFCS = {
    "9112": "HTTP/1.1",
    "9110": "HTTP Semantics",
    "9111": "HTTP Caching",
    "9213": "Targeted HTTP Cache Control",
    "3986": "Uniform Resource Identifier (URI): Generic Syntax",
    "6585": "Additional HTTP Status Codes",
    "8615": "Well-Known Uniform Resource Identifiers (URIs)",
    "9113": "HTTP/2",
    "7541": "HPACK: Header Compression for HTTP/2",
    "9218": "Extensible Prioritization Scheme for HTTP",
}
HEAD = """\
# Conformance

This page maps the sections of the HTTP specifications to the code that implements them and to the
cases that test them. `tools/conformance_map.py --write` draws it from the citations in `src/`, in
`tests/conformance/cases/` and in the tests of HTTP/2. `make check` compares it with them.

A case runs in memory (whole, byte by byte, at random splits, with short writes) and over TCP on
every model, as HTTP/1.1 and as HTTP/2.
[tests/conformance/README.md](../tests/conformance/README.md) describes the format, and says which
cases have no meaning in HTTP/2. A number after a title counts the rows of its table, each of which
is a case. The tests below `tests/e2e/` send frames over TCP, on every model. A section without
a case is tested by the unit and property tests of the files that cite it. weir refuses some
messages that the RFCs allow. [Decision 003](decisions/003-a-strict-parser.md) says which and why.
"""

_CITATION = re.compile(
    r"RFC (?P<rfc>\d{4}) sections? (?P<first>\d+(?:\.\d+)*)"
    r"(?: (?P<joint>to|and) (?P<second>\d+(?:\.\d+)*))?"
)
_UNIT_TEST = re.compile(
    r"^/\*(?P<comment>(?:(?!\*/).)*)\*/\nstatic void (?P<name>\w+)\(void \*\*state\)$",
    re.MULTILINE | re.DOTALL,
)
_RULE = re.compile(
    r'(?:Rule\(\s*"(?P<rfc>\d{4})",|bad(?:_start)?\()\s*"(?P<section>[\d.]+)",\s*"(?P<title>[^"]+)"'
)
_EXCHANGE = re.compile(r'^def test_(\w+)\([^"]*?:\n    """(RFC [^"]*?)"""', re.MULTILINE)
_ONLY_HTTP1 = re.compile(r"^HTTP/1\.1 only: .*$", re.MULTILINE)  # says which section prevents it
_COMMENT_BREAK = re.compile(r"\s*\n\s*\*?\s*")

Section = tuple[str, str]


@dataclass
class Cited:
    """What cites one section: source files, titles of cases by their file, and tests by theirs."""

    code: set[str] = field(default_factory=set)
    cases: list[tuple[str, str, int]] = field(default_factory=list)
    tests: list[tuple[str, str]] = field(default_factory=list)


def citations(text: str) -> Iterator[Section]:
    """The sections that a text cites. `sections 6.2 to 6.5` cites 6.2, 6.3, 6.4 and 6.5."""
    for found in _CITATION.finditer(_COMMENT_BREAK.sub(" ", text)):
        rfc, first, second = found["rfc"], found["first"], found["second"]
        yield rfc, first
        if found["joint"] == "to":
            chapter, dot, number = first.rpartition(".")
            last = int(second.rpartition(".")[2])
            yield from ((rfc, f"{chapter}{dot}{each}") for each in range(int(number) + 1, last + 1))
        elif second:
            yield rfc, second


def cases(text: str) -> Iterator[tuple[str, list[Section], int]]:
    """Title, cited sections and number of cases of each entry of a file of cases."""
    for entry in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        title, _, rest = entry.partition("\n")
        prose = _ONLY_HTTP1.sub("", rest.partition("```")[0])
        rows = sum(line.startswith("|") for line in prose.splitlines())
        cited = list(citations(prose))
        yield title.strip(), cited, max(rows - 2, 1)


def unit_tests(text: str) -> Iterator[tuple[str, list[Section]]]:
    """Name and cited sections of each test that has a comment right before it."""
    for found in _UNIT_TEST.finditer(text):
        yield found["name"], list(citations(found["comment"]))


def frame_tests(top: Path) -> Iterator[tuple[str, str, Section]]:
    """File, name and section of each test that sends frames over TCP."""
    for found in _RULE.finditer((top / RULES).read_text()):
        yield RULES, found["title"], (found["rfc"] or "9113", found["section"])
    for found in _EXCHANGE.finditer((top / EXCHANGES).read_text()):
        for section in citations(found[2]):
            yield EXCHANGES, found[1], section


def anchor(title: str) -> str:
    """The fragment by which Markdown viewers link to a heading."""
    kept = re.sub(r"[^\w\- ]", "", title.lower())
    return kept.replace(" ", "-")


def collect(top: Path) -> dict[Section, Cited]:
    cited: defaultdict[Section, Cited] = defaultdict(Cited)
    for path in sorted((top / "src").rglob("*")):
        if path.suffix in (".c", ".h", ".def"):
            for section in citations(path.read_text()):
                cited[section].code.add(str(path.relative_to(top / "src")))
    for path in sorted((top / CASES).glob("*.md")):
        for title, sections, count in cases(path.read_text()):
            for section in sections:
                cited[section].cases.append((path.name, title, count))
    for path in sorted((top / TESTS).glob("*_test.c")):
        for name, sections in unit_tests(path.read_text()):
            for section in sections:
                cited[section].tests.append((f"{TESTS}/{path.name}", name))
    for file, name, section in frame_tests(top):
        cited[section].tests.append((file, name))
    return {section: what for section, what in cited.items() if section[0] in RFCS}


def titles(top: Path) -> dict[Section, str]:
    lines = (top / TITLES).read_text().splitlines()
    words = (line.split(" ", 2) for line in lines if line and not line.startswith("#"))
    return {(rfc, section): title for rfc, section, title in words}


def rows(section: str, title: str, cited: Cited) -> list[str]:
    """A row for the section and the code that cites it, then one for each case and each test."""
    code = ", ".join(f"[{path}](../src/{path})" for path in sorted(cited.code))
    tests = [
        f"| | [{name}](../{CASES}/{file}#{anchor(name)})"
        + (f" ({count})" if count > 1 else "")
        + " |"
        for file, name, count in cited.cases
    ]
    tests += [f"| | [{name.replace('_', ' ')}](../{file}) |" for file, name in cited.tests]
    return [f"| **{section} {title}** | {code} |", *tests]


def order(section: str) -> list[int]:
    return [int(number) for number in section.split(".")]


def draw(cited: dict[Section, Cited], names: dict[Section, str]) -> str:
    parts = [HEAD]
    for rfc, name in RFCS.items():
        sections = sorted((section for number, section in cited if number == rfc), key=order)
        if sections:
            parts += [f"## RFC {rfc}: {name}\n", "| section | code, then cases |", "|---|---|"]
            for each in sections:
                parts += rows(each, names[rfc, each], cited[rfc, each])
            parts.append("")
    return "\n".join(parts)


def main() -> int:
    cited, names = collect(TOP), titles(TOP)
    unnamed = sorted(set(cited) - set(names))
    for rfc, section in unnamed:
        print(f"{TITLES}: RFC {rfc} section {section} is cited and has no title here")
    if unnamed:
        return 1
    page, drawn = TOP / PAGE, draw(cited, names)
    if "--write" in sys.argv[1:]:
        page.write_text(drawn)
        return 0
    if page.exists() and page.read_text() == drawn:
        return 0
    print(f"{PAGE}: differs from the citations in the tree; run tools/conformance_map.py --write")
    return 1


if __name__ == "__main__":
    sys.exit(main())
