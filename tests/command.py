# SPDX-License-Identifier: MIT
"""Runs a command that a test needs, with a limit that only a hang reaches."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence

from tests.waiting import LIMIT_S


def attempt(words: Sequence[str], **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs it without input, and returns its status and all that it printed."""
    return subprocess.run(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT_S,
        check=False,
        env=os.environ | environment,
    )


def run(words: Sequence[str], **environment: str) -> str:
    """Runs it, and returns what it printed. A command that fails is a failure of the test."""
    done = attempt(words, **environment)
    assert done.returncode == 0, f"{words}\n{done.stdout}"
    return done.stdout
