# SPDX-License-Identifier: MIT
"""The commands that ask a running server, while their own memory is short: they say that, and blame
no server."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.running import RUNTIME, WEIR, Server, start
from tests.faults.plan import Fault, Plan
from tests.faults.scenario import LIBRARY, make_site
from tests.waiting import LIMIT_S

pytestmark = pytest.mark.skipif(
    not LIBRARY.is_file(), reason=f"no {LIBRARY}: `make faults` builds it"
)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Server]:
    site = make_site(tmp_path / "site")
    running = start([str(site), "--listen", "127.0.0.1:0"], tmp_path / "stderr")
    yield running
    running.stop()


def run(plan: Plan, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs `weir`, which must end by itself. The call of the plan fails."""
    environment = {"RUNTIME_DIRECTORY": str(RUNTIME), "FAIL_PLAN": str(plan.path)}
    return subprocess.run(
        [WEIR, *words],
        env=os.environ | environment | {"LD_PRELOAD": str(LIBRARY)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


# The first calls are those before the answer of the server is read.
@pytest.mark.parametrize(
    ("words", "first"),
    [(("reload",), 1000), (("trace", "--live", "/small.txt"), 8)],
    ids=["reload", "trace"],
)
def test_a_command_without_memory_blames_no_server(
    running: Server, tmp_path: Path, words: tuple[str, ...], first: int
) -> None:
    words = (*words, str(running.popen.pid))
    with Plan(tmp_path / "plan", None) as plan:
        done = run(plan, *words)
        assert done.returncode == 0, done.stderr
        calls = plan.counts()["memory"]
    assert calls > 0
    for call in range(1, min(calls, first) + 1):
        with Plan(tmp_path / "plan", Fault("memory", call, "ENOMEM")) as plan:
            done = run(plan, *words)
            assert plan.failed
            assert not plan.killed
        assert done.returncode == 0 or "emory" in done.stderr, (call, done.stdout, done.stderr)
