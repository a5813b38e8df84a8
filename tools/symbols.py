#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks what the objects of a build export and need.

    tools/symbols.py BUILD_DIRECTORY

- A layer marked `pure` in src/LAYERS uses only symbols of pure layers and those in
  tools/pure-symbols. So its objects prove that it makes no system call, allocates
  no memory and reads no clock.
- An exported symbol begins with the name of its layer. In base/ it begins with the
  name of its file. So a call shows which layer it enters.
- Another file or a test uses each exported symbol. All other symbols are static.

The build must not use link-time optimisation, since its objects hold no code yet.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import layers as layering
from tidy import EMPTY_NAMES, layer_of

TOP = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Object:
    """One compiled file: the symbols that it exports and those that it imports."""

    source: str
    defines: frozenset[str] = field(default_factory=frozenset)
    needs: frozenset[str] = field(default_factory=frozenset)

    @property
    def layer(self) -> str:
        return layer_of(self.source)


def parse_nm(source: str, text: str) -> Object:
    """Reads the output of `nm --extern-only --format=posix` for one object."""
    defines: set[str] = set()
    needs: set[str] = set()
    for line in text.splitlines():
        name, kind, *_ = line.split()
        (needs if kind in "Uvw" else defines).add(name)
    return Object(source, frozenset(defines), frozenset(needs))


def read_objects(build: Path) -> list[Object]:
    """The objects that the compile commands of a build list."""
    objects = []
    for entry in json.loads((build / "compile_commands.json").read_text()):
        directory = Path(entry["directory"])
        source = (directory / entry["file"]).resolve().relative_to(TOP)
        output = directory / entry["output"]
        if "librecorded.a.p" in output.parts:  # compiled again, for tests/sharing
            continue
        if not output.exists():
            sys.exit(f"{output} is not built")
        listed = subprocess.run(
            ["nm", "--extern-only", "--format=posix", str(output)],
            capture_output=True,
            text=True,
            check=True,
        )
        objects.append(parse_nm(str(source), listed.stdout))
    return objects


def read_pure_symbols(text: str) -> set[str]:
    """One symbol in a line. A # begins a comment."""
    return {word for line in text.splitlines() if (word := line.partition("#")[0].strip())}


def impurities(
    objects: list[Object], layers: dict[str, layering.Layer], allowed: set[str]
) -> Iterator[str]:
    pure = [obj for obj in objects if obj.layer in layers and layers[obj.layer].pure]
    defined = {name for obj in pure for name in obj.defines}
    for obj in pure:
        for name in sorted(obj.needs - defined - allowed):
            yield f"{obj.source}: {obj.layer}/ is pure and must not use {name}"


def prefixes(source: str, layer: str) -> tuple[str, ...]:
    if layer == "base":
        return (Path(source).stem + "_",)
    return (layer + "_",)


def misnamed(objects: list[Object]) -> Iterator[str]:
    for obj in objects:
        if not obj.layer:
            continue
        begins = prefixes(obj.source, obj.layer)
        for name in sorted(obj.defines - {"main"}):
            if not name.startswith(begins):
                yield f"{obj.source}: {name} should begin with {' or '.join(begins)}"
            if match := EMPTY_NAMES.search(name):
                yield f"{obj.source}: {name}: a name that says nothing: {match.group(1)}"


def unused(objects: list[Object]) -> Iterator[str]:
    needed = {name for obj in objects for name in obj.needs}
    for obj in objects:
        for name in sorted(obj.defines - needed - {"main"}):
            if obj.layer and not re.match(r"__(asan|odr_asan|ubsan)", name):
                yield f"{obj.source}: {name} is used in no other file: make it static or delete it"


def main() -> int:
    if len(sys.argv) != 2:
        print(f"usage: {sys.argv[0]} BUILD_DIRECTORY", file=sys.stderr)
        return 2
    objects = read_objects(Path(sys.argv[1]))
    layers = layering.parse((TOP / "src/LAYERS").read_text())
    allowed = read_pure_symbols((TOP / "tools/pure-symbols").read_text())
    found = [*impurities(objects, layers, allowed), *misnamed(objects), *unused(objects)]
    for line in sorted(set(found)):
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
