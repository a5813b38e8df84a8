# SPDX-License-Identifier: MIT
"""The sandbox: workers give up what they do not need before they accept a connection."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.e2e.conftest import ServerFactory
from tests.e2e.running import WEIR, Process, Server
from tests.e2e.wire import connect


def status(process: Process) -> dict[str, str]:
    """The fields of /proc/PID/status."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def in_force(running: Server) -> str:
    """What `weir stats` says about the sandbox."""
    command = [str(WEIR), "stats", "--json", str(running.popen.pid)]
    read = subprocess.run(command, capture_output=True, text=True, check=True)
    return str(json.loads(read.stdout)["configuration"]["sandbox"])


def test_a_worker_and_the_page_have_no_capability(server: ServerFactory) -> None:
    running = server(environment={"WEIR_STATS_LISTEN": "127.0.0.1:0"})
    with connect(running.address) as client:
        assert client.get("/hello.txt").status == 200
    confined = running.master.children()
    assert len(confined) > len(running.workers()), "the page has no process"
    for process in confined:
        fields = status(process)
        for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
            assert int(fields[name], 16) == 0, (process.comm, name)
        assert fields["NoNewPrivs"] == "1"


def test_the_statistics_show_what_is_in_force(server: ServerFactory) -> None:
    assert "no_new_privs" in in_force(server())


@pytest.mark.parametrize("model", ["percore"])
def test_off_leaves_everything_out(server: ServerFactory) -> None:
    running = server("--sandbox", "off")
    assert in_force(running).startswith("off, user ")
    assert status(running.workers()[0])["NoNewPrivs"] == status(running.master)["NoNewPrivs"]


@pytest.mark.parametrize("model", ["percore"])
def test_a_kernel_without_landlock_gives_a_line_that_says_so(server: ServerFactory) -> None:
    running = server(wrapper=("python3", "-m", "tests.e2e.without_call", "444", "ENOSYS"))
    assert "landlock" not in in_force(running)
    assert running.messages().count("this system lacks Landlock") == 1


def test_require_refuses_to_start_without_landlock(site: Path) -> None:
    command = [str(WEIR), "serve", str(site), "--listen", "127.0.0.1:0", "--sandbox", "require"]
    wrapper = ["python3", "-m", "tests.e2e.without_call", "444", "EOPNOTSUPP"]
    done = subprocess.run([*wrapper, *command], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "sandbox = require, and this system lacks Landlock" in done.stderr
    assert "switched off at boot" in done.stderr
