# SPDX-License-Identifier: MIT
"""The models that give each connection a process or a thread. Each of these ends with its
connection, and when no more can start, the server answers 503."""

from __future__ import annotations

import os
import pwd
import resource
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.e2e.conftest import Port, ServerFactory
from tests.e2e.load import Load
from tests.e2e.running import Process, Server
from tests.e2e.wire import Connection, connect
from tests.waiting import wait_until

on_both = pytest.mark.parametrize("model", ["fork", "thread"])
on_fork = pytest.mark.parametrize("model", ["fork"])

SHORT_CONNECTIONS = 2_000


def threads(process: Process) -> int:
    return len(os.listdir(f"/proc/{process.pid}/task"))


def children_and_zombies(process: Process) -> list[str]:
    return Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()


def helpers(process: Process) -> int:
    """Threads beside the main thread, plus children."""
    return threads(process) - 1 + len(children_and_zombies(process))


def idle_helpers(running: Server, worker: Process) -> int:
    """How many helpers serve no connection: 0, or 1 where a sanitizer has a thread of its own."""
    with connect(running.address) as connection:
        assert connection.get("/hello.txt").status == 200
        return helpers(worker) - 1


def worker_of(running: Server) -> Process:
    (worker,) = running.workers()
    return worker


@on_both
def test_no_thread_process_or_descriptor_is_left_of_many_connections(server: ServerFactory) -> None:
    running = server()
    worker = worker_of(running)
    idle = idle_helpers(running, worker)
    wait_until(lambda: helpers(worker) == idle, "the helper of the first connection has ended")
    before = sorted(os.listdir(f"/proc/{worker.pid}/fd"))
    with Load(running.address, "/hello.txt", b"hello\n", clients=4, keep=False) as load:
        load.wait_for(SHORT_CONNECTIONS)
        count = load.stop()
    assert (count.refused, count.unanswered, count.cut, count.wrong) == (0, 0, 0, [])
    wait_until(lambda: helpers(worker) == idle, "all helpers have ended")
    assert sorted(os.listdir(f"/proc/{worker.pid}/fd")) == before
    assert worker_of(running) == worker


@on_both
def test_each_open_connection_has_a_helper(server: ServerFactory) -> None:
    count = 1000
    running = server()
    worker = worker_of(running)
    idle = idle_helpers(running, worker)
    connections: list[Connection] = []
    try:
        for _ in range(count):
            connections.append(Connection.to(running.address))
            connections[-1].send(b"GET /hello.txt HTTP/1.1\r\nHost: a\r\n\r\n")
        for connection in connections:
            assert connection.read().body == b"hello\n"
        wait_until(lambda: helpers(worker) == count + idle, "there is one helper for each")
        for connection in connections:
            assert connection.get("/hello.txt").status == 200
    finally:
        for connection in connections:
            connection.close()
    wait_until(lambda: helpers(worker) == idle, "all helpers have ended")


def begin_download(running: Server, folder: Path) -> Connection:
    (folder / "big.bin").write_bytes(bytes(20_000_000))
    download = Connection.to(running.address)
    download.send(b"GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n")
    download.data = download.socket.recv(1000)
    return download


@on_both
def test_a_drain_closes_idle_connections_and_finishes_downloads(
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
        wait_until(lambda: not any(child.alive for child in children), "all children have ended")
    download.close()


@on_fork
def test_a_child_that_starts_in_a_drain_ends_without_its_parent(
    server: ServerFactory, site: Path
) -> None:
    (site / "big.bin").write_bytes(bytes(20_000_000))
    running = server("--drain-timeout", "3s", "--drain-idle", "100ms")
    worker = worker_of(running)
    os.kill(worker.pid, signal.SIGSTOP)
    with connect(running.address) as slow:
        slow.send(b"GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n")
        os.kill(worker.pid, signal.SIGTERM)
        os.kill(worker.pid, signal.SIGCONT)
        wait_until(lambda: helpers(worker) == 1, "the connection in the backlog has a child")
        children = worker.children()
        os.kill(worker.pid, signal.SIGKILL)
        wait_until(lambda: not any(child.alive for child in children), "the child has ended")


@on_fork
def test_children_do_not_hold_the_port(server: ServerFactory, site: Path, port: Port) -> None:
    address = f"127.0.0.1:{port()}"
    first = server(listen=(address,))
    download = begin_download(first, site)
    children = worker_of(first).children()
    for process in [first.master, worker_of(first)]:
        os.kill(process.pid, signal.SIGKILL)
    first.popen.wait()
    first.popen.returncode = 0  # the fixture expects this status
    assert all(child.alive for child in children)
    second = server(listen=(address,))
    with connect(second.address) as connection:
        assert connection.get("/hello.txt").status == 200
    download.close()
    wait_until(lambda: not any(child.alive for child in children), "all children have ended")


@on_fork
def test_a_killed_child_costs_only_its_own_connection(server: ServerFactory) -> None:
    running = server()
    worker = worker_of(running)
    with connect(running.address) as first, connect(running.address) as second:
        assert first.get("/hello.txt").status == 200
        (victim,) = worker.children()
        assert second.get("/hello.txt").status == 200
        os.kill(victim.pid, signal.SIGKILL)
        assert first.read_to_end() == b""
        assert second.get("/hello.txt").status == 200
    wait_until(lambda: helpers(worker) == 0, "the child is reaped")
    assert worker_of(running) == worker


@on_both
def test_open_connections_log_into_the_file_after_rotation(
    server: ServerFactory, tmp_path: Path
) -> None:
    log = tmp_path / "access.log"
    running = server("--access-log", str(log))
    with connect(running.address) as connection:
        assert connection.get("/hello.txt").status == 200
        wait_until(lambda: log.stat().st_size > 0, "the log has a line")
        log.rename(tmp_path / "old.log")
        running.signal(signal.SIGUSR1)
        wait_until(log.exists, "the log is opened again")
        wait_until(
            lambda: connection.get("/hello.txt").status == 200 and log.stat().st_size > 0,
            "the new log has a line",
        )


def limit_processes(worker: Process, soft: str) -> None:
    """Sets how many processes the worker's user may have. Only that user can lower it."""
    nobody = pwd.getpwnam("nobody")
    subprocess.run(
        ["prlimit", f"--pid={worker.pid}", f"--nproc={soft}:"],
        user=nobody.pw_uid,
        group=nobody.pw_gid,
        extra_groups=[],
        check=True,
    )


@on_both
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")
@pytest.mark.skipif(not shutil.which("prlimit"), reason="prlimit is not installed")
def test_new_connections_get_503_while_no_process_can_start(
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
        assert old.get("/hello.txt").status == 200, "an open connection is no longer served"
        limit_processes(worker, str(hard) if hard >= 0 else "unlimited")
        with connect(running.address) as new:
            assert new.get("/hello.txt").status == 200
    # At most one message in ten seconds, and far fewer than refusals on any machine.
    assert 1 <= running.messages().count("answering 503") < 10
    assert worker_of(running) == worker
