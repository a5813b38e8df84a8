# SPDX-License-Identifier: MIT
"""Each attacker of tests/e2e/attackers.py meets a limit, and other clients are served meanwhile.

`make bench ATTACKS=1` measures how long the other clients wait.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import attackers
from tests.e2e.conftest import ServerFactory
from tests.e2e.running import Server
from tests.e2e.statistics import wait_for
from tests.e2e.wire import connect

TURNS = ("20", "40")  # at once, in a second


def connections_of(manner: str) -> str:
    """How many. What floods over HTTP/2 meets a limit of one connection, after some of its turns:
    of few connections, each soon has them."""
    return "40" if manner in attackers.FRAMED else "200"


H2C = ("--h2c", "on")
LIMITS = {
    "silent": ("connections_displaced", ("--connections", "20")),
    "idle": ("connections_limited", ("--address-connections", "20")),
    "pipelined": ("requests_limited", ("--address-request-rate", "20")),
    "slow-head": ("timeouts_head", ("--header-timeout", "1s")),
    "slow-body": ("timeouts_body", ("--body-timeout", "1s")),
    "slow-read": ("timeouts_send", ("--send-timeout", "1s", "--send-rate", "1M")),
    "zero-window": ("timeouts_send", ("--send-timeout", "1s")),
    "rapid-reset": ("http2_floods", H2C),
    "made-you-reset": ("http2_floods", H2C),
    "continuation": ("http2_floods", H2C),
    "hpack-bomb": ("requests_http_2", H2C),  # each gets 431
    "ping": ("http2_floods", H2C),
    "settings": ("http2_floods", H2C),
    "empty-data": ("http2_floods", H2C),
    "tiny-windows": ("timeouts_send", (*H2C, "--send-timeout", "1s")),
}


@contextlib.contextmanager
def attacking(manner: str, running: Server) -> Iterator[None]:
    words = [manner, str(running.address[1]), connections_of(manner), *TURNS]
    command = [sys.executable, attackers.__file__, *words]
    with subprocess.Popen(command) as popen:
        try:
            yield
            assert popen.poll() is None, "the attacker has ended"
        finally:
            popen.kill()


@pytest.mark.parametrize("model", ["percore", "pool"])
@pytest.mark.parametrize("manner", list(attackers.MANNERS))
def test_an_attacker_meets_a_limit_while_others_are_served(
    server: ServerFactory, site: Path, manner: str
) -> None:
    with (site / attackers.LARGE[1:]).open("wb") as large:
        large.truncate(10_000_000)
    counter, options = LIMITS[manner]
    running = server(*options, "--workers", "1")
    with attacking(manner, running):
        numbers = wait_for(running, lambda now: now["counters"][counter] > 0)
        assert numbers["counters"]["http2_violations"] == 0  # the frames are right
        with connect(running.address) as honest:
            assert honest.get("/hello.txt").body == b"hello\n"
