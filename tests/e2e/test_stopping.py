# SPDX-License-Identifier: MIT
"""Stopping: what was begun is finished, nothing is left behind, and twice means now."""

from __future__ import annotations

import os
import signal
import socket
import time
from pathlib import Path

import pytest

from tests.e2e.conftest import ServerFactory
from tests.e2e.load import Load
from tests.e2e.running import Server
from tests.e2e.wire import Connection, connect

BIG = 20_000_000


def begin_download(running: Server, site: Path, name: str = "big.bin") -> Connection:
    """A client in the middle of a large file: more than all buffers hold is still to come."""
    (site / name).write_bytes(bytes(BIG))
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    made.settimeout(20)
    made.connect(running.address)
    connection = Connection(made)
    connection.send(f"GET /{name} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
    connection.data = made.recv(1000)
    assert connection.data.startswith(b"HTTP/1.1 200")
    return connection


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_idle_server_stops_at_once(server: ServerFactory, number: signal.Signals) -> None:
    running = server()
    with connect(running.address) as idle:
        idle.get("/hello.txt")
        began = time.monotonic()
        running.signal(number)
        assert idle.read_to_end() == b""
        assert running.wait() == 0
        assert time.monotonic() - began < 3


def test_a_hangup_does_not_stop_a_service(server: ServerFactory) -> None:
    running = server()
    for child in running.master.descendants():
        os.kill(child.pid, signal.SIGHUP)
    running.signal(signal.SIGHUP)
    deadline = time.monotonic() + 10
    while "reloaded" not in running.messages():
        assert time.monotonic() < deadline
    with connect(running.address) as connection:
        assert connection.get("/hello.txt").status == 200


def wait_until_stopping(running: Server) -> None:
    deadline = time.monotonic() + 10
    while "stopping" not in running.messages():
        assert time.monotonic() < deadline


def wait_until_refused(address: tuple[str, int]) -> None:
    """A server that stops takes no more connections, rather than leave them waiting."""
    deadline = time.monotonic() + 2
    while time.monotonic() < deadline:
        try:
            Connection.to(address, timeout_s=0.5).close()
        except ConnectionRefusedError:
            return
        except (TimeoutError, ConnectionResetError):
            continue  # caught in the moment of closing
    raise AssertionError("connections are still let in")


def test_a_download_under_way_is_finished(server: ServerFactory, site: Path) -> None:
    running = server()
    download = begin_download(running, site)
    try:
        running.signal(signal.SIGTERM)
        wait_until_stopping(running)
        assert running.popen.poll() is None
        answer = download.read()
    finally:
        download.close()
    assert len(answer.body) == BIG
    assert running.wait() == 0


def test_a_client_that_stays_after_its_download_is_let_go(
    server: ServerFactory, site: Path
) -> None:
    running = server()
    download = begin_download(running, site)
    try:
        running.signal(signal.SIGTERM)
        wait_until_stopping(running)
        assert len(download.read().body) == BIG
        began = time.monotonic()
        assert running.wait() == 0
        assert time.monotonic() - began < 5
    finally:
        download.close()


def test_new_connections_are_refused_while_it_stops(server: ServerFactory, site: Path) -> None:
    running = server()
    download = begin_download(running, site)
    try:
        running.signal(signal.SIGTERM)
        wait_until_stopping(running)
        wait_until_refused(running.address)
        assert running.popen.poll() is None
    finally:
        download.close()
    assert running.wait() == 0


def test_a_second_signal_does_not_wait_for_the_delay(server: ServerFactory) -> None:
    running = server("--drain-delay", "60s")
    with connect(running.address) as kept:
        kept.get("/hello.txt")
        running.signal(signal.SIGTERM)
        wait_until_stopping(running)
        answer = kept.get("/hello.txt")
        assert (answer.status, answer.closes) == (200, False)
        running.signal(signal.SIGTERM)
        assert running.wait() == 0


def test_a_second_signal_ends_it_at_once(server: ServerFactory, site: Path) -> None:
    running = server()
    download = begin_download(running, site)
    try:
        running.signal(signal.SIGTERM)
        wait_until_stopping(running)
        assert running.popen.poll() is None
        began = time.monotonic()
        running.signal(signal.SIGTERM)
        assert running.wait() == 0
        assert time.monotonic() - began < 2
    finally:
        download.close()


def test_a_client_that_holds_it_up_is_cut_off_in_time(server: ServerFactory, site: Path) -> None:
    running = server("--drain-timeout", "1s")
    download = begin_download(running, site)
    try:
        began = time.monotonic()
        running.signal(signal.SIGTERM)
        assert running.wait() == 0
        assert 0.9 <= time.monotonic() - began < 3
    finally:
        download.close()


@pytest.mark.parametrize("keep", [True, False])
def test_every_request_that_was_taken_is_answered(
    server: ServerFactory, site: Path, keep: bool
) -> None:
    content = bytes(range(256)) * 200
    (site / "file.bin").write_bytes(content)
    running = server()
    with Load(running.address, "/file.bin", content, clients=20, keep=keep) as load:
        load.wait_for(500)
        running.signal(signal.SIGTERM)
        assert running.wait() == 0
        count = load.stop()
    assert count.wrong == []
    assert count.cut == 0
    # A connection that the kernel took while the server closed its door may go unanswered.
    assert count.unanswered + count.parted <= len(load.clients)


def test_what_is_logged_as_answered_was_answered(
    server: ServerFactory, model: str, tmp_path: Path
) -> None:
    for i in range(10 if model in ("epoll", "percore") else 2):
        log = tmp_path / f"access-{i}.log"
        running = server("--access-log", str(log), "--drain-idle", "50ms")
        fast = Load(running.address, "/hello.txt", b"hello\n", clients=3, keep=False)
        kept = Load(running.address, "/hello.txt", b"hello\n", clients=3, keep=True)
        with fast, kept:
            fast.wait_for(20)
            kept.wait_for(20)
            running.signal(signal.SIGTERM)
            assert running.wait() == 0
            fast_count, kept_count = fast.stop(), kept.stop()
        assert fast_count.wrong == kept_count.wrong == []
        assert fast_count.cut == kept_count.cut == 0
        answers = fast_count.answers + kept_count.answers
        assert len(log.read_text().splitlines()) == answers


def test_the_last_answers_say_that_they_are(server: ServerFactory) -> None:
    running = server()
    with connect(running.address) as connection:
        connection.get("/hello.txt")
        connection.send(b"GET /hello.txt HTTP/1.1\r\nHost: a\r\n")
        running.signal(signal.SIGTERM)
        wait_until_stopping(running)
        wait_until_refused(running.address)
        connection.send(b"\r\n")
        answer = connection.read()
        assert answer.status == 200
        assert answer.closes
        assert connection.read_to_end() == b""
    assert running.wait() == 0


def test_it_can_start_again_on_the_same_address(server: ServerFactory) -> None:
    first = server()
    with connect(first.address) as connection:
        connection.get("/hello.txt")
        first.stop()
    host, port = first.address
    second = server(listen=(f"{host}:{port}",))
    with connect(second.address) as connection:
        assert connection.get("/hello.txt").status == 200
