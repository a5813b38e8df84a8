#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the stages of `make test` and adds up what passed and failed.

A stage is a list of steps; a step is one command, and knows how to count what
it ran: cmocka and the conformance runner through Meson's log, pytest through
its report, anything else as one. Builds are made when the first step needs
them. It runs on a bare Python, since it also runs what makes the better one.

At the end it tells what each step took, by the clock and of the processors. The
last line of output is always `N passed, M failed`, which machines read.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import analysis
from steps import (
    TOP,
    BuildError,
    Done,
    Steps,
    finish,
    on_all_processors,
    outcome,
    run,
    say,
    table,
    together,
)
from tally import (
    ONE_FAILED,
    ONE_PASSED,
    ONE_SKIPPED,
    Tally,
    count_program,
    count_report,
    failing,
)

PYTHON = TOP / ".venv/bin/python"
LAB_PYTHON = TOP / ".venv-lab/bin/python"
SUMMARY_FILE = TOP / ".cache/summary"
CONTINUOUS = os.environ.get("CI") == "true"


@dataclass(frozen=True)
class Build:
    """A build directory: which compiler, which Meson options."""

    directory: str
    compiler: str
    options: tuple[str, ...]


SANITIZED = ("-Dtests=true", "-Dhardening=false", "-Db_lundef=false")
BUILDS = {
    "release": Build("build", "gcc", ("-Db_lto=true",)),
    "gcc": Build("build-gcc", "gcc", ("-Dtests=true",)),
    "clang": Build("build-clang", "clang", ("-Dtests=true",)),
    "asan": Build("build-asan", "gcc", (*SANITIZED, "-Db_sanitize=address,undefined")),
    "tsan": Build("build-tsan", "gcc", (*SANITIZED, "-Db_sanitize=thread")),
    "fuzz": Build(
        "build-fuzz",
        "clang",
        (
            "-Dfuzz=true",
            "-Dhardening=false",
            "-Db_lundef=false",
            "-Db_sanitize=address,undefined",
        ),
    ),
}

SANITIZER_ENVIRONMENT = {
    "ASAN_OPTIONS": "halt_on_error=1:detect_stack_use_after_return=1:strict_string_checks=1",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1",
}


def source_files(*endings: str) -> list[str]:
    found = (
        path
        for room in ("src", "tests", "fuzz", "bench")
        for path in (TOP / room).rglob("*")
        if path.suffix in endings
    )
    return sorted(str(path.relative_to(TOP)) for path in found)


_tried: dict[str, bool] = {}
_building = {name: threading.Lock() for name in BUILDS}


def build(name: str) -> Path:
    """Configures and builds, once for each name in one run; says where."""
    made = BUILDS[name]
    directory = TOP / made.directory
    with _building[name]:  # steps side by side may want the same one
        if name not in _tried:
            configure = ["scripts/configure", made.directory, *made.options]
            compile_all = ["ninja", "--quiet", "-C", made.directory]
            _tried[name] = run(configure, CC=made.compiler) == 0 and run(compile_all) == 0
    if not _tried[name]:
        raise BuildError(f"the {name} build failed")
    return directory


def meson_tests(build_name: str, suite: str, *, wrapper: str = "") -> Callable[[], Tally]:
    def step() -> Tally:
        directory = build(build_name)
        logs = directory / "meson-logs"
        for old in logs.glob(f"{suite}*.json"):
            old.unlink()
        command = ["meson", "test", "-C", str(directory), "--no-rebuild", "--suite", suite]
        command += ["--logbase", suite, "--print-errorlogs", *(["-v"] if CONTINUOUS else [])]
        if wrapper:
            command += ["--wrapper", wrapper]
        environment = SANITIZER_ENVIRONMENT if build_name in ("asan", "tsan") else {}
        status = run(command, **environment)
        # Meson adds the wrapper's name to the log's; without tests it writes none.
        texts = [log.read_text() for log in logs.glob(f"{suite}*.json")]
        records = [json.loads(line) for text in texts for line in text.splitlines()]
        tally = sum(map(count_program, records), Tally())
        return tally if status == 0 or tally.failed > 0 else tally + ONE_FAILED

    return step


# In continuous integration few failures among thousands are tried once more, alone: a machine that
# stands still for a second fails tests of time. What then passes is named at the end.
TRIED_AGAIN_MAX = 3
_unsteady: list[str] = []


