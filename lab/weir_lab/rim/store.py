# SPDX-License-Identifier: MIT
"""Results as JSON Lines: a head that says what is measured, then a record for each point.

A record is on disk before the next point begins, so that what is interrupted can go on: the same
command in the same folder skips what is there. A line cut short by a crash is dropped.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weir_lab.rim.errors import LabError

SCHEMA = 1
FILE = "results.jsonl"

Record = dict[str, Any]


@dataclass(kw_only=True)
class Store:
    """The results of one experiment in one folder."""

    path: Path
    head: Record
    records: dict[str, Record] = field(default_factory=dict)

    def has(self, key: str) -> bool:
        """Whether the point is finished."""
        return key in self.records and "error" not in self.records[key]

    def add(self, key: str, record: Mapping[str, Any]) -> None:
        """Keeps a point, for good."""
        full = {"kind": "point", "key": key, **record}
        self.records[key] = full
        _append(self.path, full)

    def everything(self) -> list[Record]:
        """The head and all records, for embedding."""
        return [self.head, *self.records.values()]


def _append(path: Path, record: Record) -> None:
    with path.open("a") as file:
        file.write(json.dumps(record, ensure_ascii=False) + "\n")
        file.flush()
        os.fsync(file.fileno())


def read(path: Path) -> list[Record]:
    """The records of a file, without a last line that was cut short.

    Raises:
        LabError: another line is no JSON.
    """
    lines = path.read_text().split("\n")
    records: list[Record] = []
    for number, line in enumerate(lines[:-1], 1):
        try:
            records.append(json.loads(line))
        except json.JSONDecodeError as error:
            raise LabError(f"{path}:{number}: {error}") from error
    return records


def load(folder: Path) -> Store:
    """The results in a folder, to be read only.

    Raises:
        LabError: there are none, or none that this version reads.
    """
    path = folder / FILE
    try:
        known = read(path)
    except OSError as error:
        raise LabError(f"{path}: {error.strerror}") from error
    if not known or "plan" not in known[0] or "machine" not in known[0]:
        raise LabError(f"{path} does not begin with what was measured")
    if known[0].get("schema") != SCHEMA:
        raise LabError(
            f"{path} is of schema {known[0].get('schema')}; this weir-lab reads {SCHEMA}"
        )
    return Store(path=path, head=known[0], records={r["key"]: r for r in known[1:] if "key" in r})


def open_store(folder: Path, plan: Record, facts: Record, *, fresh: bool) -> Store:
    """Begins an experiment, or goes on with the one in the folder.

    Raises:
        LabError: the folder has the results of another plan.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LabError(f"{folder}: {error.strerror}") from error
    path = folder / FILE
    head = {"kind": "experiment", "schema": SCHEMA, "plan": plan, "machine": facts}
    if fresh:
        path.unlink(missing_ok=True)
    known = read(path) if path.exists() else []
    if len(known) < 2:
        path.write_text("")
        _append(path, head)
        return Store(path=path, head=head)
    if known[0].get("plan") != json.loads(json.dumps(plan)):
        raise LabError(
            f"{path} has the results of another experiment; "
            "say --fresh to begin anew, or --out for another folder"
        )
    # Without the line that was cut short, so that the next one begins on its own.
    path.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in known))
    records = {r["key"]: r for r in known[1:] if "key" in r}
    return Store(path=path, head=known[0], records=records)
