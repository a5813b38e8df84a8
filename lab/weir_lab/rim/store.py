# SPDX-License-Identifier: MIT
"""Results as JSON Lines: a head with the plan, then a record for each point.

A record is on disk before the next point starts. An interrupted experiment continues when the same
command runs in the same folder: finished points are skipped. A truncated last line is dropped.
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
        """Stores a point on disk. An earlier record of the point is replaced."""
        full = {"kind": "point", "key": key, **record}
        is_new = key not in self.records
        self.records[key] = full
        if is_new:
            _append(self.path, full)
        else:
            self._rewrite()

    def annotate(self, name: str, value: object) -> None:
        """Stores a field in the head."""
        self.head[name] = json.loads(json.dumps(value))
        self._rewrite()

    def _rewrite(self) -> None:
        """Replaces the file whole, so that it is never half."""
        part = self.path.with_suffix(".part")
        part.write_text("")
        for record in self.everything():
            _append(part, record)
        part.replace(self.path)

    def everything(self) -> list[Record]:
        """The head and all records, for embedding."""
        return [self.head, *self.records.values()]


def _append(path: Path, record: Record) -> None:
    with path.open("a") as file:
        file.write(json.dumps(record, ensure_ascii=False) + "\n")
        file.flush()
        os.fsync(file.fileno())


def read(path: Path) -> list[Record]:
    """The records of a file, without a truncated last line.

    Raises:
        LabError: another line is not JSON.
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
    """The results in a folder, for reading.

    Raises:
        LabError: there are no results, or this version cannot read them.
    """
    path = folder / FILE
    try:
        known = read(path)
    except OSError as error:
        raise LabError(f"{path}: {error.strerror}") from error
    if not known or "plan" not in known[0] or "machine" not in known[0]:
        raise LabError(f"{path} does not begin with the plan of an experiment")
    if known[0].get("schema") != SCHEMA:
        raise LabError(
            f"{path} has schema {known[0].get('schema')}; this weir-lab reads schema {SCHEMA}"
        )
    return Store(path=path, head=known[0], records={r["key"]: r for r in known[1:] if "key" in r})


def open_store(folder: Path, plan: Record, facts: Record, *, fresh: bool) -> Store:
    """Starts an experiment, or continues the one in the folder.

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
            "use --fresh to replace them, or --out for another folder"
        )
    # Without a truncated line, so that the next record starts on a line of its own.
    path.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in known))
    records = {r["key"]: r for r in known[1:] if "key" in r}
    return Store(path=path, head=known[0], records=records)
