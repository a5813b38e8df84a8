#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the stages of `make test` and `make test-all`, and adds up what passed and failed.

A stage is a list of steps. A step is one command, and knows how to count what the command ran:
cmocka and the conformance runner through Meson's log, pytest through its report, all else as one.
It needs no package of Python, since some of its steps run before there is one.

At the end it prints the time of each step, by the clock and of the processors, and the name of
each test that failed. The last line of output is always `N passed, M failed`, for machines.
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
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import analysis
import fuzzing
from builds import SANITIZER_ENVIRONMENT, build
from steps import (
    CONTINUOUS,
    TOP,
    Done,
    Steps,
    announce,
    finish,
    limit,
    on_all_processors,
    outcome,
    run,
    say,
    table,
    together,
    write_usual,
)
from tally import ONE_FAILED, ONE_PASSED, ONE_SKIPPED, Tally, count_program, count_report

PYTHON = TOP / ".venv/bin/python"
LAB_PYTHON = TOP / ".venv-lab/bin/python"
SUMMARY_FILE = TOP / ".cache/summary"
# Most end to end tests wait. With three processes for each core the cores have work meanwhile.
SIDE_BY_SIDE = min(3 * (os.cpu_count() or 1), 24)
# Each process of pytest compiles every test file, unless an earlier run has kept the result.
COMPILED = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(TOP / ".cache/pycache")}
# The status of tools/layout where clang-format has another version.
ANOTHER_VERSION = 77


def source_files(*endings: str) -> list[str]:
    found = (
        path
        for room in ("src", "tests", "fuzz", "bench")
        for path in (TOP / room).rglob("*")
        if path.suffix in endings
    )
    return sorted(str(path.relative_to(TOP)) for path in found)


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
        # Meson adds the wrapper's name to the log's name. Without tests it writes no log.
        texts = [log.read_text() for log in logs.glob(f"{suite}*.json")]
        records = [json.loads(line) for text in texts for line in text.splitlines()]
        tally = sum(map(count_program, records), Tally())
        return tally if status == 0 or tally.failed > 0 else tally + ONE_FAILED

    return step


def pytest(
    folder: str,
    *,
    server: str = "",
    choose: str = "",
    models: str = "",
    each: int = 0,
    processes: int = 1,
    python: Path = PYTHON,
) -> Callable[[], Tally]:
    """A step that runs the tests in a folder, with the server of the build `server`.

    `choose` is pytest's -k. `models` names those that play the tests of every model, where not all
    do, and `each` is how many of them play one test. The tests run in several `processes`, except
    where K picks a few of them.
    """

    def step() -> Tally:
        environment = dict(COMPILED)
        environment |= {"PLAYED_MODELS": models} if models else {}
        environment |= {"PLAYED_EACH": str(each)} if each else {}
        if server:
            environment["WEIR"] = os.environ.get("WEIR", str(build(server) / "weir"))
            environment |= SANITIZER_ENVIRONMENT
        if server == "coverage":  # a confined worker cannot write its counts
            environment["WEIR_SANDBOX"] = "off"
        name = f"{folder.replace('/', '-')}{server}"
        report = TOP / f".cache/{name}.xml"
        report.parent.mkdir(exist_ok=True)
        report.unlink(missing_ok=True)
        command = [str(python), "-m", "pytest", folder, "-o", f"cache_dir=.cache/pytest-{name}"]
        picked = os.environ.get("K", "")
        chosen = [f"({words})" for words in (choose, picked) if words]
        command += ["-k", " and ".join(chosen)] if chosen else []
        if processes > 1 and not picked:
            command += ["-n", str(processes), "--dist", "worksteal"]
        command.append("-v" if CONTINUOUS else "-q")
        status = run([*command, f"--junitxml={report}"], **environment)
        if not report.exists():
            return outcome(status)
        tally = count_report(report)
        return tally if status in (0, 5) or tally.failed > 0 else tally + ONE_FAILED

    return step


