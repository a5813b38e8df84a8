# SPDX-License-Identifier: MIT
"""The thread pool behind a bounded queue: each client is served, or gets 503 at once."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.certificates import make
from tests.e2e.conftest import ServerFactory
from tests.e2e.crowd import Crowd
from tests.e2e.running import Server
from tests.e2e.statistics import Numbers, read, settled, wait_for
from tests.e2e.test_stopping import wait_until_stopping
from tests.e2e.tracing import stopped_threads
from tests.e2e.wire import Answer, Connection, connect
from tests.waiting import LIMIT_S

HELLO = b"GET /hello.txt HTTP/1.1\r\nHost: a\r\n\r\n"

pytestmark = pytest.mark.parametrize("model", ["pool"], scope="session")


def pool_threads(running: Server) -> list[int]:
    """The threads of the only worker that serve: all but its main thread."""
    (worker,) = running.workers()
    tasks = {int(name) for name in os.listdir(f"/proc/{worker.pid}/task")}
    return sorted(tasks - {worker.pid})


def queued(count: int) -> Callable[[Numbers], bool]:
    return lambda now: bool(now["gauges"]["queue_length"] == count)


def has_answer(connection: Connection) -> bool:
    return bool(select.select([connection.socket], [], [], 0)[0])


def test_each_of_a_thousand_clients_is_served_by_ten_threads(server: ServerFactory) -> None:
    running = server("--threads", "10")
    with Crowd(running.address, 1000) as crowd:
        crowd.ask_until(10_000)
        assert min(member.answers for member in crowd.members) > 0


def test_a_client_that_sends_nothing_wakes_no_thread(server: ServerFactory) -> None:
    running = server("--threads", "2")
    silent = 20
    before = read(running.master.pid)["counters"]["queue_entered"]
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(connect(running.address)) for _ in range(silent)]
        now = wait_for(running, lambda now: bool(now["gauges"]["connections_open"] == silent))
        assert now["counters"]["queue_entered"] == before
        for client in clients:
            assert client.get("/hello.txt").body == b"hello\n"


def test_an_idle_client_of_the_sticky_policy_keeps_its_thread(server: ServerFactory) -> None:
    running = server("--threads", "10", "--pool-policy", "sticky")
    with contextlib.ExitStack() as stack:
        holders = [stack.enter_context(connect(running.address)) for _ in range(10)]
        for holder in holders:
            assert holder.get("/hello.txt").body == b"hello\n"
        eleventh = stack.enter_context(connect(running.address))
        eleventh.send(HELLO)
        wait_for(running, queued(1))
        for holder in holders:  # its own thread still serves each of these
            assert holder.get("/hello.txt").body == b"hello\n"
        assert not has_answer(eleventh)
        holders[3].close()
        assert eleventh.read().body == b"hello\n"


def test_parked_idle_clients_hold_no_thread(server: ServerFactory) -> None:
    running = server("--threads", "2")
    with contextlib.ExitStack() as stack:
        for _ in range(50):
            idle = stack.enter_context(connect(running.address))
            assert idle.get("/hello.txt").body == b"hello\n"
        with connect(running.address) as other:
            assert other.get("/hello.txt").body == b"hello\n"


def assert_is_refusal(answer: Answer) -> None:
    assert answer.status == 503
    assert int(answer.get("Retry-After") or 0) > 0
    assert answer.closes


def test_a_full_queue_answers_503_and_recovers(server: ServerFactory) -> None:
    running = server("--threads", "1", "--pool-queue", "2", "--pool-policy", "sticky")
    with contextlib.ExitStack() as stack:
        holder, *waiting = (stack.enter_context(connect(running.address)) for _ in range(3))
        assert holder.get("/hello.txt").status == 200
        for connection in waiting:
            connection.send(HELLO)
        wait_for(running, queued(2))
        for _ in range(5):
            with connect(running.address) as refused:
                assert_is_refusal(refused.get("/hello.txt"))
                assert refused.read_to_end() == b""
        assert "pool-queue" in running.messages()
        assert not any(map(has_answer, waiting))
        holder.close()
        for connection in waiting:  # in their order, each when the one before has left
            assert connection.read().body == b"hello\n"
            connection.close()
        with connect(running.address) as after:
            assert after.get("/hello.txt").body == b"hello\n"


def test_a_wait_in_the_queue_of_the_sticky_policy_has_a_limit(server: ServerFactory) -> None:
    running = server(
        *("--threads", "1", "--pool-policy", "sticky"),
        *("--header-timeout", "3s", "--idle-timeout", "10m"),
    )
    with contextlib.ExitStack() as stack:
        holder = stack.enter_context(connect(running.address))
        assert holder.get("/hello.txt").body == b"hello\n"
        silent = stack.enter_context(connect(running.address))
        waiting = [stack.enter_context(connect(running.address)) for _ in range(40)]
        for connection in waiting:
            connection.send(HELLO)
        for connection in waiting:
            assert_is_refusal(connection.read())
            assert connection.read_to_end() == b""
        assert "waited 3.0 s" in running.messages()
        assert silent.read_to_end() == b""
        numbers = wait_for(running, queued(0))
        assert numbers["counters"]["connections_refused"] == len(waiting) + 1
        assert holder.get("/hello.txt").body == b"hello\n"
    with connect(running.address) as after:
        assert after.get("/hello.txt").body == b"hello\n"


def test_a_client_of_tls_that_waits_too_long_for_a_sticky_thread_gets_503(
    server: ServerFactory, tmp_path: Path
) -> None:
    pair = make(tmp_path, "queue", "localhost")
    running = server(
        *("--threads", "1", "--pool-policy", "sticky", *pair.flags()),
        *("--header-timeout", "3s", "--idle-timeout", "10m"),
        listen=("https://127.0.0.1:0",),
    )
    trust = ssl.create_default_context(cafile=str(pair.certificate))

    def seal() -> Connection:
        plain = socket.create_connection(running.address, LIMIT_S)
        return Connection(trust.wrap_socket(plain, server_hostname="localhost"))

    with contextlib.closing(seal()) as holder:
        assert holder.get("/hello.txt").status == 200
        with contextlib.closing(seal()) as late:
            assert_is_refusal(late.get("/hello.txt"))


def test_a_parked_client_that_finds_the_queue_full_gets_503(server: ServerFactory) -> None:
    running = server("--threads", "1", "--pool-queue", "1")
    with Crowd(running.address, 20) as crowd:
        assert {answer.status for answer in crowd.ask_in_turn()} == {200}
        threads = pool_threads(running)
        assert threads
        # While no thread serves, the queue takes one client. The thread can hold another one that
        # it is about to park.
        with stopped_threads(threads):
            refused = crowd.ask_once_until(18)
            for answer in refused:
                assert_is_refusal(answer)
            assert queued(1)(read(running.master.pid))
        crowd.wait_for_closed(len(refused))
        assert b"hello\n" in [each.body for each in crowd.read_answers(20 - len(refused))]
    settled(running)  # a thread ends the last clients, which wait in the queue for it
    with connect(running.address) as after:
        assert after.get("/hello.txt").body == b"hello\n"


def test_sticky_threads_release_idle_clients_when_the_server_stops(server: ServerFactory) -> None:
    running = server("--threads", "2", "--pool-policy", "sticky", "--idle-timeout", "60s")
    with contextlib.ExitStack() as stack:
        holders = [stack.enter_context(connect(running.address)) for _ in range(2)]
        for holder in holders:
            assert holder.get("/hello.txt").status == 200
        waiting = [stack.enter_context(connect(running.address)) for _ in range(5)]
        for connection in waiting:
            connection.send(HELLO)
        wait_for(running, queued(5))
        running.signal(signal.SIGTERM)
        for connection in waiting:  # accepted connections are served
            answer = connection.read()
            assert answer.body == b"hello\n"
            assert answer.closes
        for holder in holders:
            assert holder.read_to_end() == b""
    assert running.wait() == 0


@pytest.mark.parametrize("policy", ["park", "sticky"])
def test_a_second_signal_ends_downloads_at_once(
    server: ServerFactory, site: Path, policy: str
) -> None:
    (site / "big.bin").write_bytes(bytes(20_000_000))
    running = server("--threads", "2", "--pool-policy", policy, "--drain-timeout", "10m")
    with contextlib.ExitStack() as stack:
        for _ in range(4):
            reader = stack.enter_context(connect(running.address))
            reader.send(b"GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n")
        running.signal(signal.SIGTERM)
        wait_until_stopping(running)
        running.signal(signal.SIGTERM)
        assert running.wait() == 0


def test_slow_readers_hold_no_thread(server: ServerFactory, site: Path) -> None:
    content = os.urandom(8_000_000)
    (site / "big.bin").write_bytes(content)
    running = server("--threads", "10")
    with contextlib.ExitStack() as stack:
        slow = []
        for _ in range(12):
            connection = Connection.to(running.address, receive_buffer=4096)
            stack.callback(connection.close)
            connection.send(b"GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n")
            connection.data = connection.socket.recv(1000)
            assert connection.data.startswith(b"HTTP/1.1 200")
            slow.append(connection)
        with connect(running.address) as other:
            for _ in range(100):
                assert other.get("/hello.txt").body == b"hello\n"
        for connection in slow:
            answer = connection.read()
            assert answer.body == content
            assert connection.get("/hello.txt").body == b"hello\n"
