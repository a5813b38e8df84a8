# SPDX-License-Identifier: MIT
"""Programs of bench/ that run one experiment and print one line of JSON."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

from weir_lab.rim.errors import LabError
from weir_lab.rim.store import Record

LIMIT_S = 120.0


def built(build: Path, name: str) -> Path:
    """The path of the program.

    Raises:
        LabError: the program is not built.
    """
    program = (build / "bench" / name).resolve()
    if not program.exists():
        raise LabError(f"{program} is not built; run `make build` first")
    return program


def answer(program: Path, *words: object, limit_s: float = LIMIT_S) -> Record:
    """The record that the program printed, with the command.

    Raises:
        LabError: the program failed, did not end in time, or printed no JSON.
    """
    command: Sequence[str] = [str(program), *map(str, words)]
    shown = " ".join(command)
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit_s)
    except subprocess.TimeoutExpired as error:
        raise LabError(f"{shown} did not end within {limit_s:.0f} s") from error
    except OSError as error:
        raise LabError(f"{shown}: {error.strerror}") from error
    if done.returncode != 0:
        why = done.stderr.strip() or f"ended with status {done.returncode}"
        raise LabError(f"{shown}: {why}")
    try:
        return {"command": command, **json.loads(done.stdout)}
    except ValueError as error:
        raise LabError(f"{shown}: printed no JSON") from error
