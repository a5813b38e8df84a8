# SPDX-License-Identifier: MIT
"""Measured sweeps, kept compressed beside the tests."""

import json
import lzma
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from weir_lab.experiments import remake, sweeping
from weir_lab.report.page import Report

FOLDER = Path(__file__).with_name("sweeps")
HOSTILE = "</script><script>document.title='owned'</script>"
DRAWS = 20  # of the bootstrap: fewer than a report's, for the sake of time
NAMES = sorted(path.name.removesuffix(".jsonl.xz") for path in FOLDER.glob("*.jsonl.xz"))


def lines(name: str) -> list[dict[str, Any]]:
    """The plan and the records of a sweep, in the order of the measurement."""
    with lzma.open(FOLDER / f"{name}.jsonl.xz", "rt") as file:
        return [json.loads(line) for line in file]


def put(found: list[dict[str, Any]], folder: Path) -> Path:
    """Writes the lines as `results.jsonl` into the folder, as an experiment leaves them."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in found))
    return folder


@contextmanager
def fewer_draws() -> Iterator[None]:
    """Studies sweeps with fewer draws of the bootstrap."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweeping, "DRAWS", DRAWS)
        yield


def report_of(found: list[dict[str, Any]], folder: Path) -> Report:
    """The report of a sweep."""
    with fewer_draws():
        return remake.run(put(found, folder))
