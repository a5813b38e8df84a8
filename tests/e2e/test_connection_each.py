# SPDX-License-Identifier: MIT
"""The models that give each connection a process or a thread: all of them end, and no more start
than the machine has."""

from __future__ import annotations

import os
import pwd
import resource
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import ServerFactory
from tests.e2e.load import Load
from tests.e2e.running import Process, Server
from tests.e2e.wire import Connection, connect

on_both = pytest.mark.parametrize("model", ["fork", "thread"])
on_fork = pytest.mark.parametrize("model", ["fork"])

SHORT_CONNECTIONS = 10_000
PATIENCE_S = 20.0


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, what


def threads(process: Process) -> int:
    return len(os.listdir(f"/proc/{process.pid}/task"))


def children_and_zombies(process: Process) -> list[str]:
    return Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()


def helpers(process: Process) -> int:
    """Threads beside the first, and children."""
    return threads(process) - 1 + len(children_and_zombies(process))


def helpers_of_nobody(running: Server, worker: Process) -> int:
    """How many helpers serve no connection: none, but for a sanitizer's own thread."""
    with connect(running.address) as connection:
        assert connection.get("/hello.txt").status == 200
        return helpers(worker) - 1


def worker_of(running: Server) -> Process:
    (worker,) = running.workers()
    return worker


@on_both
def test_nothing_is_left_of_ten_thousand_connections(server: ServerFactory) -> None:
    running = server()
    worker = worker_of(running)
    idle = helpers_of_nobody(running, worker)
    until(lambda: helpers(worker) == idle, "the first one is still there")
    before = sorted(os.listdir(f"/proc/{worker.pid}/fd"))
    with Load(running.address, "/hello.txt", b"hello\n", clients=4, keep=False) as load:
        load.wait_for(SHORT_CONNECTIONS)
        count = load.stop()
    assert (count.refused, count.unanswered, count.cut, count.wrong) == (0, 0, 0, [])
    until(lambda: helpers(worker) == idle, "some are left")
    assert sorted(os.listdir(f"/proc/{worker.pid}/fd")) == before
    assert worker_of(running) == worker


@on_both
@pytest.mark.parametrize("count", [500, 2000])
def test_many_connections_at_a_time(server: ServerFactory, count: int) -> None:
    running = server()
    worker = worker_of(running)
    idle = helpers_of_nobody(running, worker)
    connections: list[Connection] = []
    try:
        for _ in range(count):
            connections.append(Connection.to(running.address))
            connections[-1].send(b"GET /hello.txt HTTP/1.1\r\nHost: a\r\n\r\n")
        for connection in connections:
            assert connection.read().body == b"hello\n"
        until(lambda: helpers(worker) == count + idle, "not one for each")
        for connection in connections:
            assert connection.get("/hello.txt").status == 200
    finally:
        for connection in connections:
            connection.close()
    until(lambda: helpers(worker) == idle, "some are left")


def begin_download(running: Server, folder: Path) -> Connection:
    (folder / "big.bin").write_bytes(bytes(20_000_000))
    download = Connection.to(running.address)
    download.send(b"GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n")
    download.data = download.socket.recv(1000)
    return download


@on_both
def test_a_drain_ends_who_waits_and_finishes_who_does_not(
    server: ServerFactory, site: Path
) -> None:
    running = server()
    worker = worker_of(running)
    download = begin_download(running, site)
    with connect(running.address) as idle:
        assert idle.get("/hello.txt").status == 200
        running.signal(signal.SIGTERM)
        assert idle.read_to_end() == b""
    assert worker.alive
    answer = download.read()
    download.close()
    assert len(answer.body) == 20_000_000
    assert running.wait() == 0


