# SPDX-License-Identifier: MIT
"""Runs steps in lanes, and reports what each step did, how long it took, and its usual time.

All steps together may have a limit of time. Commands that still run then are ended, so that the
report says which step did not come to its end, and what its output was.

A step's output goes to a file in .cache/steps. It is printed when the step has failed, and always
in continuous integration. A step that runs alone prints as it goes.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeVar

from tally import ONE_FAILED, ONE_PASSED, Tally

TOP = Path(__file__).resolve().parent.parent
OUTPUTS = TOP / ".cache/steps"
USUAL_FILE = TOP / "tools/usual-seconds"
CONTINUOUS = os.environ.get("CI") == "true"
NICE_MAX = 19
# How long a command that is interrupted may take to report what it knows.
LAST_WORDS_S = 60

Steps = list[tuple[str, Callable[[], Tally]]]

T = TypeVar("T")
U = TypeVar("U")


class Spent:
    """The processor time of one step's commands and of the processes that they waited for."""

    def __init__(self) -> None:
        self.cpu_s = 0.0
        self._lock = threading.Lock()  # one step may run commands in several threads

    def add(self, cpu_s: float) -> None:
        with self._lock:
            self.cpu_s += cpu_s


# The file for the current step's output (None is our own output), and what the step has used.
_output: ContextVar[IO[str] | None] = ContextVar("output", default=None)
_spent: ContextVar[Spent | None] = ContextVar("spent", default=None)
_printing = threading.Lock()
_interrupted = threading.Event()


class Limit:
    """Ends the commands of all steps when their time is over. No command begins after that."""

    def __init__(self) -> None:
        self.over = False
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[str]] = set()

    def add(self, process: subprocess.Popen[str]) -> None:
        with self._lock:
            self._running.add(process)
            if self.over:
                process.kill()

    def remove(self, process: subprocess.Popen[str]) -> None:
        with self._lock:
            self._running.discard(process)

    def start(self, seconds: float) -> None:
        self._later(seconds, self._interrupt)

    def _interrupt(self) -> None:
        with self._lock:
            self.over = True
            for process in self._running:
                process.send_signal(signal.SIGINT)
        self._later(LAST_WORDS_S, self._kill)

    def _kill(self) -> None:
        with self._lock:
            for process in self._running:
                process.kill()

    @staticmethod
    def _later(seconds: float, action: Callable[[], None]) -> None:
        timer = threading.Timer(seconds, action)
        timer.daemon = True
        timer.start()


limit = Limit()


def say(*words: str, sep: str = " ") -> None:
    """Prints to the output of the current step."""
    print(*words, sep=sep, file=_output.get() or sys.stdout, flush=True)


def announce(line: str) -> None:
    """Prints a whole line to our own output, from whichever lane."""
    with _printing:
        print(line, flush=True)


def finish(process: subprocess.Popen[str]) -> int:
    """Waits for a command, and adds its processor time to the step's."""
    if process.returncode is None:
        limit.add(process)
        # The process stays a zombie until the set does not name it: no other gets its number.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        limit.remove(process)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if spent := _spent.get():
            spent.add(used.ru_utime + used.ru_stime)
    return process.returncode


def run(command: list[str], **environment: str) -> int:
    """Runs a command from the top of the tree, and returns its exit status."""
    sys.stdout.flush()
    output = _output.get()
    return finish(
        subprocess.Popen(
            command,
            cwd=TOP,
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT if output else None,
            text=True,
        )
    )


def outcome(status: int) -> Tally:
    return ONE_PASSED if status == 0 else ONE_FAILED


class BuildError(Exception):
    """A build failed. No step that needs the build can run."""


def on_all_processors(work: Callable[[T], U], items: Iterable[T]) -> Iterator[U]:
    """Like map, in one thread for each processor. The threads charge the caller's step."""
    spent, output = _spent.get(), _output.get()

    def begin() -> None:
        _spent.set(spent)
        _output.set(output)

    with ThreadPoolExecutor(os.cpu_count(), initializer=begin) as pool:
        yield from pool.map(work, items)


@dataclass(frozen=True)
class Done:
    """The result of a step and what it took."""

    title: str
    tally: Tally
    wall_s: float
    cpu_s: float


def read_usual(file: Path = USUAL_FILE) -> dict[str, int]:
    """The measured time of each step, in seconds: lines of a number, a space and the title."""
    lines = file.read_text().splitlines() if file.is_file() else []
    rows = (line.split(" ", 1) for line in lines if line and not line.startswith("#"))
    return {title: int(seconds) for seconds, title in rows}


def write_usual(done: list[Done], file: Path = USUAL_FILE) -> None:
    """Replaces the lines of these steps, adds those that are new, and keeps all others."""
    usual = read_usual(file) | {each.title: max(1, round(each.wall_s)) for each in done}
    head = [line for line in file.read_text().splitlines() if line.startswith("#")]
    file.write_text("\n".join([*head, *(f"{s} {title}" for title, s in usual.items()), ""]))


def late(why: str) -> Tally:
    return Tally(failed=1, failures=(why,))


def counted(title: str, step: Callable[[], Tally], *, alone: bool = True) -> Done:
    """Runs one step, and prints a line before it and a line after it."""
    if limit.over:
        return Done(title, late("did not begin in time"), 0, 0)
    usual = read_usual().get(title)
    announce(f"{title} ... usually {usual} s" if usual else f"{title} ...")
    spent = Spent()
    _spent.set(spent)
    OUTPUTS.mkdir(parents=True, exist_ok=True)
    with (OUTPUTS / re.sub(r"\W+", "-", title)).open("w+", errors="replace") as output:
        _output.set(None if alone else output)
        began = time.monotonic()
        try:
            tally = step()
        except (BuildError, OSError, subprocess.CalledProcessError) as failure:
            say(str(failure))
            tally = ONE_FAILED
        if limit.over:
            tally += late("did not end in time")
        done = Done(title, tally, time.monotonic() - began, spent.cpu_s)
        _output.set(None)
        output.seek(0)
        text = output.read() if tally.failed or CONTINUOUS else ""
    words = f"{tally.passed} passed, {tally.failed} failed"
    if tally.skipped:
        words += f", {tally.skipped} skipped"
    announce(f"{text}{title}: {words} ({done.wall_s:.0f} s)")
    return done


def together(lanes: list[Steps], computing: frozenset[str] = frozenset()) -> list[Done]:
    """Runs lanes side by side, and the steps of one lane one after the other.

    A lane that has only steps that compute gets the lowest priority, so that it delays no test.
    """
    alone = sum(len(lane) for lane in lanes) == 1

    def work(lane: Steps) -> list[Done]:
        if computing.issuperset(title for title, _ in lane) and len(lanes) > 1:
            # Linux sets the priority of this thread only. Its commands inherit the priority.
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE_MAX)
        return [counted(*step, alone=alone) for step in lane if not _interrupted.is_set()]

    with ThreadPoolExecutor(max_workers=len(lanes)) as pool:
        running = [pool.submit(work, lane) for lane in lanes]
        try:
            return [done for lane in running for done in lane.result()]
        except KeyboardInterrupt:
            _interrupted.set()  # commands end by the same signal, and no step follows
            raise


def table(steps: list[Done]) -> list[str]:
    """What each step took."""
    width = max([len("step"), *(len(each.title) for each in steps)])
    lines = [f"{'step':<{width}}  clock s    CPU s"]
    lines += [f"{each.title:<{width}} {each.wall_s:8.1f} {each.cpu_s:8.1f}" for each in steps]
    return lines
