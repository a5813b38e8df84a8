# SPDX-License-Identifier: MIT
"""A worker that cannot start all of its threads ends, and says why; none of them is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.e2e.running import STOP_S, WEIR, Process

# Address space for some stacks, and not for as many as are asked for.
THREADS = 32
STACK = 256 << 20
LIMITS = ("prlimit", f"--stack={STACK}", f"--as={THREADS * STACK // 4}")


@pytest.mark.parametrize("model", ["percore"])
def test_a_worker_that_lacks_a_thread_ends(model: str, site: Path, tmp_path: Path) -> None:
    if subprocess.run([*LIMITS, WEIR, "models"], capture_output=True, check=False).returncode:
        pytest.skip("this build does not run in so little address space")
    stderr = tmp_path / "stderr"
    with stderr.open("wb") as errors:
        arguments = ["--listen", "127.0.0.1:0", "--model", model, "--threads", str(THREADS)]
        weir = subprocess.Popen([*LIMITS, WEIR, "serve", site, *arguments], stderr=errors)
    seen: set[Process] = set()
    try:
        deadline = time.monotonic() + STOP_S
        while "ended with status 1" not in stderr.read_text():
            if weir.poll() is None and (master := Process.of(weir.pid)):
                seen.update(master.children())
            assert time.monotonic() < deadline, f"the worker hangs: {stderr.read_text()}"
        weir.terminate()
        weir.wait(STOP_S)
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
