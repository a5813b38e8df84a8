# SPDX-License-Identifier: MIT
"""Waits until something is true.

A machine that has other work to do can delay any process by seconds. A test
therefore polls a condition instead of sleeping, and asserts no duration. The
limit is only there so that a test that would hang fails with a message. It is
long: beside other programs, a thread of low priority may get one percent of a
processor.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

LIMIT_S = 240.0
LONGEST_PAUSE_S = 0.02

Result = TypeVar("Result")


def wait_until(condition: Callable[[], Result], what: str | Callable[[], object]) -> Result:
    """Polls until the condition is true, for at most LIMIT_S; returns its value.

    `what` names the condition for the message of a failure: a text, or a
    function whose value shows the state at that moment.
    """
    deadline = time.monotonic() + LIMIT_S
    pause_s = 0.001
    while not (result := condition()):
        if time.monotonic() > deadline:
            state = what if isinstance(what, str) else what()
            raise AssertionError(f"after {LIMIT_S:.0f} s not yet: {state}")
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
    return result