def tried_again(command: list[str], report: Path, environment: dict[str, str]) -> bool:
    """Whether all that failed passes when it runs alone."""
    names = failing(report)
    if not CONTINUOUS or not 0 < len(names) <= TRIED_AGAIN_MAX:
        return False
    say("once more, alone:", *names, sep="\n  ")
    again = report.with_suffix(".again.xml")
    alone = [f"--junitxml={again}", "--last-failed", "--last-failed-no-failures=none"]
    if run([*command, *alone], **environment) != 0 or count_report(again).passed < len(names):
        return False
    _unsteady.extend(names)
    return True


def pytest(
    folder: str,
    *,
    server: str = "",
    choose: str = "",
    without: tuple[str, ...] = (),
    part: str = "",
    python: Path = PYTHON,
) -> Callable[[], Tally]:
    """A step that runs the tests in a folder, with the server of the build `server`.

    `choose` is pytest's -k, for what suits that build; files `without` are not even read, which for
    thousands of cases takes seconds; `part` tells steps on one folder apart.
    """

    def step() -> Tally:
        environment = {}
        if server:
            environment["WEIR"] = os.environ.get("WEIR", str(build(server) / "weir"))
            environment |= SANITIZER_ENVIRONMENT
        name = f"{folder.replace('/', '-')}{server}{part}"
        report = TOP / "build" / f"{name}.xml"
        report.parent.mkdir(exist_ok=True)
        report.unlink(missing_ok=True)
        command = [str(python), "-m", "pytest", folder, "-o", f"cache_dir=.cache/pytest-{name}"]
        command += [f"--ignore={folder}/{file}" for file in without]
        chosen = [f"({words})" for words in (choose, os.environ.get("K")) if words]
        command += ["-k", " and ".join(chosen)] if chosen else []
        command.append("-v" if CONTINUOUS else "-q")
        status = run([*command, f"--junitxml={report}"], **environment)
        if not report.exists():
            return outcome(status)
        tally = count_report(report)
        if status == 1 and tried_again(command, report, environment):
            return Tally(tally.passed + tally.failed, 0, tally.skipped)
        return tally if status in (0, 5) or tally.failed > 0 else tally + ONE_FAILED

    return step


def command(*words: str, needs: str = "") -> Callable[[], Tally]:
    """A step that is one command; skipped where the tool `needs` is not installed."""

    def step() -> Tally:
        if needs and not shutil.which(needs):
            say(f"skipped: {needs} is not installed")
            return ONE_SKIPPED
        return outcome(run(list(words)))

    return step


def format_check() -> Tally:
    with tempfile.TemporaryFile("w+") as output:
        status = finish(
            subprocess.Popen(
                ["clang-format", "--dry-run", "-Werror", *source_files(".c", ".h")],
                cwd=TOP,
                stderr=output,
                text=True,
            )
        )
        output.seek(0)
        told = output.read()
    lines = re.findall(r"^(\S+:\d+):\d+: error", told, re.MULTILINE)
    for path in sorted({line.partition(":")[0] for line in lines}):
        first = next(line for line in lines if line.startswith(f"{path}:"))
        say(f"{first}: not as `make format` has it")
    if status != 0 and not lines:
        say(told)
    return outcome(status)


def warnings(name: str) -> Callable[[], Tally]:
    def step() -> Tally:
        build(name)
        return ONE_PASSED

    return step


def symbols() -> Tally:
    directory = build("gcc")
    return outcome(run([sys.executable, "tools/symbols.py", str(directory)]))


def clang_tidy() -> Tally:
    if not shutil.which("clang-tidy"):
        say("skipped: clang-tidy is not installed")
        return ONE_SKIPPED
    directory = build("clang")
    known = analysis.Known(TOP / ".cache/clang-tidy.json")
    units = analysis.units(TOP, directory)
    # Those that take longest first, so that no processor waits at the end.
    asked = sorted(
        (unit for unit in units if not known.clean(unit)), key=lambda unit: unit.size, reverse=True
    )
    found = 0

    def ask(unit: analysis.Unit) -> str:
        """What it has to say of one file; nothing, when that is clean."""
        with tempfile.TemporaryFile("w+") as output:
            words = ["clang-tidy", "--quiet", "-p", str(directory), unit.path]
            process = subprocess.Popen(
                words, cwd=TOP, stdout=output, stderr=subprocess.DEVNULL, text=True
            )
            if finish(process) == 0:
                return ""
            output.seek(0)
            return output.read() or f"{unit.path}: clang-tidy failed"

    for unit, told in zip(asked, on_all_processors(ask, asked), strict=True):
        if told:
            say(told)
            found += 1
        else:
            known.add(unit)
    known.save(units)
    say(
        f"{len(asked)} files of {len(units)} looked at; the others are as they were when last clean"
    )
    return outcome(found)


