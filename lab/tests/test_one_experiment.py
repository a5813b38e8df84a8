# SPDX-License-Identifier: MIT
"""An experiment has its folder for itself, and ends whole."""

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from command import LAB, WEIR, LabHere
from waiting import LIMIT_S, pausing, processes, wait_until
from weir_lab.rim.store import FILE, read

needs_weir = pytest.mark.skipif(not WEIR.exists(), reason="weir is not built")
WORDS = ("compare", "epoll", "percore", *"--rounds 3 --seconds 0.3 --close --users 2".split())


def parent_of(pid: int) -> int:
    """The parent of a process; 0 once it has ended."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def is_asked_to_end(pid: int) -> bool:
    """Whether a SIGTERM waits for the process, or it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True
    (pending,) = re.findall(r"^ShdPnd:\s*(\w+)", status, re.MULTILINE)
    return bool(int(pending, 16) >> (signal.SIGTERM - 1) & 1)


@contextmanager
def paused(folder: Path, build: Path, runs: int) -> Iterator[subprocess.Popen[str]]:
    """A weir-lab whose generator pauses after so many runs. At the end nothing of it is left."""
    reached, resume = pausing(WEIR, build / "weir", runs, pattern="load*http*")
    command = [str(LAB), *WORDS, "--out", str(folder), "--build", str(build)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        try:
            wait_until(reached.exists, "run", while_runs=running)
            yield running
        finally:
            running.terminate()
            resume.touch()
            running.communicate(timeout=LIMIT_S)


def keys(folder: Path) -> list[str | None]:
    """The points in the results; None: the plan."""
    return [record.get("key") for record in read(folder / FILE)]


@needs_weir
@pytest.mark.timeout(5 * LIMIT_S)
def test_a_second_experiment_in_a_folder_is_refused_while_the_first_one_runs(
    lab_here: LabHere, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    with paused(folder, tmp_path / "build", 0):
        before = (folder / FILE).read_bytes()
        words = (*WORDS, "--out", str(folder), "--build", str(WEIR.parent), "--fresh")
        status, said = lab_here(*words)
        after = (folder / FILE).read_bytes()
    assert status == 1
    assert f"another weir-lab measures into {folder}" in said
    assert after == before


@needs_weir
@pytest.mark.timeout(5 * LIMIT_S)
def test_a_killed_experiment_leaves_no_process_and_the_next_one_takes_its_folder(
    lab_here: LabHere, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    with paused(folder, tmp_path / "build", 1) as running:
        assert processes(f"{folder}/run-") != []
        before = keys(folder)
        running.kill()
        running.wait(LIMIT_S)
        wait_until(lambda: processes(f"{folder}/run-") == [], "end of the server")
    assert len(before) == 2
    status, said = lab_here(*WORDS, "--out", str(folder), "--build", str(WEIR.parent))
    assert status == 0, said
    assert "1 of 6 points are measured already" in said
    assert len(keys(folder)) == 7
    assert keys(folder)[:2] == before


@needs_weir
@pytest.mark.timeout(5 * LIMIT_S)
@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_does_not_leave_the_server_behind(
    second: signal.Signals, tmp_path: Path
) -> None:
    """The server is stopped, so that the experiment waits for its end when the signal comes."""
    folder = tmp_path / "out"
    with paused(folder, tmp_path / "build", 1) as running:
        servers = processes(f"{folder}/run-")
        (server,) = [pid for pid in servers if parent_of(pid) == running.pid]
        os.kill(server, signal.SIGSTOP)
        running.send_signal(signal.SIGINT)
        wait_until(lambda: is_asked_to_end(server), "SIGTERM for the server", while_runs=running)
        running.send_signal(second)
        _, said = running.communicate(timeout=LIMIT_S)
        left = processes(f"{folder}/run-")
    assert left == []
    assert running.returncode == 130
    assert "1 of 6 points are in" in " ".join(said.split())
    assert list(folder.glob("run-*")) == []


def test_a_second_signal_does_not_stop_the_end(lab_here: LabHere) -> None:
    assert lab_here("--version")[0] == 0
    handler = signal.getsignal(signal.SIGINT)
    assert callable(handler)
    with pytest.raises(KeyboardInterrupt):
        handler(signal.SIGINT, None)
    handler(signal.SIGINT, None)
