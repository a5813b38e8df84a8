# SPDX-License-Identifier: MIT
"""A file is analysed again when anything that its analysis reads has changed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from analysis import Known, Unit, read_dependencies, units

TWO = """\
liba.p/a.c.o: #deps 2, deps mtime 17 (VALID)
    ../src/a.c
    ../src/a.h

liba.p/b.c.o: #deps 1, deps mtime 17 (STALE)
    ../src/b.c

"""
NINJA = """\
rule cc
  command = cc -MD -MF $out.d -c $in -o $out
  depfile = $out.d
  deps = gcc
build a.o: cc ../src/a.c
build b.o: cc ../src/b.c
build outside.o: cc ../outside.c
"""


def test_reads_the_dependencies_that_are_valid() -> None:
    assert read_dependencies(TWO) == {"liba.p/a.c.o": ["../src/a.c", "../src/a.h"]}
    assert read_dependencies("") == {}


def ninja(tree: Path, *words: str) -> str:
    command = ["ninja", "-C", "build", *words]
    return subprocess.run(command, cwd=tree, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Two files of which one includes a header, built."""
    if not shutil.which("clang-tidy"):
        pytest.skip("clang-tidy is not installed")
    (tmp_path / "src").mkdir()
    (tmp_path / ".clang-tidy").write_text("Checks: '-*,bugprone-*'\n")
    (tmp_path / "src/a.h").write_text("int a(void);\n")
    (tmp_path / "src/a.c").write_text('#include "a.h"\nint a(void) { return 1; }\n')
    (tmp_path / "src/b.c").write_text("int b(void);\nint b(void) { return 2; }\n")
    (tmp_path / "outside.c").write_text("int main(void) { return 0; }\n")
    (tmp_path / "build").mkdir()
    (tmp_path / "build/build.ninja").write_text(NINJA)
    compiled = ninja(tmp_path, "-t", "compdb")
    (tmp_path / "build/compile_commands.json").write_text(compiled)
    return tmp_path


def keys(tree: Path) -> dict[str, str]:
    ninja(tree)
    return {unit.path: unit.key for unit in units(tree, tree / "build")}


def change(path: Path, text: str) -> None:
    """With a time that is later for certain."""
    path.write_text(text)
    later = path.stat().st_mtime_ns + 2_000_000_000
    os.utime(path, ns=(later, later))


def test_a_key_changes_with_what_the_analysis_reads(tree: Path) -> None:
    first = keys(tree)
    assert sorted(first) == ["src/a.c", "src/b.c"]
    assert all(first.values())
    assert keys(tree) == first

    change(tree / "src/a.h", "int a(void); /* changed */\n")
    second = keys(tree)
    assert second["src/a.c"] != first["src/a.c"]
    assert second["src/b.c"] == first["src/b.c"]

    (tree / ".clang-tidy").write_text("Checks: '-*,misc-*'\n")
    third = keys(tree)
    assert not set(third.values()) & {*first.values(), *second.values()}


def test_a_file_that_is_compiled_twice_is_analysed_once(tree: Path) -> None:
    first = keys(tree)
    twice = "build other/a.o: cc ../src/a.c\n"
    (tree / "build/build.ninja").write_text(NINJA + twice)
    (tree / "build/compile_commands.json").write_text(ninja(tree, "-t", "compdb"))
    (only,) = [unit for unit in units(tree, tree / "build") if unit.path == "src/a.c"]
    assert only.key == ""  # the second object was never built
    second = keys(tree)
    assert second["src/a.c"] not in ("", first["src/a.c"])
    assert second["src/b.c"] == first["src/b.c"]


def test_a_file_that_was_never_built_is_never_clean(tree: Path, tmp_path: Path) -> None:
    found = units(tree, tree / "build")
    known = Known(tmp_path / "known.json")
    for unit in found:
        known.add(unit)
    known.save(found)
    assert [unit.path for unit in found] == ["src/a.c", "src/b.c"]
    assert not any(Known(tmp_path / "known.json").clean(unit) for unit in found)


def test_remembers_clean_files_that_still_exist(tmp_path: Path) -> None:
    file = tmp_path / "cache/known.json"
    one, two = Unit("src/a.c", 1, "k1"), Unit("src/b.c", 1, "k2")
    known = Known(file)
    known.add(one)
    known.add(two)
    known.save([one])
    again = Known(file)
    assert again.clean(one)
    assert not again.clean(Unit("src/a.c", 1, "k3"))
    assert not again.clean(two)
    assert list(json.loads(file.read_text())) == ["src/a.c"]
