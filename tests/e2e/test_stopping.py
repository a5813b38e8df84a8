# SPDX-License-Identifier: MIT
"""Stopping: requests are finished, nothing is left behind, and a second signal ends the server at
once."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.e2e.conftest import Port, ServerFactory
from tests.e2e.load import Load
from tests.e2e.running import Server
from tests.e2e.wire import Connection, connect
from tests.waiting import wait_until

BIG = 10_000_000


def begin_download(running: Server, site: Path, name: str = "big.bin") -> Connection:
    """A client in the middle of a large file. The rest is larger than all buffers together."""
    (site / name).write_bytes(bytes(BIG))
    connection = Connection.to(running.address, receive_buffer=4096)
    connection.send(f"GET /{name} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
    connection.data = connection.socket.recv(1000)
    assert connection.data.startswith(b"HTTP/1.1 200")
    return connection


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_idle_server_does_not_wait_for_the_drain_timeout(
    server: ServerFactory, number: signal.Signals
) -> None:
    running = server("--drain-timeout", "10m")
    with connect(running.address) as idle:
        idle.get("/hello.txt")
        running.signal(number)
        assert idle.read_to_end() == b""
        assert running.wait() == 0


def test_a_hangup_does_not_stop_a_service(server: ServerFactory) -> None:
    running = server()
    for child in running.master.descendants():
        os.kill(child.pid, signal.SIGHUP)
    running.signal(signal.SIGHUP)
    wait_until(lambda: "reloaded" in running.messages(), running.messages)
    with connect(running.address) as connection:
        assert connection.get("/hello.txt").status == 200


def wait_until_stopping(running: Server) -> None:
    wait_until(lambda: "stopping" in running.messages(), running.messages)


def wait_until_refused(address: tuple[str, int]) -> None:
    """Waits until the server has closed its listener."""

    def refused() -> bool:
        try:
            Connection.to(address).close()
        except ConnectionRefusedError:
            return True
        except ConnectionResetError:  # the listener closed during the handshake
            return False
        return False

    wait_until(refused, f"connections to {address} are refused")


def test_a_download_is_finished_before_the_server_stops(server: ServerFactory, site: Path) -> None:
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


def test_a_client_that_stays_after_its_download_does_not_delay_the_stop(
    server: ServerFactory, site: Path
) -> None:
    running = server("--drain-timeout", "10m")
    download = begin_download(running, site)
    try:
        running.signal(signal.SIGTERM)
        wait_until_stopping(running)
        assert len(download.read().body) == BIG
        assert running.wait() == 0
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
    running = server("--drain-delay", "10m")
    with connect(running.address) as kept:
        kept.get("/hello.txt")
        running.signal(signal.SIGTERM)
        wait_until_stopping(running)
        answer = kept.get("/hello.txt")
        assert (answer.status, answer.closes) == (200, False)
        running.signal(signal.SIGTERM)
        assert running.wait() == 0


def test_a_second_signal_does_not_wait_for_a_download(server: ServerFactory, site: Path) -> None:
    running = server("--drain-timeout", "10m")
    download = begin_download(running, site)
    try:
        running.signal(signal.SIGTERM)
        wait_until_stopping(running)
        assert running.popen.poll() is None
        running.signal(signal.SIGTERM)
        assert running.wait() == 0
    finally:
        download.close()


def test_a_download_is_cut_when_the_drain_timeout_is_over(
    server: ServerFactory, site: Path
) -> None:
    running = server("--drain-timeout", "300ms")
    download = begin_download(running, site)
    try:
        running.signal(signal.SIGTERM)
        assert running.wait() == 0
    finally:
        download.close()


def test_the_drain_timeout_holds_for_idle_clients_too(server: ServerFactory) -> None:
    limits = ("--drain-timeout", "300ms", "--drain-idle", "10m", "--kill-timeout", "60s")
    running = server(*limits)
    with connect(running.address) as idle:
        idle.get("/hello.txt")
        running.signal(signal.SIGTERM)
        assert running.wait() == 0
        assert idle.read_to_end() == b""
    assert "killed" not in running.messages()


@pytest.mark.parametrize("keep", [True, False])
def test_every_accepted_request_is_answered(server: ServerFactory, site: Path, keep: bool) -> None:
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
    # A connection that the kernel accepts while the server closes its listener gets no answer.
    assert count.unanswered + count.parted <= len(load.clients)


def test_the_log_has_a_line_for_each_answer_that_a_client_received(
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


def test_the_last_answers_announce_the_close(server: ServerFactory) -> None:
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


def test_a_server_can_start_again_on_the_same_address(server: ServerFactory, port: Port) -> None:
    address = f"127.0.0.1:{port()}"
    first = server(listen=(address,))
    with connect(first.address) as connection:
        connection.get("/hello.txt")
        first.stop()
    second = server(listen=(address,))
    with connect(second.address) as connection:
        assert connection.get("/hello.txt").status == 200
