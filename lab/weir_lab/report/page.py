# SPDX-License-Identifier: MIT
"""The report: one self-contained file, and its pictures and tables beside it."""

import csv
import html
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import jinja2
from markupsafe import Markup

from weir_lab.report.chart import COLOURS, Picture

PAGE = "report.html"
RESERVED = {"verdict", "contents", "environment", "data", "files"}


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of text; numbers are aligned to the right."""

    name: str  # of the CSV file
    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""

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
class Section:
    """A part of the report."""

    title: str
    verdict: Sequence[str] = ()  # findings, also shown at the top of the page
    text: Sequence[str] = ()
    lead: Sequence[Table] = ()  # tables that belong to the verdict, before the pictures
    pictures: Sequence[Picture] = ()
    tables: Sequence[Table] = ()

    @property
    def all_tables(self) -> list[Table]:
        """All tables in the order of the page."""
        return [*self.lead, *self.tables]


@dataclass(frozen=True, kw_only=True)
class Report:
    """A whole report."""

    title: str
    sections: Sequence[Section]
    environment: Mapping[str, object]
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


def themed(picture: Picture) -> Markup:
    """The SVG for the page: with a description, and with colours that the page can change."""
    name, label = f"{picture.name}-title", html.escape(picture.alt or picture.title)
    svg = re.sub(r"<metadata>.*?</metadata>", "", picture.svg, flags=re.DOTALL)
    for number, colour in enumerate(COLOURS[:-1]):
        svg = re.sub(colour, f"var(--s{number}, {colour})", svg, flags=re.IGNORECASE)
    head = f'<svg role="img" aria-labelledby="{name}"'
    svg = svg.replace("<svg", head, 1)
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
    data = as_json(report.data)
    files = {
        **{f"{p.name}.csv": p.csv for s in report.sections for p in s.pictures},
        **{f"{t.name}.csv": t.csv() for s in report.sections for t in s.all_tables},
    }
    return environment.get_template("page.html.j2").render(
        report=report,
        sections=named(report.sections),
        data=data,
        data_size=size_of(data),
        files=as_json(files),
    )


def as_text(report: Report) -> str:
    """The verdict and the tables for a terminal, in Markdown."""
    lines = [f"# {report.title}", ""]
    for section in report.sections:
        lines += [f"## {section.title}", "", *(f"- {finding}" for finding in section.verdict), ""]
        for table in section.all_tables:
            lines += [f"### {table.title}", ""]
            lines.append(_markdown_row(table.head))
            lines.append("|" + "---|" * len(table.head))
            lines += [_markdown_row(row) for row in table.rows]
            lines.append("")
    lines += [*report.notes, ""] if report.notes else []
    lines += ["## Environment", ""]
    lines += [f"- {name}: {value}" for name, value in report.environment.items()]
    return "\n".join([*lines, ""])


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def write(report: Report, folder: Path) -> Path:
    """Writes the page, and its pictures and tables beside it; returns where the page is."""
    folder.mkdir(parents=True, exist_ok=True)
    for section in report.sections:
        for picture in section.pictures:
            svg = picture.svg.replace("currentColor", "#010203")
            (folder / f"{picture.name}.svg").write_text(svg)
            (folder / f"{picture.name}.png").write_bytes(picture.png)
            (folder / f"{picture.name}.csv").write_text(picture.csv)
        for table in section.all_tables:
            (folder / f"{table.name}.csv").write_text(table.csv())
    (folder / "report.md").write_text(as_text(report))
    page = folder / PAGE
    page.write_text(render(report))
    return page
