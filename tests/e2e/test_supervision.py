# SPDX-License-Identifier: MIT
"""A worker that dies is replaced, and costs only its own connections.

`make bench CLAIMS=1` measures how soon it is replaced.
"""

from __future__ import annotations

import fcntl
import os
import pwd
import random
import signal
from pathlib import Path

import pytest

from tests.e2e.conftest import Port, ServerFactory
from tests.e2e.load import Load
from tests.e2e.running import Server
from tests.e2e.statistics import segment
from tests.e2e.wire import Connection, WireError, connect
from tests.waiting import wait_until

# A request to a worker that is killed may get no answer and no reset for a long time.
PATIENCE_S = 2.0


def kill_worker(running: Server) -> None:
    """Kills a worker and waits until another has replaced it."""
    victim = running.workers()[0]
    os.kill(victim.pid, signal.SIGKILL)
    wait_until(
        lambda: (now := running.workers()) and victim not in now,
        lambda: f"a worker replaces {victim.pid}: {running.messages()}",
    )


def answered(running: Server) -> bool:
    try:
        with connect(running.address, PATIENCE_S) as connection:
            return connection.get("/hello.txt").body == b"hello\n"
    except (WireError, ConnectionResetError, TimeoutError):
        return False


def test_a_killed_worker_is_replaced(server: ServerFactory) -> None:
    running = server()
    assert answered(running)
    kill_worker(running)
    wait_until(
        lambda: answered(running) and "killed by signal 9" in running.messages(), running.messages
    )


def test_no_connection_is_refused_while_workers_die(server: ServerFactory) -> None:
    running = server()
    with load_of(running, clients=4, keep=False) as load:
        for _ in range(4):
            load.wait_for(50)
            kill_worker(running)
        load.wait_for(50)
        count = load.stop()
    assert count.refused == 0
    assert count.wrong == []


def load_of(running: Server, *, clients: int, keep: bool) -> Load:
    return Load(
        running.address,
        "/hello.txt",
        b"hello\n",
        clients=clients,
        keep=keep,
        patience_s=PATIENCE_S,
    )


def test_the_other_workers_keep_their_connections(server: ServerFactory, model: str) -> None:
    running = server("--workers", "2")
    assert len(running.workers()) == 2
    connections = [Connection.to(running.address) for _ in range(30)]
    try:
        for connection in connections:
            assert connection.get("/hello.txt").status == 200
        kill_worker(running)
        lived = 0
        for connection in connections:
            try:
                lived += connection.get("/hello.txt").status == 200
            except (WireError, OSError):
                continue
        assert lived > 0
        # The child processes of model fork outlive their worker.
        assert model == "fork" or lived < len(connections)
    finally:
        for connection in connections:
            connection.close()


def test_workers_end_with_their_master(server: ServerFactory) -> None:
    running = server()
    workers = running.workers()
    os.kill(running.popen.pid, signal.SIGKILL)
    assert running.popen.wait() == -signal.SIGKILL
    wait_until(lambda: not any(worker.alive for worker in workers), "the workers have ended")
    running.popen.returncode = 0  # the fixture expects this status


def kill_at_random(running: Server, load: Load, kills: int, least: int) -> tuple[set[int], int]:
    """Kills workers; returns their process ids and how many connections they had together."""
    dice = random.Random(200)
    killed: set[int] = set()
    connections = 0
    while len(killed) < kills:
        load.wait_for(40)
        workers = [each for each in running.workers() if each.pid not in killed]
        if len(workers) < least:
            continue
        victim = dice.choice(workers)
        os.kill(victim.pid, signal.SIGSTOP)  # its connections can be counted while it stands still
        connections += sum(len(process.sockets()) for process in [victim, *victim.descendants()])
        killed.add(victim.pid)
        os.kill(victim.pid, signal.SIGKILL)
    return killed, connections


@pytest.mark.parametrize("keep", [True, False])
def test_workers_killed_at_random_cost_their_own_connections(
    server: ServerFactory, model: str, keep: bool
) -> None:
    many = model == "epoll"
    running = server("--workers", "16" if many else "4")
    with load_of(running, clients=6, keep=keep) as load:
        load.wait_for(50)
        killed, connections = kill_at_random(running, load, *((100, 1) if many else (8, 4)))
        load.wait_for(50)
        count = load.stop()
    assert count.refused == 0
    assert count.wrong == []
    assert count.unanswered + count.parted + count.cut <= connections

    workers = 16 if many else 4

    def replaced() -> bool:
        now = {worker.pid for worker in running.workers()}
        return len(now) == workers and not now & killed

    wait_until(replaced, lambda: f"{workers} new workers: {running.messages()}")