def command(*words: str, needs: str = "") -> Callable[[], Tally]:
    """A step that is one command. It is skipped where the tool `needs` is not installed."""

    def step() -> Tally:
        if needs and not shutil.which(needs):
            say(f"skipped: {needs} is not installed")
            return ONE_SKIPPED
        return outcome(run(list(words)))

    return step


def captured(words: list[str]) -> tuple[int, str]:
    """Runs a command, and returns its exit status and what it printed."""
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            words, cwd=TOP, stdout=output, stderr=subprocess.STDOUT, text=True
        )
        status = finish(process)
        output.seek(0)
        return status, output.read()


def format_check() -> Tally:
    status, text = captured(["tools/layout", *source_files(".c", ".h")])
    if status == ANOTHER_VERSION:
        say(text.rstrip())
        return ONE_SKIPPED
    lines = re.findall(r"^(\S+:\d+):\d+: error", text, re.MULTILINE)
    for path in sorted({line.partition(":")[0] for line in lines}):
        first = next(line for line in lines if line.startswith(f"{path}:"))
        say(f"{first}: `make format` changes this line")
    if status != 0 and not lines:
        say(text)
    return outcome(status)


def made(name: str) -> Callable[[], Tally]:
    """A step that is a build, in which every warning is an error."""

    def step() -> Tally:
        build(name)
        return ONE_PASSED

    return step


def on_build(tool: str) -> Callable[[], Tally]:
    """A step that is one of our tools, with the gcc build as its argument."""
    return lambda: outcome(run([sys.executable, f"tools/{tool}", str(build("gcc"))]))


def instructions() -> Tally:
    """Compares the cost of requests with the record. WHY, a reason, writes the record."""
    if not shutil.which("valgrind"):
        say("skipped: valgrind is not installed")
        return ONE_SKIPPED
    words = [sys.executable, "tools/instructions.py", str(build("gcc"))]
    why = os.environ.get("WHY", "")
    return outcome(run([*words, *(["--record", why] if why else [])]))


def clang_tidy() -> Tally:
    if not shutil.which("clang-tidy"):
        say("skipped: clang-tidy is not installed")
        return ONE_SKIPPED
    directory = build("clang")
    known = analysis.Known(TOP / ".cache/clang-tidy.json")
    units = analysis.units(TOP, directory)
    # The largest first, so that no processor waits at the end.
    wanted = sorted(
        (unit for unit in units if not known.clean(unit)), key=lambda unit: unit.size, reverse=True
    )

    def analyse(unit: analysis.Unit) -> str:
        """The findings of clang-tidy in one file. Empty when the file is clean."""
        status, text = captured(["clang-tidy", "--quiet", "-p", str(directory), unit.path])
        return "" if status == 0 else text or f"{unit.path}: clang-tidy failed"

    bad = 0
    for unit, text in zip(wanted, on_all_processors(analyse, wanted), strict=True):
        if text:
            say(text)
            bad += 1
        else:
            known.add(unit)
    known.save(units)
    say(f"{len(wanted)} files of {len(units)} analysed; the others have not changed since")
    return outcome(bad)


def fuzz(seconds: int, names: Sequence[str] = (), *, record: bool = False) -> Callable[[], Tally]:
    """A step that runs the fuzz targets with these names, or all of them."""

    def step() -> Tally:
        targets = sorted((build("fuzz") / "fuzz").glob("*_fuzz"))
        if unknown := set(names) - set(map(fuzzing.name_of, targets)):
            say(f"there is no fuzz target {', '.join(sorted(unknown))}")
            return ONE_FAILED
        tally = Tally()
        for target in targets:
            if names and fuzzing.name_of(target) not in names:
                continue
            do = fuzzing.fuzz_and_record if record else fuzzing.fuzz
            done = do(target, seconds)
            tally += outcome(done.status if done else 0)
        return tally

    return step


# What the lab imports is installed in its own environment only.
LAB_MYPY = ("--cache-dir", ".cache/mypy-lab", "lab/weir_lab", "lab/tests")

