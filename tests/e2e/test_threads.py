# SPDX-License-Identifier: MIT
"""A worker that cannot start all of its threads ends with a message and leaves no process."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.e2e.running import WEIR, Process
from tests.waiting import LIMIT_S, wait_until

# The address space is large enough for some of the stacks, but not for all.
THREADS = 32
STACK = 256 << 20
LIMITS = ("prlimit", f"--stack={STACK}", f"--as={THREADS * STACK // 4}")


@pytest.mark.parametrize("model", ["percore"])
def test_a_worker_that_cannot_start_a_thread_ends(model: str, site: Path, tmp_path: Path) -> None:
    if subprocess.run([*LIMITS, WEIR, "models"], capture_output=True, check=False).returncode:
        pytest.skip("this build does not run in so little address space")
    stderr = tmp_path / "stderr"
    with stderr.open("wb") as errors:
        arguments = ["--listen", "127.0.0.1:0", "--model", model, "--threads", str(THREADS)]
        weir = subprocess.Popen([*LIMITS, WEIR, "serve", site, *arguments], stderr=errors)
    seen: set[Process] = set()
    try:

        def worker_ended() -> bool:
            if weir.poll() is None and (master := Process.of(weir.pid)):
                seen.update(master.children())
            return "ended with status 1" in stderr.read_text()

        wait_until(worker_ended, stderr.read_text)
        weir.terminate()
        weir.wait(LIMIT_S)
    finally:
        left = [process for process in seen if process.alive]
        for pid in [*(process.pid for process in left), *([weir.pid] * (weir.poll() is None))]:
            os.kill(pid, signal.SIGKILL)
        weir.wait()
    assert left == [], f"a worker is left: {stderr.read_text()}"
    said = stderr.read_text()
    assert f" of {THREADS}: Resource temporarily unavailable" in said
    numbers = [
        line.split("cannot start thread ")[1].split()[0]
        for line in said.splitlines()
        if "cannot start thread " in line
    ]
    assert all(2 < int(number) <= THREADS for number in numbers), "some threads did start"