def test_a_worker_that_keeps_dying_is_always_replaced(server: ServerFactory) -> None:
    running = server("--workers", "1")
    for _ in range(8):
        kill_worker(running)
    assert wait_until(lambda: answered(running), "the last one serves")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_workers_of_another_user_end_with_their_master(
    server: ServerFactory, public_folder: Path
) -> None:
    running = server("--user", "daemon", folder=public_folder)
    workers = running.workers()
    assert Path(f"/proc/{workers[0].pid}").stat().st_uid == pwd.getpwnam("daemon").pw_uid
    os.kill(running.popen.pid, signal.SIGKILL)
    running.popen.wait()
    wait_until(lambda: not any(worker.alive for worker in workers), "the workers have ended")
    running.popen.returncode = 0


# ---- the files of a killed server ----


def kill_master(running: Server) -> None:
    """Kills a master and waits until its workers have ended, too."""
    left = running.master.descendants()
    os.kill(running.popen.pid, signal.SIGKILL)
    running.popen.wait()
    wait_until(lambda: not any(process.alive for process in left), "the workers have ended")
    running.popen.returncode = 0


def test_a_new_server_takes_over_the_files_of_a_killed_one(
    server: ServerFactory, tmp_path: Path, port: Port
) -> None:
    address = f"127.0.0.1:{port()}"
    pid_file, path = tmp_path / "weir.pid", tmp_path / "weir.sock"
    arguments = ("--pid-file", str(pid_file))
    first = server(*arguments, listen=(f"unix:{path}", address))
    assert pid_file.read_text() == f"{first.popen.pid}\n"
    kill_master(first)
    assert pid_file.read_text() == f"{first.popen.pid}\n"
    assert path.exists()

    second = server(*arguments, listen=(f"unix:{path}", address))
    assert pid_file.read_text() == f"{second.popen.pid}\n"
    with connect(str(path)) as connection:
        assert connection.get("/hello.txt").status == 200
    second.stop()
    assert not pid_file.exists()
    assert not path.exists()
    for running in (first, second):
        assert not segment(running.popen.pid).exists()


def test_the_pid_file_of_a_running_server_is_not_overwritten(
    server: ServerFactory, tmp_path: Path
) -> None:
    pid_file = tmp_path / "weir.pid"
    running = server("--pid-file", str(pid_file))
    with pytest.raises(AssertionError, match=f"belongs to process {running.popen.pid}"):
        server("--pid-file", str(pid_file))
    kill_worker(running)
    with pytest.raises(AssertionError, match="which is running"):
        server("--pid-file", str(pid_file))
    assert pid_file.read_text() == f"{running.popen.pid}\n"


@pytest.mark.parametrize("model", ["epoll"])
def test_a_pid_file_that_is_a_second_name_of_a_file_is_refused(
    server: ServerFactory, tmp_path: Path
) -> None:
    """Root would write its process id into a file of its own."""
    other, pid_file = tmp_path / "other", tmp_path / "weir.pid"
    other.write_text("precious\n")
    pid_file.hardlink_to(other)
    with pytest.raises(AssertionError, match="a second name"):
        server("--pid-file", str(pid_file))
    assert other.read_text() == "precious\n"


@pytest.mark.parametrize("model", ["epoll"])
def test_a_user_who_can_read_the_pid_file_does_not_keep_a_server_from_starting(
    server: ServerFactory, tmp_path: Path
) -> None:
    pid_file = tmp_path / "weir.pid"
    pid_file.write_text("1234\n")  # of a server that was killed
    with pid_file.open() as reader:
        fcntl.lockf(reader, fcntl.LOCK_SH)
        running = server("--pid-file", str(pid_file))
        assert pid_file.read_text() == f"{running.popen.pid}\n"
        with pytest.raises(AssertionError, match=f"belongs to process {running.popen.pid}"):
            server("--pid-file", str(pid_file))


def test_a_parent_that_ignores_its_children_changes_nothing(server: ServerFactory) -> None:
    """A program inherits an ignored SIGCHLD, with which the kernel reports no death of a child."""
    running = server("--workers", "2", wrapper=("env", "--ignore-signal=CHLD"))
    kill_worker(running)
    assert answered(running)
    os.kill(running.popen.pid, signal.SIGTERM)
    assert running.wait() == 0


def test_no_zombie_is_left(server: ServerFactory) -> None:
    running = server("--workers", "2")
    for _ in range(3):
        kill_worker(running)
    children = Path(f"/proc/{running.popen.pid}/task/{running.popen.pid}/children")
    wait_until(lambda: len(children.read_text().split()) == 2, "the master has two children")