# tests/README.md has the table of what runs under a sanitizer, and why that is enough.
PLAIN = (
    "not browser and not descriptors and not test_check and not test_command_line"
    " and not hold_no_buffers and not test_apparmor"
    " and not connections_are_held and not left_of_many_connections and not early_input"
    " and not have_the_key and not has_the_key and not test_completion"
)
# One model for each way to move bytes: blocking calls, threads behind a queue, readiness,
# completion.
WAYS = "thread pool percore uring"
# One test plays on so many of them. Together the tests play on all.
MODELS_EACH = 2
THREADED = (
    "(thread or pool or prefork or percore or uring) and not [fork and not [epoll"
    # TSan does not see what the kernel writes into a ring. It sees all else that threads share.
    " and not none_is_reset and not test_slow_clients and not test_conformance"
    " and not test_http2_conformance"
    # The master has one thread.
    f" and not test_control and not test_systemd and not test_upgrade and {PLAIN}"
)

SANITIZED_SUITES = ("unit", "conformance", "property", "fuzz")


def every_stage(fuzz_step: Callable[[], Tally]) -> dict[str, Steps]:
    """The steps of each stage, with the titles that reports use."""
    # TSan of gcc 12 cannot find its shadow memory where the kernel randomises addresses widely.
    still = "setarch --addr-no-randomize" if shutil.which("setarch") else ""
    fewer = max(2, SIDE_BY_SIDE // 2)  # two such steps run side by side, and use more CPU time
    return {
        "build": [("a build with gcc", made("gcc"))],
        "unit": [("unit tests", meson_tests("gcc", "unit"))],
        "conformance": [("conformance cases in memory", meson_tests("gcc", "conformance"))],
        "property": [("property tests", meson_tests("gcc", "property"))],
        "corpus": [("saved fuzz inputs", meson_tests("gcc", "fuzz"))],
        "cost": [("instructions of requests", instructions)],
        "e2e": [
            ("end to end", pytest("tests/e2e", server="gcc", processes=SIDE_BY_SIDE)),
        ],
        "check": [
            ("format", format_check),
            ("tidy", command(sys.executable, "tools/tidy.py")),
            ("map of RFC sections", command(sys.executable, "tools/conformance_map.py")),
            ("manual pages", command("tools/lint-manuals", needs="mandoc")),
            ("ruff", command(str(PYTHON), "-m", "ruff", "check", "--quiet")),
            ("ruff format", command(str(PYTHON), "-m", "ruff", "format", "--quiet", "--check")),
            ("mypy", command(str(PYTHON), "-m", "mypy")),
            ("mypy of lab/", command(str(LAB_PYTHON), "-m", "mypy", *LAB_MYPY)),
            ("tests of tools/", pytest("tests/tools")),
            ("every header alone, gcc", command("tools/headers-alone", "gcc")),
            ("every header alone, clang", command("tools/headers-alone", "clang")),
            ("warnings of clang", on_build("clang_warnings.py")),
            ("symbols: purity, names, use", on_build("symbols.py")),
        ],
        "concurrency": [("concurrency tests", meson_tests("gcc", "concurrency"))],
        "lab": [
            ("a release build", made("release")),
            (
                "experiments",
                pytest("lab/tests", server="release", processes=2, python=LAB_PYTHON),
            ),
        ],
        "faults": [("failing calls", pytest("tests/faults", server="gcc", processes=2))],
        "valgrind": [
            (
                "every model under Valgrind",
                pytest("tests/valgrind", server="release", processes=2),
            )
        ],
        "package": [("the Debian package", pytest("tests/package"))],
        "analysis": [
            ("a build with clang", made("clang")),
            ("clang-tidy", clang_tidy),
            ("cppcheck", command("tools/run-cppcheck", needs="cppcheck")),
        ],
        "asan": [("a build with ASan and UBSan", made("asan"))]
        + [
            (f"{suite} under ASan and UBSan", meson_tests("asan", suite))
            for suite in SANITIZED_SUITES
        ]
        + [
            (
                "end to end under ASan and UBSan",
                pytest(
                    "tests/e2e",
                    server="asan",
                    choose=PLAIN,
                    models=f"fork {WAYS}",
                    each=MODELS_EACH,
                    processes=fewer,
                ),
            ),
        ],
        "tsan": [("a build with TSan", made("tsan"))]
        + [
            (f"{suite} under TSan", meson_tests("tsan", suite, wrapper=still))
            for suite in ("concurrency", "unit")
        ]
        + [
            (
                "models with threads under TSan",
                pytest(
                    "tests/e2e",
                    server="tsan",
                    choose=THREADED,
                    models=WAYS,
                    each=MODELS_EACH,
                    processes=fewer,
                ),
            )
        ],
        "fuzz": [("fuzz", fuzz_step)],
    }


# Stages that run side by side: groups of lanes, each lane of stages one after the other.
# The lanes of `check` and `analysis` only compute, and delay no test.
LANES: dict[str, list[list[str]]] = {
    "test": [["build", "unit", "conformance", "property", "corpus", "cost", "e2e"], ["check"]],
    "rest": [
        ["asan"],
        ["tsan", "concurrency"],
        ["lab", "valgrind", "faults", "package"],
        ["analysis"],
    ],
}
COMPUTING = ("check", "analysis")


def lanes_of(name: str, stages: dict[str, Steps]) -> list[Steps]:
    """The steps of a group of lanes, or those of one stage."""
    lanes = LANES.get(name, [[name]])
    return [[step for stage in lane for step in stages[stage]] for lane in lanes]


def report(steps: list[Done], totals: list[Done], tally: Tally) -> None:
    print("", *table([*steps, *totals]), "", sep="\n")
    summary = []
    for each in steps:
        if each.tally.failed:
            summary.append(f"failed: {each.title}")
            summary += [f"    {line}" for line in each.tally.failures]
    if tally.skipped:
        summary.append(f"skipped: {tally.skipped}")
    summary.append(f"{tally.passed} passed, {tally.failed} failed")
    print(*summary, sep="\n", flush=True)
    SUMMARY_FILE.parent.mkdir(exist_ok=True)
    SUMMARY_FILE.write_text("\n".join([*summary, ""]))


def main() -> int:
    stages = every_stage(fuzz(0))
    parser = argparse.ArgumentParser(description="Run stages of the tests.")
    parser.add_argument("--seconds", type=int, default=60, help="for each fuzz target")
    parser.add_argument("--targets", nargs="+", default=[], help="fuzz these alone")
    parser.add_argument("--record", action="store_true", help="add fuzzing to docs/fuzzing.md")
    parser.add_argument("--minutes", type=float, help="end all steps then, and report")
    parser.add_argument(
        "--remember", action="store_true", help="write the usual times from this run"
    )
    parser.add_argument("stage", nargs="+", choices=sorted([*stages, *LANES]))
    options = parser.parse_args()
    stages = every_stage(fuzz(options.seconds, options.targets, record=options.record))
    computing = frozenset(title for stage in COMPUTING for title, _ in stages[stage])

    if options.minutes:
        limit.start(60 * options.minutes)
    steps: list[Done] = []
    totals: list[Done] = []
    for name in options.stage:
        began = time.monotonic()
        done = together(lanes_of(name, stages), computing)
        tally = sum((each.tally for each in done), Tally())
        total = Done(f"all of {name}", tally, time.monotonic() - began, sum(d.cpu_s for d in done))
        announce(
            f"{total.title}: {tally.passed} passed, {tally.failed} failed ({total.wall_s:.0f} s)"
        )
        steps += done
        totals.append(total)
    if options.remember:
        write_usual([*steps, *totals])
    tally = sum((each.tally for each in steps), Tally())
    report(steps, totals, tally)
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
