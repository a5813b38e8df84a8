# SPDX-License-Identifier: MIT
"""Results as JSON Lines: a head with the plan, then a record for each point.

A record is on disk before the next point starts. An interrupted experiment continues when the same
command runs in the same folder: finished points are skipped. A truncated last line is dropped.
"""

import fcntl
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

_held: dict[tuple[int, int], int] = {}  # device and inode of a folder -> its locked descriptor


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
        """Stores a point on disk. An earlier record of the point is replaced.

        Raises:
            LabError: it could not be written, and the file is as before.
        """
        full = {"kind": "point", "key": key, **record}
        if key in self.records:
            self.records[key] = full
            self.rewrite()
        else:
            _append(self.path, full)
            self.records[key] = full

    def annotate(self, name: str, value: object) -> None:
        """Stores a field in the head."""
        self.head[name] = json.loads(json.dumps(value))
        self.rewrite()

    def rewrite(self) -> None:
        """Replaces the file whole, so that it is never half."""
        part = self.path.with_suffix(".part")
        try:
            with part.open("w") as file:
                file.writelines(map(_line, self.everything()))
                file.flush()
                os.fsync(file.fileno())
            part.replace(self.path)
        except OSError as error:
            part.unlink(missing_ok=True)
            raise LabError(f"{self.path}: {error.strerror}") from error

    def everything(self) -> list[Record]:
        """The head and all records, for embedding."""
        return [self.head, *self.records.values()]


def _append(path: Path, record: Record) -> None:
    """Adds a line, or nothing: a part of one would spoil the next line."""
    before = path.stat().st_size if path.exists() else 0
    try:
        with path.open("a") as file:
            file.write(_line(record))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        os.truncate(path, before)
        raise LabError(f"{path}: {error.strerror}") from error


def _line(record: Record) -> str:
    return json.dumps(record, ensure_ascii=False) + "\n"


def read(path: Path) -> list[Record]:
    """The records of a file, without a truncated last line.

    Raises:
        LabError: another line is not the JSON of a record.
    """
    *lines, _truncated = path.read_bytes().split(b"\n")
    return [_record(line, f"{path}:{number}") for number, line in enumerate(lines, 1)]


def _record(line: bytes, where: str) -> Record:
    try:
        found = json.loads(line)
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
    records = {r["key"]: r for r in known[1:] if "key" in r}
    store = Store(path=path, head=known[0], records=records)
    store.rewrite()  # without a truncated line, so that the next one starts on a line of its own
    return store
