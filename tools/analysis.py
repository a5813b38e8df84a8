# SPDX-License-Identifier: MIT
"""Finds the files that static analysis can skip: those that have not changed since they were clean.

The key of a file is a hash of all that its analysis reads: the version of the analyser, its
configuration, the compile command, the file, and every header that the build has read for it.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Unit:
    """A file to analyse, as seen from the top of the tree."""

    path: str
    size: int
    key: str


def read_dependencies(listed: str) -> dict[str, list[str]]:
    """Reads the output of `ninja -t deps`: the files that each object depends on, where valid."""
    found: dict[str, list[str]] = {}
    for block in listed.split("\n\n"):
        head, *files = block.splitlines() or [""]
        if head.endswith("(VALID)"):
            found[head.partition(":")[0]] = sorted(file.strip() for file in files)
    return found


def units(top: Path, build: Path) -> list[Unit]:
    """The files in src/ that the build compiles."""
    tool = ["clang-tidy", "--version"]
    version = subprocess.run(tool, capture_output=True, check=True).stdout
    same = version + (top / ".clang-tidy").read_bytes()
    deps = ["ninja", "-C", str(build), "-t", "deps"]
    listed = subprocess.run(deps, capture_output=True, text=True, check=True).stdout
    read_for = read_dependencies(listed)
    contents: dict[Path, bytes] = {}

    def content(path: Path) -> bytes:
        if path not in contents:
            contents[path] = hashlib.sha256(path.read_bytes()).digest()
        return contents[path]

    # A file that two targets compile is one unit: clang-tidy analyses it once for each command.
    commands: dict[Path, list[dict[str, str]]] = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = (build / entry["file"]).resolve()
        if source.is_relative_to(top / "src"):
            commands.setdefault(source, []).append(entry)
    found = []
    for source, entries in commands.items():
        everything = hashlib.sha256(same)
        for entry in entries:
            everything.update(entry["command"].encode())
            for file in read_for.get(entry["output"], []):
                everything.update(file.encode() + content((build / file).resolve()))
        # Without a list of its headers a file has no key, and is analysed.
        known = all(read_for.get(entry["output"]) for entry in entries)
        key = everything.hexdigest() if known else ""
        found.append(Unit(str(source.relative_to(top)), source.stat().st_size, key))
    return sorted(found, key=lambda unit: unit.path)


class Known:
    """A file with the keys of the sources that were clean at their last analysis."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._keys: dict[str, str] = {}
        if file.is_file():
            self._keys = json.loads(file.read_text())

    def clean(self, unit: Unit) -> bool:
        return unit.key != "" and self._keys.get(unit.path) == unit.key

    def add(self, unit: Unit) -> None:
        self._keys[unit.path] = unit.key

    def save(self, units: list[Unit]) -> None:
        """Writes the keys, without those of files that no longer exist."""
        there = {unit.path for unit in units}
        keys = {path: key for path, key in sorted(self._keys.items()) if path in there and key}
        self._file.parent.mkdir(exist_ok=True)
        beside = self._file.with_suffix(".new")
        beside.write_text(json.dumps(keys, indent=0))
        beside.rename(self._file)
