#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the stages of `make test` and adds up what passed and failed.

A stage is a list of steps; a step is one command, and knows how to count what
it ran: cmocka and the conformance runner through Meson's log, pytest through
its report, anything else as one. Builds are made when the first step needs
them. It runs on a bare Python, since it also runs what makes the better one.

The last line of output is always `N passed, M failed`, which machines read.
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
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tally import (
    ONE_FAILED,
    ONE_PASSED,
    ONE_SKIPPED,
    Tally,
    count_program,
    count_report,
    failing,
)

TOP = Path(__file__).resolve().parent.parent
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


# Where the present step's output goes, when not to ours.
_output: ContextVar[IO[str] | None] = ContextVar("output", default=None)


def say(*words: str, sep: str = " ") -> None:
    print(*words, sep=sep, file=_output.get() or sys.stdout, flush=True)


def run(command: list[str], **environment: str) -> int:
    """Runs a command from the top of the tree, with its output going to the step's."""
    sys.stdout.flush()
    done = subprocess.run(
        command,
        cwd=TOP,
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        stdout=_output.get(),
        stderr=subprocess.STDOUT if _output.get() else None,
        check=False,
    )
    return done.returncode


def outcome(status: int) -> Tally:
    return ONE_PASSED if status == 0 else ONE_FAILED


def source_files(*endings: str) -> list[str]:
    found = (
        path
        for room in ("src", "tests", "fuzz", "bench")
        for path in (TOP / room).rglob("*")
        if path.suffix in endings
    )
    return sorted(str(path.relative_to(TOP)) for path in found)


class BuildError(Exception):
    """Nothing that needs this build can run."""


_tried: dict[str, bool] = {}
_building = threading.Lock()


