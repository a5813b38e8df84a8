# SPDX-License-Identifier: MIT
"""Runs fuzz targets, and adds up in docs/fuzzing.md what all recorded runs have executed.

`make fuzz` runs every target for some seconds. `make fuzz ARGS=--record` also writes the record,
skips the targets that have met the goal, and keeps the new inputs that reach edges of the code
which no saved input reaches. The time of a record is the CPU time, so that a busy machine does
not make it longer. It starts no target on several cores: on one core the count is exact.
"""

from __future__ import annotations

import datetime
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from builds import SANITIZER_ENVIRONMENT
from steps import TOP, say

GOAL_EXECUTIONS = 20_000_000
GOAL_CPU_S = 2 * 3600
# By the clock: an input that a busy machine delays is no fault. Seconds are enough for any input.
HANGS_AFTER_S = 240
RECORD = TOP / "docs/fuzzing.md"
MARK = "<!-- written by tools/fuzzing.py -->\n"
END = "<!-- end -->"
HEAD = (
    "| target | executions | CPU time | goal | edges | saved inputs | last run |\n"
    "|---|---:|---:|---|---:|---:|---|\n"
)
ROW = re.compile(
    r"^\| `(\w+)` \| ([\d,]+) \| (\d+) s \| [\w ]+ \| ([\d,]+) \| \d+ \| ([\d-]+) \|$", re.MULTILINE
)
EXECUTED = re.compile(r"^stat::number_of_executed_units:\s*(\d+)$", re.MULTILINE)
COVERED = re.compile(r"^#\d+\s+\S+\s+cov: (\d+) ", re.MULTILINE)


@dataclass(frozen=True)
class Total:
    """What all recorded runs of one target have done."""

    executions: int = 0
    cpu_s: int = 0
    edges: int = 0  # of the code that the inputs of the last run reach
    date: str = ""

    @property
    def met(self) -> bool:
        return self.executions >= GOAL_EXECUTIONS or self.cpu_s >= GOAL_CPU_S

    def plus(self, run: Run) -> Total:
        return Total(
            self.executions + run.executions, self.cpu_s + round(run.cpu_s), run.edges, run.date
        )


@dataclass(frozen=True)
class Run:
    """What one run of one target has done."""

    status: int
    executions: int
    edges: int
    cpu_s: float
    date: str


def understand(output: str, status: int, cpu_s: float, date: str) -> Run:
    """Reads the output of libFuzzer. A run that did not end by itself has no statistics."""
    executed = EXECUTED.findall(output)
    covered = COVERED.findall(output)
    return Run(
        status=status,
        executions=int(executed[-1]) if executed else 0,
        edges=int(covered[-1]) if covered else 0,
        cpu_s=cpu_s,
        date=date,
    )


def read_record(text: str) -> dict[str, Total]:
    return {
        name: Total(int(count.replace(",", "")), int(cpu), int(edges.replace(",", "")), date)
        for name, count, cpu, edges, date in ROW.findall(text)
    }


def write_record(text: str, totals: dict[str, Total], saved: dict[str, int]) -> str:
    """The text with the table of these totals. `saved` counts the saved inputs of each target."""
    rows = [
        f"| `{name}` | {total.executions:,} | {total.cpu_s} s |"
        f" {'met' if total.met else 'not yet'} | {total.edges:,} | {saved.get(name, 0)} |"
        f" {total.date} |\n"
        for name, total in sorted(totals.items())
    ]
    before, mark, rest = text.partition(MARK)
    _, end, after = rest.partition(END)
    if not mark or not end:
        raise ValueError(f"{RECORD.name} has no place for the table")
    return before + MARK + "\n" + HEAD + "".join(rows) + "\n" + END + after


def name_of(target: Path) -> str:
    return target.name.removesuffix("_fuzz")


def saved_folder(name: str) -> Path:
    return TOP / "fuzz/corpus" / name


def count_saved(name: str) -> int:
    folder = saved_folder(name)
    return len(list(folder.iterdir())) if folder.is_dir() else 0


def starting_folders(target: Path) -> list[Path]:
    """The folders of the repository and of the build that a target begins with."""
    name = name_of(target)
    folders = [saved_folder(name)]
    if name in ("request", "session"):
        folders.append(target.parent / "seeds")
    return [folder for folder in folders if folder.is_dir()]


def found_folder(target: Path) -> Path:
    folder = target.parent.parent / "found" / name_of(target)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def fuzz(target: Path, seconds: int, executions: int = 0) -> Run:
    """Runs a target for some seconds, or until it has made this many executions (0: no limit)."""
    found = found_folder(target)
    words = [str(target), f"-max_total_time={seconds}", f"-timeout={HANGS_AFTER_S}"]
    words += ["-print_final_stats=1", f"-artifact_prefix={found}/"]
    words += [f"-runs={executions}"] if executions else []
    words += [str(folder) for folder in (found, *starting_folders(target))]
    dictionary = TOP / "fuzz" / f"{name_of(target)}.dict"
    words += [f"-dict={dictionary}"] if dictionary.is_file() else []
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        process = subprocess.Popen(
            words,
            cwd=TOP,
            env=os.environ | SANITIZER_ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read()
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    run = understand(text, process.returncode, used.ru_utime + used.ru_stime, today)
    if run.status != 0:
        say(text[-8000:])
    say(
        f"{name_of(target)}: {run.executions:,} executions, {run.cpu_s:.0f} s of CPU time,"
        f" {run.edges:,} edges{'' if run.status == 0 else ', FAILED'}"
    )
    return run


def keep_new_inputs(target: Path) -> int:
    """Saves the fewest inputs found that reach edges which the saved ones do not. Returns how
    many. The hit counts of an edge do not count, because they would make the corpus large."""
    saved = saved_folder(name_of(target))
    with tempfile.TemporaryDirectory(prefix="weir-fuzz-kept-") as kept:
        for folder in starting_folders(target):
            for path in folder.iterdir():
                shutil.copyfile(path, Path(kept) / path.name)
        before = {path.name for path in Path(kept).iterdir()}
        words = [str(target), "-set_cover_merge=1", "-use_counters=0"]
        words += [f"-timeout={HANGS_AFTER_S}"]
        done = subprocess.run(
            [*words, kept, str(found_folder(target))],
            cwd=TOP,
            env=os.environ | SANITIZER_ENVIRONMENT,
            capture_output=True,
        )
        if done.returncode != 0:
            raise OSError(f"{target.name} cannot merge: {done.stderr[-500:]!r}")
        new = [path for path in Path(kept).iterdir() if path.name not in before]
        saved.mkdir(exist_ok=True)
        for path in new:
            shutil.copyfile(path, saved / path.name)
    return len(new)


def fuzz_and_record(target: Path, seconds: int) -> Run | None:
    """Runs a target, and adds the run to the record unless it has found a fault. None: the target
    has met the goal before."""
    name = name_of(target)
    total = read_record(RECORD.read_text()).get(name, Total())
    if total.met:
        say(f"{name}: {total.executions:,} executions are recorded, which is enough")
        return None
    run = fuzz(target, seconds, GOAL_EXECUTIONS - total.executions)
    if run.status != 0:
        return run
    say(f"{name}: {keep_new_inputs(target)} new inputs are saved")
    text = RECORD.read_text()
    totals = read_record(text)
    totals[name] = total.plus(run)
    RECORD.write_text(write_record(text, totals, {each: count_saved(each) for each in totals}))
    return run
