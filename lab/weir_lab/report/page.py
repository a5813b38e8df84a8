# SPDX-License-Identifier: MIT
"""The report: one self-contained file, and its pictures and tables beside it.

The first screen has the answer: a sentence, a mark of trust, up to three numbers and one picture.
Everything else is folded below it, in the order in which questions come.
"""

import csv
import html
import io
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

import jinja2
from markupsafe import Markup

from weir_lab.report.chart import COLOURS, Picture
from weir_lab.report.spans import Span, Spans
from weir_lab.rim import files

PAGE = "report.html"
RESERVED = {"answer", "environment", "warnings", "data", "files", "hint"}
DATA_MAX = 500_000  # characters of records inside the page


Named = TypeVar("Named", Picture, "Table")


class Grade(StrEnum):
    """The colours of a mark of trust."""

    GREEN = "green"
    YELLOW = "yellow"
    RED = "red"


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of text; numbers are aligned to the right."""

    name: str  # of the CSV file
    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    spans: Sequence[Span | None] = ()  # for each row, an interval that is drawn
    scale: str = ""  # what the intervals show, with the unit
    at: float = 0.0  # where a line is drawn for comparison; 0: nowhere

    @property
    def numeric(self) -> list[bool]:
        """For each column, whether it has numbers; a dash is a missing number."""
        columns = zip(*self.rows, strict=True) if self.rows else [() for _ in self.head]
        return [
            any(map(is_number, cells)) and all(not c or is_number(c) for c in cells)
            for cells in columns
        ]

    def csv(self) -> str:
        """The table as CSV, with plain numbers."""
        out = io.StringIO()
        plain = [[re.sub(r"(?<=\d),(?=\d{3})", "", cell) for cell in row] for row in self.rows]
        csv.writer(out, lineterminator="\n").writerows([self.head, *plain])
        return out.getvalue()


@dataclass(frozen=True, kw_only=True)
class Mark:
    """How far an answer can be trusted, and why."""

    grade: Grade
    word: str
    reason: str  # one sentence

    @property
    def sign(self) -> str:
        """A sign that differs without colour."""
        return {Grade.GREEN: "✓", Grade.YELLOW: "!", Grade.RED: "✗"}[self.grade]


@dataclass(frozen=True, kw_only=True)
class Number:
    """A number of the first screen."""

    name: str
    value: str
    unit: str = ""
    note: str = ""  # its interval, or the reason why it is missing


@dataclass(frozen=True, kw_only=True)
class Headline:
    """The answer: all that a reader in a hurry needs."""

    sentence: str
    mark: Mark | None = None
    numbers: Sequence[Number] = ()
    title: str = ""  # of the picture
    pictures: Sequence[Picture] = ()  # shown as one, one above the other
    tables: Sequence[Table] = ()  # before the sentence
    caption: str = ""


@dataclass(frozen=True, kw_only=True)
class Fold:
    """A question with its answer, which the reader unfolds."""

    title: str
    findings: Sequence[str] = ()
    text: Sequence[str] = ()
    pictures: Sequence[Picture] = ()
    tables: Sequence[Table] = ()


@dataclass(frozen=True, kw_only=True)
class Section:
    """An experiment of the report."""

    title: str
    headline: Headline
    folds: Sequence[Fold] = ()

    @property
    def findings(self) -> list[str]:
        """All findings in the order of the page, the answer first."""
        return [self.headline.sentence, *(f for fold in self.folds for f in fold.findings)]

    @property
    def pictures(self) -> list[Picture]:
        """All pictures in the order of the page."""
        return [*self.headline.pictures, *(p for fold in self.folds for p in fold.pictures)]

    @property
    def tables(self) -> list[Table]:
        """All tables in the order of the page."""
        return [*self.headline.tables, *(t for fold in self.folds for t in fold.tables)]


def findings_first(
    title: str,
    findings: Sequence[str],
    *,
    method: Sequence[str] = (),
    pictures: Sequence[Picture] = (),
    tables: Sequence[Table] = (),
    mark: Mark | None = None,
) -> Section:
    """A section whose first finding is the answer and whose first picture shows it."""
    folds = [
        Fold(title="What else was found?", findings=findings[1:], pictures=pictures[1:]),
        Fold(title="All figures", tables=tables),
        Fold(title="How was it measured?", text=method),
    ]
    return Section(
        title=title,
        headline=Headline(
            sentence=findings[0] if findings else "Nothing was measured.",
            mark=mark,
            pictures=pictures[:1],
        ),
        folds=[f for f in folds if f.findings or f.text or f.pictures or f.tables],
    )


@dataclass(frozen=True, kw_only=True)
class Report:
    """A whole report."""

    title: str
    sections: Sequence[Section]
    environment: Mapping[str, object]
    headline: Headline | None = None  # of several sections together
    data: object = None  # JSON: every record of every run
    notes: Sequence[str] = field(default=())  # warnings for the reader


def is_number(cell: str) -> bool:
    """Whether a cell is aligned to the right."""
    return bool(cell) and (cell[0].isdigit() or cell[0] in "-+<>±")


def as_json(data: object) -> Markup:
    """JSON that is safe inside a script element."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def prose(text: str) -> Markup:
    """A sentence as HTML; text for a terminal is marked as code and not broken."""
    safe = html.escape(text, quote=False)
    return Markup(re.sub(r"(?<![\w-])(--[a-z][a-z-]*)", r"<code>\1</code>", safe))


