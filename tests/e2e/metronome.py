# SPDX-License-Identifier: MIT
"""The server of bench/metronome.c: it takes a known time for each request, and tells which."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

from tests.e2e.running import TOP, WEIR

BUILT = [folder / "bench/metronome" for folder in (WEIR.parent, TOP / "build")]


@dataclass
class Metronome:
    """One that runs."""

    popen: subprocess.Popen[str]
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def end(self) -> dict[str, float]:
        """What it has given: `answers`, and `mean_ns`, `min_ns`, `max_ns` of what each took."""
        out, _ = self.popen.communicate()
        assert self.popen.returncode == 0
        given: dict[str, float] = json.loads(out)
        return given


def first_in_line() -> list[str]:
    """The words that run a program before all others that want a CPU, where that is allowed."""
    words = ["chrt", "--fifo", "1"]
    with contextlib.suppress(OSError):
        if subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0:
            return words
    return []


FIRST = first_in_line()


@contextlib.contextmanager
def running(mode: str, ns: int) -> Iterator[Metronome]:
    program = next(program for program in BUILT if program.exists())
    popen = subprocess.Popen(
        [*FIRST, program, mode, str(ns)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert popen.stdout
        yield Metronome(popen, int(popen.stdout.readline()))
    finally:
        popen.kill()
        popen.communicate()
