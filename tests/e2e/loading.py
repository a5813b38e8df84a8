# SPDX-License-Identifier: MIT
"""Runs `weir load` and reads its result."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.e2e.running import WEIR
from tests.waiting import LIMIT_S

INVALID = 4


def weir_load(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Runs a load, which must end by itself."""
    return subprocess.run(
        [WEIR, "load", *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


def result_of(*words: str | Path) -> dict[str, Any]:
    """The result of a load. It may be invalid: a machine that runs tests is too busy to measure."""
    done = weir_load(*words, "--json")
    assert done.returncode in (0, INVALID), done.stderr
    assert done.stderr == ""
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def step_of(*words: str | Path) -> dict[str, Any]:
    """The result's only step."""
    (step,) = result_of(*words)["steps"]
    assert isinstance(step, dict)
    return step


def errors(step: dict[str, Any]) -> dict[str, int]:
    """The errors that occurred, by kind."""
    return {name: count for name, count in step["errors"].items() if count}


def accounts_for(step: dict[str, Any], requests: int) -> None:
    """Each request has ended once, with an answer or an error."""
    assert step["requests"] == requests
    assert step["answers"] + sum(step["errors"].values()) == requests