def themed(picture: Picture, *, narrow: bool = False) -> Markup:
    """The SVG for the page: with a description, and with colours that the page can change."""
    name, label = f"{picture.name}-title", html.escape(picture.alt or picture.title)
    shape = ""
    if picture.narrow:
        shape = ' class="narrow"' if narrow else ' class="wide"'
    if narrow:
        name = f"{picture.name}-narrow-title"
    svg = picture.narrow if narrow else picture.svg
    for number, colour in enumerate(COLOURS[:-1]):
        svg = re.sub(colour, f"var(--s{number}, {colour})", svg, flags=re.IGNORECASE)
    svg = svg.replace("<svg", f'<svg{shape} role="img" aria-labelledby="{name}"', 1)
    at = svg.index(">") + 1
    return Markup(f'{svg[:at]}<title id="{name}">{label}</title>{svg[at:]}')


def named(sections: Sequence[Section]) -> list[tuple[str, Section]]:
    """Each section with a unique id."""
    found: dict[str, Section] = {}
    for section in sections:
        stem = re.sub(r"[^a-z0-9]+", "-", section.title.lower()).strip("-") or "section"
        name, number = stem, 2
        while name in found or name in RESERVED:
            name, number = f"{stem}-{number}", number + 1
        found[name] = section
    return list(found.items())


def size_of(text: str) -> str:
    """The size of a download, as text."""
    return f"{len(text) / 1e6:.1f} MB" if len(text) >= 100_000 else f"{len(text) / 1e3:.1f} kB"


def embedded(data: object) -> Markup:
    """The records for the page; without histograms, or empty, where the page would be too large."""
    found = as_json(data)
    if len(found) > DATA_MAX:
        found = as_json(_without(data, {"histogram", "series", "parts"}))
    return found if len(found) <= DATA_MAX else as_json(None)


def _without(data: object, names: Collection[str]) -> object:
    if isinstance(data, Mapping):
        return {k: _without(v, names) for k, v in data.items() if k not in names}
    if isinstance(data, list | tuple):
        return [_without(each, names) for each in data]
    return data


def answer(report: Report) -> Headline | None:
    """The headline of the whole page."""
    if report.headline or not report.sections:
        return report.headline
    return report.sections[0].headline


def render(report: Report) -> str:
    """The page."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("weir_lab.report", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["prose"] = prose
    environment.filters["themed"] = themed
    environment.globals["Spans"] = Spans
    data = embedded(report.data)
    files = {
        **{f"{p.name}.csv": p.csv for p in all_pictures(report)},
        **{f"{t.name}.csv": t.csv() for t in all_tables(report)},
    }
    return environment.get_template("page.html.j2").render(
        report=report,
        headline=answer(report),
        sections=named(report.sections),
        data=data,
        data_size=size_of(data),
        has_data=len(data) > len("null"),
        is_whole=len(data) == len(as_json(report.data)),
        files=as_json(files),
    )


def all_pictures(report: Report) -> list[Picture]:
    """Every picture once."""
    own = report.headline.pictures if report.headline else ()
    return _once([*own, *(p for s in report.sections for p in s.pictures)])


def all_tables(report: Report) -> list[Table]:
    """Every table once."""
    own = report.headline.tables if report.headline else ()
    return _once([*own, *(t for s in report.sections for t in s.tables)])


def _once(found: Sequence[Named]) -> list[Named]:
    return list({each.name: each for each in found}.values())


def headline_text(headline: Headline) -> list[str]:
    """The answer as lines of text: the sentence, the mark, the numbers."""
    lines = [headline.sentence]
    if headline.mark:
        lines.append(f"{headline.mark.sign} {headline.mark.word}. {headline.mark.reason}")
    for number in headline.numbers:
        value = f"{number.value} {number.unit}".rstrip()
        lines.append(f"{number.name}: {value}" + (f" ({number.note})" if number.note else ""))
    return lines


def as_text(report: Report) -> str:
    """All words and tables of the page for a terminal, in Markdown."""
    lines = [f"# {report.title}", ""]
    if report.headline:
        lines += [*(f"- {line}" for line in headline_text(report.headline)), ""]
    for section in report.sections:
        lines += [f"## {section.title}", ""]
        lines += [*(f"- {line}" for line in headline_text(section.headline)), ""]
        lines += _table_lines(section.headline.tables)
        for fold in section.folds:
            lines += [f"### {fold.title}", ""]
            lines += [*(f"- {finding}" for finding in fold.findings), ""] if fold.findings else []
            lines += [line for text in fold.text for line in (text, "")]
            lines += _table_lines(fold.tables)
    lines += [*report.notes, ""] if report.notes else []
    lines += ["## Environment", ""]
    lines += [f"- {name}: {value}" for name, value in report.environment.items()]
    return "\n".join([*lines, ""])


def _table_lines(tables: Sequence[Table]) -> list[str]:
    lines = []
    for table in tables:
        lines += [f"**{table.title}**", "", _markdown_row(table.head)]
        lines.append("|" + "---|" * len(table.head))
        lines += [*(_markdown_row(row) for row in table.rows), ""]
    return lines


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def write(report: Report, folder: Path) -> Path:
    """Writes the page, and its pictures and tables beside it; returns where the page is.

    Raises:
        LabError: a file could not be written. If the disk is full, the old page and its files
            remain.
    """
    contents: dict[str, str | bytes] = {}
    for picture in all_pictures(report):
        contents[f"{picture.name}.svg"] = picture.svg.replace("currentColor", "#010203")
        contents[f"{picture.name}.png"] = picture.png
        contents[f"{picture.name}.csv"] = picture.csv
    for table in all_tables(report):
        contents[f"{table.name}.csv"] = table.csv()
    contents["report.md"] = as_text(report)
    contents[PAGE] = render(report)
    folder.mkdir(parents=True, exist_ok=True)
    files.replace({folder / name: content for name, content in contents.items()})
    return folder / PAGE
