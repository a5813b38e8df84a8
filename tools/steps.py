# SPDX-License-Identifier: MIT
"""Runs steps, one after the other or side by side, and says what came of each and what it took."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
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
NICE_MAX = 19

Steps = list[tuple[str, Callable[[], Tally]]]

T = TypeVar("T")
U = TypeVar("U")


class Spent:
    """What the commands of one step have used of the processors, with all that they waited for."""

    def __init__(self) -> None:
        self.cpu_s = 0.0
        self._lock = threading.Lock()  # a step may run commands side by side

    def add(self, cpu_s: float) -> None:
        with self._lock:
            self.cpu_s += cpu_s


# Where the present step's output goes, when not to ours; and what it has used.
_output: ContextVar[IO[str] | None] = ContextVar("output", default=None)
_spent: ContextVar[Spent | None] = ContextVar("spent", default=None)


def say(*words: str, sep: str = " ") -> None:
    print(*words, sep=sep, file=_output.get() or sys.stdout, flush=True)


def finish(process: subprocess.Popen[str]) -> int:
    """Waits for a command, and charges the step with what it used."""
    if process.returncode is None:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if spent := _spent.get():
            spent.add(used.ru_utime + used.ru_stime)
    return process.returncode


def run(command: list[str], **environment: str) -> int:
    """Runs a command from the top of the tree, with its output going to the step's."""
    sys.stdout.flush()
    return finish(
        subprocess.Popen(
            command,
            cwd=TOP,
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
            stdout=_output.get(),
            stderr=subprocess.STDOUT if _output.get() else None,
            text=True,
        )
    )


def outcome(status: int) -> Tally:
    return ONE_PASSED if status == 0 else ONE_FAILED


class BuildError(Exception):
    """Nothing that needs this build can run."""


def on_all_processors(work: Callable[[T], U], items: Iterable[T]) -> Iterator[U]:
    """Like map; it runs in threads, which charge the caller's step, with the caller's priority."""
    spent = _spent.get()
    with ThreadPoolExecutor(os.cpu_count(), initializer=lambda: _spent.set(spent)) as pool:
        yield from pool.map(work, items)


@dataclass(frozen=True)
class Done:
    """What came of a step, and what it took."""

    title: str
    tally: Tally
    wall_s: float
    cpu_s: float


def counted(title: str, step: Callable[[], Tally]) -> Done:
    """Runs one step and tells what came of it."""
    say(f"== {title}")
    spent = Spent()
    _spent.set(spent)
    began = time.monotonic()
    try:
        tally = step()
    except (BuildError, OSError, subprocess.CalledProcessError) as failure:
        say(str(failure))
        tally = ONE_FAILED
    done = Done(title, tally, time.monotonic() - began, spent.cpu_s)
    words = f"{tally.passed} passed, {tally.failed} failed"
    if tally.skipped:
        words += f", {tally.skipped} skipped"
    say(f"-- {title}: {words} ({done.wall_s:.1f} s)")
    return done


def together(lanes: list[Steps], computing: tuple[str, ...] = ()) -> list[Done]:
    """Runs lanes side by side; the output of the first is seen, that of others when they end.

    A lane behind the first that has only steps that compute gets the lowest priority.
    """

    def hidden(lane: Steps) -> tuple[list[Done], str]:
        if all(title in computing for title, _ in lane):
            # Of this thread, and of what it starts.
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE_MAX)
        with tempfile.TemporaryFile("w+") as output:
            _output.set(output)
            done = [counted(*step) for step in lane]
            output.seek(0)
            return done, output.read()

    with ThreadPoolExecutor(max_workers=len(lanes)) as pool:
        others = [pool.submit(hidden, lane) for lane in lanes[1:]]
        done = [counted(*step) for step in lanes[0]]
        for other in others:
            more, text = other.result()
            done += more
            print(text, end="", flush=True)
    return done


def table(steps: list[Done]) -> list[str]:
    """What each step took."""
    width = max([len("step"), *(len(each.title) for each in steps)])
    lines = [f"{'step':<{width}}  clock s    CPU s"]
    lines += [f"{each.title:<{width}} {each.wall_s:8.1f} {each.cpu_s:8.1f}" for each in steps]
    return lines
