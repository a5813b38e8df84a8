# SPDX-License-Identifier: MIT
"""Results as a part of a page in docs/, between marks, so that prose and figures stay apart."""

from collections.abc import Collection, Sequence

from weir_lab.report.page import Report, Table

BEGIN = "<!-- written by weir-lab {command} --record -->"
END = "<!-- end -->"
FACTS = ("kernel", "processor", "cores", "load average at start", "date")


def _rows(table: Table) -> list[str]:
    lines = ["| " + " | ".join(table.head) + " |", "|" + "---|" * len(table.head)]
    return lines + ["| " + " | ".join(row) + " |" for row in table.rows]


def _short(fact: object) -> str:
    return f"{fact:.2f}" if isinstance(fact, float) else str(fact)


def _part(findings: Sequence[str], tables: Sequence[Table], noted: set[str]) -> list[str]:
    parts = ["\n".join(f"- {finding}" for finding in findings)] if findings else []
    for table in tables:
        note = "" if table.note in noted else table.note
        noted.add(table.note)
        parts += [f"**{table.title}.** {note}".strip(), "\n".join(_rows(table))]
    return parts


def as_part(report: Report, tables: Collection[str]) -> str:
    """The machine, the findings, and the tables of these names; a note is written once."""
    noted: set[str] = set()
    facts = [f"{n}: {_short(report.environment[n])}" for n in FACTS if n in report.environment]
    parts = ["\n".join(f"- {fact}" for fact in facts)] if facts else []
    for section in report.sections:
        answer = section.headline
        chosen = [table for table in answer.tables if table.name in tables]
        parts += [f"### {section.title}", *_part([answer.sentence], chosen, noted)]
        for fold in section.folds:
            chosen = [table for table in fold.tables if table.name in tables]
            inside = _part(fold.findings, chosen, noted)
            parts += [f"#### {fold.title}", *inside] if inside else []
    return "\n\n".join(parts)


def put(page: str, command: str, part: str) -> str | None:
    """The page with the part between its marks; None when a mark is missing."""
    mark = BEGIN.format(command=command)
    before, begin, rest = page.partition(mark)
    _, end, after = rest.partition(END)
    return f"{before}{begin}\n\n{part}\n\n{end}{after}" if begin and end else None
