# SPDX-License-Identifier: MIT
"""The report: one file that needs no other, and the same pictures and tables beside it."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import jinja2
from markupsafe import Markup

from weir_lab.report.chart import Picture

PAGE = "report.html"


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of text; numbers stand to the right."""

    name: str  # of the CSV file
    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""

    def csv(self) -> str:
        """The same as a file."""
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows([self.head, *self.rows])
        return out.getvalue()


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of the report."""

    title: str
    verdict: Sequence[str] = ()  # its findings, repeated at the top of the page
    text: Sequence[str] = ()
    pictures: Sequence[Picture] = ()
    tables: Sequence[Table] = ()


@dataclass(frozen=True, kw_only=True)
class Report:
    """All of it."""

    title: str
    sections: Sequence[Section]
    environment: Mapping[str, object]
    data: object = None  # what JSON can hold: every record of every run
    notes: Sequence[str] = field(default=())  # what a reader must know before believing it


def is_number(cell: str) -> bool:
    """Whether a cell reads better on the right."""
    return bool(cell) and (cell[0].isdigit() or cell[0] in "-+<>±")


def as_json(data: object) -> Markup:
    """JSON that cannot end the element it stands in."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def render(report: Report) -> str:
    """The page."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("weir_lab.report", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.tests["number"] = is_number
    environment.filters["markup"] = Markup
    return environment.get_template("page.html.j2").render(report=report, data=as_json(report.data))


def as_text(report: Report) -> str:
    """The verdict and the tables for a terminal, in Markdown."""
    lines = [f"# {report.title}", ""]
    for section in report.sections:
        lines += [f"## {section.title}", "", *(f"- {finding}" for finding in section.verdict), ""]
        for table in section.tables:
            lines += [f"### {table.title}", ""]
            lines.append("| " + " | ".join(table.head) + " |")
            lines.append("|" + "---|" * len(table.head))
            lines += ["| " + " | ".join(row) + " |" for row in table.rows]
            lines.append("")
    return "\n".join(lines)


def write(report: Report, folder: Path) -> Path:
    """Writes the page, and its pictures and tables beside it; returns where the page is."""
    folder.mkdir(parents=True, exist_ok=True)
    for section in report.sections:
        for picture in section.pictures:
            svg = picture.svg.replace("currentColor", "#010203")
            (folder / f"{picture.name}.svg").write_text(svg)
            (folder / f"{picture.name}.png").write_bytes(picture.png)
            (folder / f"{picture.name}.csv").write_text(picture.csv)
        for table in section.tables:
            (folder / f"{table.name}.csv").write_text(table.csv())
    (folder / "report.md").write_text(as_text(report))
    page = folder / PAGE
    page.write_text(render(report))
    return page