def fuzz(seconds: int) -> Callable[[], Tally]:
    def step() -> Tally:
        directory = build("fuzz")
        tally = Tally()
        for target in sorted(path for path in (directory / "fuzz").glob("*_fuzz")):
            name = target.name.removesuffix("_fuzz")
            found = directory / "found" / name
            found.mkdir(parents=True, exist_ok=True)
            saved = TOP / "fuzz/corpus" / name
            words = [str(target), f"-max_total_time={seconds}", "-timeout=10"]
            words += ["-print_final_stats=1", f"-artifact_prefix={found}/", str(found)]
            words += [str(saved)] if saved.is_dir() else []
            words += [str(directory / "fuzz/seeds")] if name in ("request", "session") else []
            if (dictionary := TOP / "fuzz" / f"{name}.dict").is_file():
                words.append(f"-dict={dictionary}")
            tally += outcome(run(words, **SANITIZER_ENVIRONMENT))
        return tally

    return step


# What the lab imports is known only where it is installed.
LAB_MYPY = ("--cache-dir", ".cache/mypy-lab", "lab/weir_lab", "lab/tests")

# What runs under a sanitizer: no browser, which proves nothing more there; nothing that counts
# descriptors or memory or traces system calls, which a sanitizer has of its own; no more than some
# hundred threads or processes, for each of which it takes megabytes; what waits for the disk's
# clock with one model, since it is not the model that is tested; and for TSan what has threads,
# without the cases, which have one connection each. tests/README.md says why that is enough.
PLAIN = (
    "not browser and not descriptors and not test_check and not test_command_line"
    " and not hold_no_buffers"
    " and not (held_and_none_is_reset and (1000 or 9000)) and not ten_thousand"
    " and (percore or not (test_freshness or test_mirror))"
    # One of each way to move bytes: blocking calls, threads behind a queue, readiness, completion.
    " and (not test_conformance or [thread or [pool or [percore or [uring)"
)
THREADED = (
    "(thread or pool or prefork or percore or uring) and not [fork and not [epoll"
    # What the kernel writes for a ring TSan does not see; all else that its threads share, it does.
    " and not none_is_reset and not test_slow_clients"
    # The master has one thread.
    f" and not test_control and not test_systemd and not test_upgrade and {PLAIN}"
)


# What mostly waits, for clocks, browsers and terminals, or is many small things.
WAITING = (
    "test_slow_clients or test_freshness or test_stopping or test_conformance or test_top"
    " or test_control or test_mirror or test_kubernetes or browser"
)
CASES = "test_conformance.py"
E2E = ("end to end", "end to end, what waits")
ASAN_BUILD = "a build with ASan and UBSan"
TSAN_BUILD = "a build with TSan"
ASAN_E2E = ("end to end under ASan and UBSan", "what waits, under ASan and UBSan")
TSAN_E2E = "models with threads under TSan"
SANITIZED_SUITES = ("unit", "conformance", "property", "fuzz")
LAB = "experiments"
CLANG_TIDY = "clang-tidy"

# What only computes: beside tests it takes what these leave of the processors, and makes none late.
COMPUTING = (CLANG_TIDY, "cppcheck", ASAN_BUILD, TSAN_BUILD)

# What goes on at the same time: groups of lanes, each of steps one after the other, for end to end
# tests wait much. The lane that only computes is the last of its group.
SIDE_BY_SIDE: tuple[tuple[tuple[str, ...], ...], ...] = (
    ((E2E[0],), (E2E[1],), COMPUTING),
    (
        (ASAN_E2E[0], "every model under Valgrind"),
        (ASAN_E2E[1], *(f"{suite} under ASan and UBSan" for suite in SANITIZED_SUITES)),
        (TSAN_E2E, LAB),
    ),
)


