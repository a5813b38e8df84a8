# SPDX-License-Identifier: MIT
"""A start costs the same for a site of any size: it reads no folder of the site."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.e2e.running import RUNTIME, WEIR
from tests.waiting import LIMIT_S, wait_until

pytestmark = pytest.mark.skipif(not shutil.which("strace"), reason="no strace")

FOLDERS = 500

# A leak check stops the process while strace does, which no kernel allows.
UNCHECKED = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}


def make_site(root: Path, folders: int) -> None:
    root.mkdir()
    (root / "index.html").write_text("hello\n")
    for number in range(folders):
        folder = root / f"part-{number}"
        folder.mkdir()
        for name in ("a.html", "b.css"):
            (folder / name).write_text(name)


def lines_of(trace: Path) -> list[str]:
    return trace.read_text(errors="replace").splitlines()


def calls_of_start(root: Path, model: str, scratch: Path) -> list[str]:
    """The system calls of all processes, from the start to the end, that are about the site."""
    trace = scratch / f"{root.name}.trace"
    ready, ready_end = os.pipe()
    command = [
        *("strace", "-D", "-f", "-y", "-q", "-o", str(trace), str(WEIR), "serve", str(root)),
        *("--listen", "127.0.0.1:0", "--model", model, "--ready-fd", str(ready_end)),
    ]
    environment = {**os.environ, "RUNTIME_DIRECTORY": str(RUNTIME), **UNCHECKED}
    popen = subprocess.Popen(
        command, stderr=subprocess.DEVNULL, pass_fds=(ready_end,), env=environment
    )
    os.close(ready_end)
    with os.fdopen(ready) as lines:  # strace has the other end, too: it does not end with the list
        assert lines.readline().startswith("http://")
    popen.send_signal(signal.SIGTERM)
    assert popen.wait(LIMIT_S) == 0
    end = [str(popen.pid), "+++", "exited", "with", "0", "+++"]
    wait_until(lambda: end in [line.split() for line in lines_of(trace)], "the trace is whole")
    found = lines_of(trace)
    assert any("execve(" in line for line in found)
    return [line.split(None, 1)[1] for line in found if f"{root}" in line and "execve(" not in line]


def name_of(call: str) -> str:
    return call.removeprefix("<... ").split("(")[0].split()[0]


@pytest.mark.parametrize("model", ["percore", "prefork", "fork"])
def test_a_start_makes_no_call_for_a_folder_of_the_site(model: str, tmp_path: Path) -> None:
    small, large = tmp_path / "small", tmp_path / "large"
    make_site(small, 0)
    make_site(large, FOLDERS)
    calls_of = [calls_of_start(site, model, tmp_path) for site in (small, large)]
    names = [name_of(call) for call in calls_of[1]]
    assert any(name.startswith("open") for name in names)
    assert not any(name.startswith("getdents") for name in names)
    assert not any("part-" in call for call in calls_of[1])
    # A start compares the root with the disk each second, so a slow one makes some calls more.
    assert len(calls_of[1]) < len(calls_of[0]) + FOLDERS
