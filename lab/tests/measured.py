# SPDX-License-Identifier: MIT
"""Measured sweeps, kept compressed beside the tests."""

import json
import lzma
from pathlib import Path
from typing import Any

from weir_lab.experiments import remake
from weir_lab.report.page import Report

FOLDER = Path(__file__).with_name("sweeps")
HOSTILE = "</script><script>document.title='owned'</script>"
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


def report_of(found: list[dict[str, Any]], folder: Path) -> Report:
    """The report of a sweep."""
    return remake.run(put(found, folder))
