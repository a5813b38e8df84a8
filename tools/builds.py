# SPDX-License-Identifier: MIT
"""The builds that the tests need: which compiler, which Meson options, and where.

A build is made when the first step needs it, once in a run. Builds share no objects, since their
options differ.
"""

from __future__ import annotations

import subprocess
import threading
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from steps import TOP, BuildError, run


@dataclass(frozen=True)
class Build:
    """A build directory."""

    directory: str
    compiler: str
    options: tuple[str, ...]
    targets: tuple[str, ...] = ()  # patterns of what the steps need; none: everything


_SANITIZED = ("-Dtests=true", "-Dhardening=false", "-Db_lundef=false")
_ADDRESS = "-Db_sanitize=address,undefined"
_SERVERS = ("weir", "tests/weir-serial")
BUILDS = {
    "release": Build("build", "gcc", ("-Db_lto=true",)),
    "gcc": Build("build-gcc", "gcc", ("-Dtests=true",)),
    # For clang-tidy. tools/clang_warnings.py has clang read all other files.
    "clang": Build("build-clang", "clang", ("-Dtests=true",), _SERVERS),
    "asan": Build("build-asan", "gcc", (*_SANITIZED, _ADDRESS)),
    # TSan does not model fences. What they order is atomic, so it reports no race there.
    "tsan": Build(
        "build-tsan",
        "gcc",
        (*_SANITIZED, "-Db_sanitize=thread", "-Dc_args=-Wno-tsan"),
        (*_SERVERS, "bench/*", "tests/unit_*", "tests/concurrency_*"),
    ),
    "fuzz": Build("build-fuzz", "clang", ("-Dfuzz=true", *_SANITIZED[1:], _ADDRESS)),
    # -O1 keeps most lines apart. At -O0 gcc 12 crashes in src/server/capacity.c, and both
    # have warnings that -O2 does not have.
    "coverage": Build(
        "build-coverage",
        "gcc",
        (
            "-Dtests=true",
            "-Dhardening=false",
            "-Db_coverage=true",
            "-Doptimization=1",
            "-Dwerror=false",
        ),
    ),
}

# A sanitizer that finds an error ends the process, so that the test fails.
SANITIZER_ENVIRONMENT = {
    "ASAN_OPTIONS": "halt_on_error=1:detect_stack_use_after_return=1:strict_string_checks=1",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1",
}

_tried: dict[str, bool] = {}
_building = {name: threading.Lock() for name in BUILDS}


def wanted(listed: str, patterns: tuple[str, ...]) -> list[str]:
    """The programs that match, from what `ninja -t targets all` prints: lines of `name: rule`."""
    programs = [line.split(": ")[0] for line in listed.splitlines() if line.endswith("_LINKER")]
    return [each for each in programs if any(fnmatch(each, pattern) for pattern in patterns)]


def targets(made: Build) -> list[str]:
    """What to build. An empty list is everything."""
    if not made.targets:
        return []
    command = ["ninja", "-C", made.directory, "-t", "targets", "all"]
    listed = subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=True).stdout
    return wanted(listed, made.targets)


def build(name: str) -> Path:
    """Configures and compiles, once for each name in one run. Returns the directory."""
    made = BUILDS[name]
    with _building[name]:  # steps of two lanes may need the same build
        if name not in _tried:
            configure = ["scripts/configure", made.directory, *made.options]
            compiling = ["ninja", "--quiet", "-C", made.directory]
            configured = run(configure, CC=made.compiler) == 0
            _tried[name] = configured and run([*compiling, *targets(made)]) == 0
    if not _tried[name]:
        raise BuildError(f"the {name} build failed")
    return TOP / made.directory
