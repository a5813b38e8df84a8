# SPDX-License-Identifier: MIT
"""Runs the server of bench/metronome.c, which takes a known time for each request."""

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
    """A running server."""

    popen: subprocess.Popen[str]
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def end(self) -> dict[str, float]:
        """Ends the server; returns `answers`, and `mean_ns`, `min_ns`, `max_ns` of its times."""
        out, _ = self.popen.communicate()
        assert self.popen.returncode == 0
        given: dict[str, float] = json.loads(out)
        return given


@contextlib.contextmanager
def running(mode: str, ns: int) -> Iterator[Metronome]:
    program = next(program for program in BUILT if program.exists())
    popen = subprocess.Popen(
        [program, mode, str(ns)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert popen.stdout
        yield Metronome(popen, int(popen.stdout.readline()))
    finally:
        popen.kill()
        popen.communicate()
