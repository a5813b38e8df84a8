# SPDX-License-Identifier: MIT
"""The server of metronome.c: it takes a known time for each request, and tells which it was."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).with_suffix(".c")


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


def built(folder: Path) -> Path:
    """Compiles it."""
    program = folder / "metronome"
    subprocess.run(["cc", "-std=gnu17", "-O2", "-o", program, SOURCE], check=True)
    return program


@contextlib.contextmanager
def running(program: Path, mode: str, ns: int) -> Iterator[Metronome]:
    popen = subprocess.Popen(
        [program, mode, str(ns)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert popen.stdout
        yield Metronome(popen, int(popen.stdout.readline()))
    finally:
        popen.kill()
        popen.communicate()
