# SPDX-License-Identifier: MIT
"""The master opens the logs, and opens them again after SIGUSR1, for all its processes.

The folders belong to root and the workers do not, so a process that opens a log itself fails.
"""

from __future__ import annotations

import json
import os
import pwd
import signal
from pathlib import Path

import pytest

from tests.e2e.conftest import ServerFactory
from tests.e2e.running import Process, Server
from tests.e2e.statistics import weir_stats
from tests.e2e.wire import connect
from tests.waiting import wait_until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


@pytest.fixture
def logs(public_folder: Path) -> Path:
    """A folder that all users can read, and only root can write."""
    folder = public_folder / "logs"
    folder.mkdir()
    folder.chmod(0o755)
    return folder


def processes(running: Server) -> list[Process]:
    return [running.master, *running.master.descendants()]


def users_of(running: Server, path: Path) -> list[int]:
    """The processes that have the file open."""
    return [each.pid for each in processes(running) if str(path) in each.descriptors().values()]


def rotate(running: Server, log: Path, name: str) -> Path:
    """Moves a log away, and waits until every process writes to the new file."""
    old = log.with_name(name)
    log.rename(old)
    running.signal(signal.SIGUSR1)
    wait_until(log.exists, "the log is opened again")
    wait_until(lambda: not users_of(running, old), "every process has the new file")
    return old


def count_lines(*paths: Path) -> int:
    return sum(path.read_bytes().count(b"\n") for path in paths)


def rules(running: Server) -> list[str]:
    """The verdicts about the logs."""
    numbers = json.loads(weir_stats("--json", str(running.master.pid)).stdout)
    return [each["rule"] for each in numbers["verdicts"] if "log" in each["rule"]]


def test_every_process_gets_the_new_files(
    server: ServerFactory, public_folder: Path, logs: Path
) -> None:
    access, error = logs / "access.log", logs / "error.log"
    running = server(
        "--user",
        "nobody",
        "--access-log",
        str(access),
        "--error-log",
        str(error),
        "--stats-listen",
        "127.0.0.1:0",
        folder=public_folder,
    )
    with connect(running.address) as connection:
        assert connection.get("/hello.txt").status == 200
        # The master, the page and a worker at least; with `fork` a process for the connection, too.
        assert len(users_of(running, error)) >= 3
        error.rename(logs / "error.old")
        old = rotate(running, access, "access.old")
        wait_until(lambda: not users_of(running, logs / "error.old"), "the error log, too")
        assert len(users_of(running, error)) >= 3
        before = count_lines(old)
        assert connection.get("/hello.txt").status == 200
        with connect(running.address) as other:
            assert other.get("/hello.txt").status == 200
    wait_until(lambda: count_lines(old, access) == 3, "all lines are written")
    assert count_lines(old) == before
    assert rules(running) == []
    running.stop()
    assert count_lines(old, access) == 3
    assert running.messages().count("cannot") == 0


def test_a_worker_that_drains_gets_the_new_file(
    server: ServerFactory, public_folder: Path, logs: Path
) -> None:
    log = logs / "access.log"
    running = server(
        "--user",
        "nobody",
        "--access-log",
        str(log),
        "--drain-idle",
        "60s",
        "--drain-timeout",
        "60s",
        folder=public_folder,
    )
    with connect(running.address) as connection:
        assert connection.get("/hello.txt").status == 200
        earlier = {worker.pid for worker in running.workers()}
        running.signal(signal.SIGHUP)
        wait_until(lambda: "reloaded" in running.messages(), "the reload")
        assert earlier & {worker.pid for worker in running.workers()}
        rotate(running, log, "access.old")
        assert connection.get("/hello.txt?late").status == 200
    wait_until(lambda: b"?late" in log.read_bytes(), "the line is in the new file")


def test_a_planted_link_is_not_followed_and_no_line_is_lost(
    server: ServerFactory, public_folder: Path, logs: Path
) -> None:
    log, old, target = logs / "access.log", logs / "access.old", public_folder / "root-only"
    nobody = pwd.getpwnam("nobody")
    os.chown(logs, nobody.pw_uid, nobody.pw_gid)
    target.write_bytes(b"")
    target.chmod(0o600)
    running = server("--user", "nobody", "--access-log", str(log), folder=public_folder)
    with connect(running.address) as connection:
        assert connection.get("/hello.txt").status == 200
        log.rename(old)
        log.symlink_to(target)
        running.signal(signal.SIGUSR1)
        wait_until(lambda: "it is a link" in running.messages(), "the operator gets the reason")
        assert connection.get("/hello.txt?after").status == 200
        wait_until(lambda: count_lines(old) == 2, "the line is in the old file")
        assert target.read_bytes() == b""
        assert rules(running) == ["logs-not-reopened"]
        log.unlink()
        running.signal(signal.SIGUSR1)
        wait_until(log.exists, "the log is opened again")
        wait_until(lambda: not users_of(running, old), "every process has the new file")
        assert connection.get("/hello.txt").status == 200
    wait_until(lambda: count_lines(log) == 1, "the line is in the new file")
    assert os.stat(log).st_uid == 0


@pytest.mark.parametrize("model", ["epoll"])
def test_a_failure_reaches_standard_error_when_the_error_log_has_moved(
    server: ServerFactory, public_folder: Path, logs: Path
) -> None:
    error, old = logs / "error.log", logs / "error.old"
    running = server("--error-log", str(error), folder=public_folder)
    error.rename(old)
    error.mkdir()
    running.signal(signal.SIGUSR1)
    message = f"cannot open the error log {error} again: Is a directory"
    wait_until(lambda: message in running.messages(), "standard error has the message")
    assert message in old.read_text()
    wait_until(lambda: rules(running) == ["logs-not-reopened"], "it is a verdict")
    error.rmdir()
    running.signal(signal.SIGUSR1)
    wait_until(lambda: not users_of(running, old), "every process has the new file")
    assert running.messages().count("again") == 1


@pytest.mark.parametrize("model", ["epoll"])
def test_a_predecessor_that_drains_gets_the_new_file(
    server: ServerFactory, public_folder: Path, logs: Path
) -> None:
    log, pid_file = logs / "access.log", logs / "pid"
    running = server(
        "--access-log",
        str(log),
        "--pid-file",
        str(pid_file),
        "--drain-idle",
        "60s",
        "--drain-timeout",
        "60s",
        folder=public_folder,
    )
    with connect(running.address) as connection:
        assert connection.get("/hello.txt").status == 200
        first = pid_file.read_text()
        running.signal(signal.SIGUSR2)
        wait_until(lambda: pid_file.exists() and pid_file.read_text() != first, "the successor")
        successor = int(pid_file.read_text())
        old = log.with_name("access.old")
        log.rename(old)
        os.kill(successor, signal.SIGUSR1)
        wait_until(log.exists, "the log is opened again")
        wait_until(lambda: not users_of(running, old), "every process has the new file")
        assert connection.get("/hello.txt?late").status == 200
    wait_until(lambda: b"?late" in log.read_bytes(), "the line is in the new file")
    os.kill(successor, signal.SIGTERM)
    wait_until(lambda: Process.of(successor) is None, "the successor has ended")