def build(name: str) -> Path:
    """Configures and builds, once for each name in one run; says where."""
    made = BUILDS[name]
    directory = TOP / made.directory
    with _building:  # steps side by side may want the same one
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
    folder: str, *, server: str = "", choose: str = "", part: str = "", python: Path = PYTHON
) -> Callable[[], Tally]:
    """A step that runs the tests in a folder, with the server of the build `server`.

    `choose` is pytest's -k, for what suits that build; `part` tells steps on one folder apart.
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
            print(f"skipped: {needs} is not installed")
            return ONE_SKIPPED
        return outcome(run(list(words)))

    return step


def format_check() -> Tally:
    checked = subprocess.run(
        ["clang-format", "--dry-run", "-Werror", *source_files(".c", ".h")],
        cwd=TOP,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = re.findall(r"^(\S+:\d+):\d+: error", checked.stderr, re.MULTILINE)
    for path in sorted({line.partition(":")[0] for line in lines}):
        first = next(line for line in lines if line.startswith(f"{path}:"))
        print(f"{first}: not as `make format` has it")
    if checked.returncode != 0 and not lines:
        print(checked.stderr)
    return outcome(checked.returncode)


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
        print("skipped: clang-tidy is not installed")
        return ONE_SKIPPED
    directory = build("clang")
    files = [name for name in source_files(".c") if name.startswith("src/")]
    jobs = os.cpu_count() or 1
    batches = [files[start::jobs] for start in range(min(jobs, len(files)))]
    running = [
        subprocess.Popen(
            ["clang-tidy", "--quiet", "-p", str(directory), *batch],
            cwd=TOP,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for batch in batches
    ]
    tally = ONE_PASSED
    for process in running:
        output, _ = process.communicate()
        if process.returncode != 0:
            print(output)
            tally = ONE_FAILED
    return tally


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
            if (dictionary := TOP / "fuzz" / f"{name}.dict").is_file():
                words.append(f"-dict={dictionary}")
            tally += outcome(run(words, **SANITIZER_ENVIRONMENT))
        return tally

    return step


# What the lab imports is known only where it is installed.
LAB_MYPY = ("--cache-dir", ".cache/mypy-lab", "lab/weir_lab", "lab/tests")

Steps = list[tuple[str, Callable[[], Tally]]]

# What runs under a sanitizer: no browser, which proves nothing more there; nothing that counts
# descriptors or memory or traces system calls, which a sanitizer has of its own; no more than some
# hundred threads or processes, for each of which it takes megabytes; what waits for the disk's
# clock with one model, since it is not the model that is tested; and for TSan what has threads,
# without the cases, which have one connection each.
PLAIN = (
    "not browser and not descriptors and not test_check and not test_command_line"
    " and not hold_no_buffers"
    " and not (held_and_none_is_reset and (1000 or 9000)) and not ten_thousand"
    " and (percore or not (test_freshness or test_mirror))"
)
THREADED = (
    "(thread or pool or prefork or percore or uring) and not [fork and not [epoll"
    # What the kernel writes for a ring TSan does not see; all else that its threads share, it does.
    " and not test_conformance and not none_is_reset and not test_slow_clients"
    # The master has one thread.
    f" and not test_control and not test_systemd and not test_upgrade and {PLAIN}"
)


# What mostly waits, for clocks, browsers and terminals, or is many small things.
WAITING = (
    "test_slow_clients or test_freshness or test_stopping or test_conformance or test_top"
    " or test_control or test_mirror or test_kubernetes or browser"
)
E2E = ("end to end", "end to end, what waits")
ASAN_E2E = "end to end under ASan and UBSan"
TSAN_E2E = "models with threads under TSan"

# The one does something when the other does not.
SIDE_BY_SIDE = (E2E, (ASAN_E2E, TSAN_E2E))


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
            ("clang-tidy", clang_tidy),
            ("cppcheck", command("tools/run-cppcheck", needs="cppcheck")),
        ],
        "e2e": [
            (E2E[0], pytest("tests/e2e", server="release", choose=f"not ({WAITING})")),
            (E2E[1], pytest("tests/e2e", server="release", choose=WAITING, part="-waiting")),
        ],
        "lab": [("experiments", pytest("lab/tests", server="release", python=LAB_PYTHON))],
        "faults": [("failing calls", pytest("tests/faults", server="gcc"))],
        "asan": [
            (f"{suite} under ASan and UBSan", meson_tests("asan", suite))
            for suite in ("unit", "conformance", "property", "fuzz")
        ]
        + [(ASAN_E2E, pytest("tests/e2e", server="asan", choose=PLAIN))],
        "tsan": [
            (f"{suite} under TSan", meson_tests("tsan", suite, wrapper=still))
            for suite in ("concurrency", "unit")
        ]
        + [(TSAN_E2E, pytest("tests/e2e", server="tsan", choose=THREADED))],
        "valgrind": [("every model under Valgrind", pytest("tests/valgrind", server="release"))],
        "fuzz": [("fuzz", fuzz(seconds))],
    }


def chosen_steps(
    names: list[str], stages: dict[str, Steps]
) -> Iterator[list[tuple[str, Callable[[], Tally]]]]:
    """The steps of the named stages, each title once; what comes together runs side by side."""
    steps: dict[str, Callable[[], Tally]] = {}
    for name in names:
        for title, step in stages[name]:
            steps.setdefault(title, step)
    told: set[str] = set()
    for title in steps:
        group = next((group for group in SIDE_BY_SIDE if title in group), (title,))
        if title not in told:
            yield [(each, steps[each]) for each in group if each in steps]
        told |= set(group)


def counted(title: str, step: Callable[[], Tally]) -> Tally:
    """Runs one step and tells what came of it."""
    say(f"== {title}")
    began = time.monotonic()
    try:
        tally = step()
    except BuildError as failure:
        say(str(failure))
        tally = ONE_FAILED
    words = f"{tally.passed} passed, {tally.failed} failed"
    if tally.skipped:
        words += f", {tally.skipped} skipped"
    say(f"-- {title}: {words} ({time.monotonic() - began:.1f} s)")
    return tally


def together(steps: Steps) -> list[Tally]:
    """Runs steps side by side; the output of the first is seen, that of others when they end."""

    def hidden(title: str, step: Callable[[], Tally]) -> tuple[Tally, str]:
        with tempfile.TemporaryFile("w+") as output:
            _output.set(output)
            tally = counted(title, step)
            output.seek(0)
            return tally, output.read()

    with ThreadPoolExecutor(max_workers=len(steps)) as pool:
        others = [pool.submit(hidden, *step) for step in steps[1:]]
        tallies = [counted(*steps[0])]
        for other in others:
            tally, text = other.result()
            tallies.append(tally)
            print(text, end="", flush=True)
    return tallies


def main() -> int:
    stages = every_stage(0)
    parser = argparse.ArgumentParser(description="Run stages of the tests.")
    parser.add_argument("--seconds", type=int, default=60, help="for each fuzz target")
    parser.add_argument("stage", nargs="+", choices=sorted(stages))
    options = parser.parse_args()
    stages = every_stage(options.seconds)

    tally = Tally()
    failures: list[str] = []
    for steps in chosen_steps(options.stage, stages):
        for (title, _), each in zip(steps, together(steps), strict=True):
            tally += each
            if each.failed:
                failures.append(title)

    print()
    for name in _unsteady:
        print(f"passed only when tried again: {name}")
    for title in failures:
        print(f"failed: {title}")
    if tally.skipped:
        print(f"skipped: {tally.skipped}")
    summary = f"{tally.passed} passed, {tally.failed} failed"
    print(summary, flush=True)
    SUMMARY_FILE.parent.mkdir(exist_ok=True)
    SUMMARY_FILE.write_text(summary + "\n")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