def every_stage(seconds: int) -> dict[str, Steps]:
    """The steps of each stage, with the titles they are reported by."""
    # TSan of gcc 12 cannot find its shadow memory where the kernel randomises addresses widely.
    still = "setarch --addr-no-randomize" if shutil.which("setarch") else ""
    return {
        "unit": [("unit tests", meson_tests("gcc", "unit"))],
        "conformance": [("conformance cases", meson_tests("gcc", "conformance"))],
        "property": [("property tests", meson_tests("gcc", "property"))],
        "corpus": [("saved fuzz inputs", meson_tests("gcc", "fuzz"))],
        "concurrency": [("concurrency tests", meson_tests("gcc", "concurrency"))],
        "check": [
            ("format", format_check),
            ("tidy", command(sys.executable, "tools/tidy.py")),
            ("ruff", command(str(PYTHON), "-m", "ruff", "check", "--quiet")),
            ("ruff format", command(str(PYTHON), "-m", "ruff", "format", "--quiet", "--check")),
            ("mypy", command(str(PYTHON), "-m", "mypy")),
            ("mypy of lab/", command(str(LAB_PYTHON), "-m", "mypy", *LAB_MYPY)),
            ("tests of tools/", pytest("tests/tools")),
            ("gcc without a warning", warnings("gcc")),
            ("clang without a warning", warnings("clang")),
            ("every header alone, gcc", command("tools/headers-alone", "gcc")),
            ("every header alone, clang", command("tools/headers-alone", "clang")),
            ("symbols: purity, names, use", symbols),
            ("saved fuzz inputs", meson_tests("gcc", "fuzz")),
            (CLANG_TIDY, clang_tidy),
            ("cppcheck", command("tools/run-cppcheck", needs="cppcheck")),
        ],
        "e2e": [
            (
                E2E[0],
                pytest("tests/e2e", server="release", choose=f"not ({WAITING})", without=(CASES,)),
            ),
            (E2E[1], pytest("tests/e2e", server="release", choose=WAITING, part="-waiting")),
        ],
        "lab": [(LAB, pytest("lab/tests", server="release", python=LAB_PYTHON))],
        "faults": [("failing calls", pytest("tests/faults", server="gcc"))],
        "asan": [(ASAN_BUILD, warnings("asan"))]
        + [
            (f"{suite} under ASan and UBSan", meson_tests("asan", suite))
            for suite in SANITIZED_SUITES
        ]
        + [
            (
                ASAN_E2E[0],
                pytest(
                    "tests/e2e",
                    server="asan",
                    choose=f"{PLAIN} and not ({WAITING})",
                    without=(CASES,),
                ),
            ),
            (
                ASAN_E2E[1],
                pytest(
                    "tests/e2e", server="asan", choose=f"{PLAIN} and ({WAITING})", part="-waiting"
                ),
            ),
        ],
        "tsan": [(TSAN_BUILD, warnings("tsan"))]
        + [
            (f"{suite} under TSan", meson_tests("tsan", suite, wrapper=still))
            for suite in ("concurrency", "unit")
        ]
        + [(TSAN_E2E, pytest("tests/e2e", server="tsan", choose=THREADED, without=(CASES,)))],
        "valgrind": [("every model under Valgrind", pytest("tests/valgrind", server="release"))],
        "fuzz": [("fuzz", fuzz(seconds))],
    }


def chosen_steps(names: list[str], stages: dict[str, Steps]) -> Iterator[list[Steps]]:
    """The steps of the named stages, each title once, in lanes that run side by side."""
    steps: dict[str, Callable[[], Tally]] = {}
    for name in names:
        for title, step in stages[name]:
            steps.setdefault(title, step)
    told: set[str] = set()
    for title in steps:
        if title in told:
            continue
        group = next((g for g in SIDE_BY_SIDE if any(title in lane for lane in g)), ((title,),))
        lanes = [[(each, steps[each]) for each in lane if each in steps] for lane in group]
        yield [lane for lane in lanes if lane]
        told |= {each for lane in group for each in lane}


def main() -> int:
    stages = every_stage(0)
    parser = argparse.ArgumentParser(description="Run stages of the tests.")
    parser.add_argument("--seconds", type=int, default=60, help="for each fuzz target")
    parser.add_argument("stage", nargs="+", choices=sorted(stages))
    options = parser.parse_args()
    stages = every_stage(options.seconds)

    began = time.monotonic()
    steps: list[Done] = []
    for lanes in chosen_steps(options.stage, stages):
        steps += together(lanes, COMPUTING)
    tally = sum((each.tally for each in steps), Tally())
    all_of_it = Done("all", tally, time.monotonic() - began, sum(each.cpu_s for each in steps))

    print("", *table([*steps, all_of_it]), "", sep="\n")
    for name in _unsteady:
        print(f"passed only when tried again: {name}")
    for each in steps:
        if each.tally.failed:
            print(f"failed: {each.title}")
    if tally.skipped:
        print(f"skipped: {tally.skipped}")
    summary = f"{tally.passed} passed, {tally.failed} failed"
    print(summary, flush=True)
    SUMMARY_FILE.parent.mkdir(exist_ok=True)
    SUMMARY_FILE.write_text(summary + "\n")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