@on_fork
def test_children_end_without_their_parent(server: ServerFactory, site: Path) -> None:
    running = server("--drain-timeout", "1s")
    worker = worker_of(running)
    download = begin_download(running, site)
    with connect(running.address) as idle:
        assert idle.get("/hello.txt").status == 200
        children = worker.children()
        assert len(children) == 2
        os.kill(worker.pid, signal.SIGKILL)
        assert idle.read_to_end() == b""
        until(lambda: not any(child.alive for child in children), "a child has not ended")
    download.close()


@on_fork
def test_children_do_not_hold_the_port(server: ServerFactory, site: Path) -> None:
    first = server()
    download = begin_download(first, site)
    children = worker_of(first).children()
    for process in [first.master, worker_of(first)]:
        os.kill(process.pid, signal.SIGKILL)
    first.popen.wait()
    first.popen.returncode = 0  # as it should be for the fixture, which did not do this
    assert all(child.alive for child in children)
    host, port = first.address
    second = server(listen=(f"{host}:{port}",))
    with connect(second.address) as connection:
        assert connection.get("/hello.txt").status == 200
    download.close()
    until(lambda: not any(child.alive for child in children), "a child has not ended")


@on_fork
def test_a_child_that_dies_costs_its_connection_only(server: ServerFactory) -> None:
    running = server()
    worker = worker_of(running)
    with connect(running.address) as first, connect(running.address) as second:
        assert first.get("/hello.txt").status == 200
        (victim,) = worker.children()
        assert second.get("/hello.txt").status == 200
        os.kill(victim.pid, signal.SIGKILL)
        assert first.read_to_end() == b""
        assert second.get("/hello.txt").status == 200
    until(lambda: helpers(worker) == 0, "it is not reaped")
    assert worker_of(running) == worker


@on_both
def test_a_rotated_log_is_followed_by_who_is_there(server: ServerFactory, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    running = server("--access-log", str(log))
    with connect(running.address) as connection:
        assert connection.get("/hello.txt").status == 200
        until(lambda: log.stat().st_size > 0, "no line")
        log.rename(tmp_path / "old.log")
        running.signal(signal.SIGUSR1)
        until(log.exists, "the log is not opened again")
        until(lambda: connection.get("/hello.txt").status == 200 and log.stat().st_size > 0, "lost")


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that other users may read, as pytest's own are not."""
    folder = Path(tempfile.mkdtemp(prefix="weir-test-"))
    folder.chmod(0o755)
    (folder / "hello.txt").write_text("hello\n")
    yield folder
    shutil.rmtree(folder)


def limit_processes(worker: Process, soft: str) -> None:
    """Sets how many processes its user may have, for which one has to be that user."""
    nobody = pwd.getpwnam("nobody")
    subprocess.run(
        ["prlimit", f"--pid={worker.pid}", f"--nproc={soft}:"],
        user=nobody.pw_uid,
        group=nobody.pw_gid,
        extra_groups=[],
        check=True,
    )


@on_both
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, whom limits do not bind")
@pytest.mark.skipif(not shutil.which("prlimit"), reason="prlimit is not installed")
def test_without_processes_new_connections_get_503(
    server: ServerFactory, public_folder: Path
) -> None:
    running = server("--user", "nobody", folder=public_folder)
    worker = worker_of(running)
    with connect(running.address) as old:
        assert old.get("/hello.txt").status == 200
        _, hard = resource.prlimit(running.popen.pid, resource.RLIMIT_NPROC)
        limit_processes(worker, "1")
        for _ in range(20):
            with connect(running.address) as new:
                answer = new.get("/hello.txt")
                assert answer.status == 503
                assert answer.get("retry-after")
                assert new.read_to_end() == b""
        assert old.get("/hello.txt").status == 200, "it forgot whom it serves"
        cpu_s = worker.cpu_s()
        limit_processes(worker, str(hard) if hard >= 0 else "unlimited")
        with connect(running.address) as new:
            assert new.get("/hello.txt").status == 200
        assert worker.cpu_s() - cpu_s < 1
    assert running.messages().count("answering 503") == 1, "one line in ten seconds"
    assert worker_of(running) == worker
