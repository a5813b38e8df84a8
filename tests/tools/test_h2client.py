# SPDX-License-Identifier: MIT
"""The benchmark's client of HTTP/2 against Python's h2, and what it reads of h2load's reports."""

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import h2.config
import h2.connection
import h2.events
import pytest

from bench import certificate, h2client, h2load
from bench.http2 import SCENARIOS
from bench.process import BenchError, Done

REPORT = """\
starting benchmark...
TLS Protocol: TLSv1.3
Cipher: TLS_AES_128_GCM_SHA256
Server Temp Key: X25519 253 bits
Application protocol: h2

finished in 1.00s, 123456.00 req/s, 50.00MB/s
requests: 123456 total, 123472 started, 123456 done, 123450 succeeded, 6 failed, 4 errored, 1 \
timeout
status codes: 123450 2xx, 0 3xx, 3 4xx, 2 5xx
traffic: 52.10MB (54631000) total, 2.94MB (3082000) headers (space savings 88.21%), 36.26MB \
(38022600) data
"""

Answers = Callable[[h2.connection.H2Connection, int, str], None]  # to a stream and its path


def serve_one(listener: socket.socket, context: ssl.SSLContext, answer: Answers) -> None:
    """Serves one connection to its end."""
    plain, _ = listener.accept()
    with context.wrap_socket(plain, server_side=True) as tls:
        machine = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        machine.initiate_connection()
        machine.ping(b"12345678")
        tls.sendall(machine.data_to_send())
        while data := tls.recv(1 << 16):
            for event in machine.receive_data(data):
                if isinstance(event, h2.events.RequestReceived):
                    fields = {bytes(k): bytes(v) for k, v in event.headers}
                    assert (fields[b":method"], fields[b":scheme"]) == (b"GET", b"https")
                    answer(machine, event.stream_id, fields[b":path"].decode())
            tls.sendall(machine.data_to_send())


@contextmanager
def server(folder: Path, answer: Answers, protocols: tuple[str, ...] = ("h2",)) -> Iterator[int]:
    """A server of one connection; yields its port."""
    identity = certificate.make(folder / "tls")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(identity.certificate, identity.key)
    context.set_alpn_protocols(list(protocols))
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def work() -> None:
            with contextlib.suppress(OSError):  # the client resets the connection
                serve_one(listener, context, answer)

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            thread.join()


def test_the_client_reads_status_and_body_of_every_answer_on_a_connection(tmp_path: Path) -> None:
    def answer(machine: h2.connection.H2Connection, stream: int, path: str) -> None:
        status, frames = ("404", [b""]) if path == "/empty" else ("200", [b"x" * 16_000] * 3)
        machine.send_headers(stream, [(":status", status), ("server", "x")])
        for body in frames:
            machine.send_data(stream, body)
        machine.send_data(stream, b"", end_stream=True)

    with server(tmp_path, answer) as port:
        connection = h2client.connect(port)
        first, second = connection.fetch("/a"), connection.fetch("/empty")
        connection.close()
    assert (first.status, len(first.body)) == (200, 48_000)
    assert (second.status, second.body) == (404, b"")
    assert 0 < second.head_bytes <= first.head_bytes  # the second refers to the first


def test_a_reset_stream_is_no_answer(tmp_path: Path) -> None:
    def refuse(machine: h2.connection.H2Connection, stream: int, _path: str) -> None:
        machine.reset_stream(stream, 7)

    with server(tmp_path, refuse) as port, pytest.raises(BenchError, match=r"RST_STREAM.*0007"):
        h2client.fetch(port, "/")


def test_a_server_without_http_2_is_refused(tmp_path: Path) -> None:
    def never(*_: object) -> None:
        raise AssertionError

    with server(tmp_path, never, ("http/1.1",)) as port, pytest.raises(BenchError, match="HTTP/2"):
        h2client.fetch(port, "/")


def done(output: str) -> Done:
    return Done(output=output, errors="", status=0, cpu_ns=1)


def test_a_report_of_h2load_is_counted() -> None:
    counts = h2load.counts(done(REPORT), 2)
    assert counts["requests"] == 123450
    assert counts["bytes"] == 38022600
    assert counts["duration_us"] == 2_000_000
    assert (counts["read_errors"], counts["timeouts"], counts["status_errors"]) == (4, 1, 5)


@pytest.mark.parametrize(
    ("agreed", "instead"),
    [
        ("protocol: h2", "protocol: http/1.1"),
        ("TLSv1.3", "TLSv1.2"),
        ("AES_128", "AES_256"),
        ("X25519", "P-256"),
        ("Application protocol: h2\n", ""),
    ],
)
def test_a_load_of_another_protocol_is_refused(agreed: str, instead: str) -> None:
    assert agreed in REPORT
    with pytest.raises(BenchError, match="h2load reports no"):
        h2load.counts(done(REPORT.replace(agreed, instead)), 1)


def test_a_failed_h2load_is_reported_in_its_own_words() -> None:
    with pytest.raises(BenchError, match="connection refused"):
        h2load.counts(done("connection refused"), 1)


def test_the_command_has_the_streams_and_connections_of_the_scenario() -> None:
    argv = h2load.argv("https://127.0.0.1:1/308.bin", SCENARIOS[1], 3)
    assert {"-c32", "-m16", "-D3", "--npn-list=h2"} <= set(argv)
