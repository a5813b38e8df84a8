# SPDX-License-Identifier: MIT
"""Results as JSON Lines: a head with the plan, then a record for each point.

A record is on disk before the next point starts. An interrupted experiment continues when the same
command runs in the same folder: finished points are skipped. A truncated last line is dropped.
"""

import contextlib
import fcntl
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weir_lab.rim import files
from weir_lab.rim.errors import LabError

SCHEMA = 1
FILE = "results.jsonl"

Record = dict[str, Any]

_held: dict[tuple[int, int], int] = {}  # device and inode of a folder -> its locked descriptor


@dataclass(kw_only=True)
class Store:
    """The results of one experiment in one folder."""

    path: Path
    head: Record
    records: dict[str, Record] = field(default_factory=dict)
    is_torn: bool = False  # the file ends with a part of a line, which could not be removed

    def has(self, key: str) -> bool:
        """Whether the point is finished."""
        return key in self.records and "error" not in self.records[key]

    def add(self, key: str, record: Mapping[str, Any]) -> None:
        """Stores a point on disk. An earlier record of the point is replaced.

        Raises:
            LabError: it could not be written, and the file is as before.
        """
        full = {"kind": "point", "key": key, **record}
        if key in self.records or self.is_torn:
            self.rewrite(self.head, {**self.records, key: full})
        else:
            self._append(full)
            self.records[key] = full

    def annotate(self, name: str, value: object) -> None:
        """Stores a field in the head.

        Raises:
            LabError: it could not be written, and the file is as before.
        """
        self.rewrite({**self.head, name: json.loads(json.dumps(value))}, self.records)

    def rewrite(self, head: Record, records: dict[str, Record]) -> None:
        """Replaces the file whole, so that it is never half.

        Raises:
            LabError: it could not be written, and the file is as before.
        """
        files.replace({self.path: "".join(map(_line, [head, *records.values()]))})
        self.head, self.records, self.is_torn = head, records, False

    def _append(self, record: Record) -> None:
        """Adds a line, or nothing: a part of one would spoil the next line."""
        before = None
        try:
            with self.path.open("ab") as file:
                before = file.tell()
                file.write(files.encoded(_line(record)))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            self.is_torn = before is not None
            with contextlib.suppress(OSError):  # else the next record replaces the file
                if before is not None:
                    os.truncate(self.path, before)
                    self.is_torn = False
            raise LabError(f"{self.path}: {error.strerror}") from error

    def everything(self) -> list[Record]:
        """The head and all records, for embedding."""
        return [self.head, *self.records.values()]


def _line(record: Record) -> str:
    return json.dumps(record, ensure_ascii=False) + "\n"


def read(path: Path) -> list[Record]:
    """The records of a file, without a truncated last line.

    Raises:
        LabError: another line is not the JSON of a record.
    """
    *lines, _truncated = path.read_bytes().split(b"\n")
    return [_record(line, f"{path}:{number}") for number, line in enumerate(lines, 1)]


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is no finite number")
    return number


def _record(line: bytes, where: str) -> Record:
    try:
        found = json.loads(line, parse_float=_finite, parse_constant=_finite)
    except (ValueError, RecursionError) as error:
        raise LabError(f"{where}: {error}") from error
    if not isinstance(found, dict) or not isinstance(found.get("key", ""), str):
        raise LabError(f"{where} is no record of weir-lab")
    return found


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
    if not known or not all(isinstance(known[0].get(k), dict) for k in ("plan", "machine")):
        raise LabError(f"{path} does not begin with the plan of an experiment")
    if known[0].get("schema") != SCHEMA:
        raise LabError(
            f"{path} has schema {known[0].get('schema')}; this weir-lab reads schema {SCHEMA}"
        )
    return Store(path=path, head=known[0], records={r["key"]: r for r in known[1:] if "key" in r})


def _hold(folder: Path) -> None:
    """Locks the folder for this process, until it ends. The lock leaves no file behind.

    Some file systems, such as NFS, lock no folders. There the experiment runs without a lock.

    Raises:
        LabError: another process measures into the folder.
        OSError: the folder cannot be opened.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    about = os.fstat(descriptor)
    known = (about.st_dev, about.st_ino)
    if known in _held:
        os.close(descriptor)
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _held[known] = descriptor
    except OSError as error:
        os.close(descriptor)
        if isinstance(error, BlockingIOError):
            raise LabError(
                f"another weir-lab measures into {folder}; "
                "wait for it, or use --out for another folder"
            ) from error


def open_store(folder: Path, plan: Record, facts: Record, *, fresh: bool) -> Store:
    """Starts an experiment, or continues the one in the folder.

    Raises:
        LabError: the folder has the results of another plan, or another process uses it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _hold(folder)
    except OSError as error:
        raise LabError(f"{folder}: {error.strerror}") from error
    path = folder / FILE
    head = {"kind": "experiment", "schema": SCHEMA, "plan": plan, "machine": facts}
    known = read(path) if path.exists() and not fresh else []
    store = Store(path=path, head=head)
    if len(known) < 2:
        store.rewrite(head, {})
        return store
    if known[0].get("plan") != json.loads(json.dumps(plan)):
        raise LabError(
            f"{path} has the results of another experiment; "
            "use --fresh to replace them, or --out for another folder"
        )
    records = {r["key"]: r for r in known[1:] if "key" in r}
    # Without a truncated line, so that the next one starts on a line of its own.
    store.rewrite(known[0], records)
    return store
