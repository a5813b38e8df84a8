# SPDX-License-Identifier: MIT
"""HTTP over TLS, as a client at the level of records sees it, on every model."""

from __future__ import annotations

import itertools
import json
import os
import re
import select
import signal
import socket
import ssl
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.e2e.certificates import RSA, VERSIONS, Pair, make, secure, trusting
from tests.e2e.conftest import ServerFactory
from tests.e2e.running import Server
from tests.e2e.statistics import wait_for, weir_stats
from tests.e2e.wire import TIMEOUT_S, Connection, connect

HELLO = b"hello\n"


def serving(server: ServerFactory, pair: Pair, *arguments: str) -> Server:
    return server(*pair.flags(), *arguments, listen=("https://127.0.0.1:0",))


def tls_of(connection: Connection) -> ssl.SSLSocket:
    assert isinstance(connection.socket, ssl.SSLSocket)
    return connection.socket


@pytest.mark.parametrize("version", VERSIONS)
def test_requests_are_answered(server: ServerFactory, pair: Pair, version: ssl.TLSVersion) -> None:
    running = serving(server, pair)
    with secure(running.address, trusting(pair, version)) as connection:
        for _ in range(20):
            assert connection.get("/hello.txt").body == HELLO
        assert connection.get("/nothing").status == 404


@pytest.mark.parametrize("version", VERSIONS)
def test_files_of_every_size_arrive_whole(
    server: ServerFactory, pair: Pair, site: Path, version: ssl.TLSVersion
) -> None:
    sizes = [0, 1, 12_000, 16_383, 16_384, 16_385, 65_535, 65_537, 200_000, 3_000_001]
    contents = {f"/{size}.bin": os.urandom(size) for size in sizes}
    for path, content in contents.items():
        (site / path[1:]).write_bytes(content)
    running = serving(server, pair)
    with secure(running.address, trusting(pair, version)) as connection:
        for path, content in contents.items():
            assert connection.get(path).body == content, path
        wanted = contents["/3000001.bin"][70_000:2_000_000]
        answer = connection.get("/3000001.bin", "a", "Range: bytes=70000-1999999")
        assert (answer.status, answer.body == wanted) == (206, True)
        parts = connection.get("/3000001.bin", "a", "Range: bytes=0-99999,200000-400000")
        assert parts.status == 206
        assert contents["/3000001.bin"][200_000:400_001] in parts.body


def test_pipelined_requests_are_answered_in_order(server: ServerFactory, pair: Pair) -> None:
    running = serving(server, pair)
    with secure(running.address, trusting(pair)) as connection:
        paths = ["/hello.txt", "/nothing"] * 200
        lines = "".join(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n" for path in paths)
        connection.send(lines.encode())
        assert [connection.read().status for _ in paths] == [200, 404] * 200


def test_the_last_answer_is_followed_by_close_notify(server: ServerFactory, pair: Pair) -> None:
    running = serving(server, pair)
    with secure(running.address, trusting(pair)) as connection:
        connection.send(b"GET /hello.txt HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        assert connection.read_to_end().endswith(HELLO)


def test_an_idle_connection_ends_with_close_notify(server: ServerFactory, pair: Pair) -> None:
    running = serving(server, pair, "--idle-timeout", "200ms")
    with secure(running.address, trusting(pair)) as connection:
        assert connection.get("/hello.txt").body == HELLO
        assert connection.read_to_end() == b""


def test_a_client_that_ends_after_its_requests_gets_the_answers(
    server: ServerFactory, pair: Pair
) -> None:
    running = serving(server, pair)
    with secure(running.address, trusting(pair, ssl.TLSVersion.TLSv1_3)) as connection:
        connection.send(b"GET /hello.txt HTTP/1.1\r\nHost: a\r\n\r\n" * 3)
        assert [connection.read().body for _ in range(3)] == [HELLO] * 3
        left = tls_of(connection).unwrap()
        assert left.recv(1) == b""


def test_sessions_are_resumed(server: ServerFactory, pair: Pair) -> None:
    running = serving(server, pair)
    context = trusting(pair)
    with secure(running.address, context) as connection:
        assert connection.get("/hello.txt").body == HELLO
        session = tls_of(connection).session
        assert not tls_of(connection).session_reused
    for _ in range(6):  # whichever process accepts it
        with secure(running.address, context, session=session) as connection:
            assert connection.get("/hello.txt").body == HELLO
            assert tls_of(connection).session_reused
    numbers = wait_for(running, lambda now: now["gauges"]["connections_open"] == 0)
    counters = numbers["counters"]
    assert (counters["tls_handshakes"], counters["tls_resumed"]) == (7, 6)


def test_a_slow_reader_gets_everything_while_others_are_served(
    server: ServerFactory, pair: Pair, site: Path
) -> None:
    content = os.urandom(5_000_000)
    (site / "big.bin").write_bytes(content)
    running = serving(server, pair)
    context = trusting(pair)
    with (
        secure(running.address, context, receive_buffer=1024) as slow,
        secure(running.address, context) as other,
    ):
        slow.send(b"GET /big.bin HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        got = bytearray()
        for turn in itertools.count():
            if not (more := slow.socket.recv(16384)):
                break
            if turn % 97 == 0:
                assert other.get("/hello.txt").body == HELLO
            got += more
    assert bytes(got).partition(b"\r\n\r\n")[2] == content


def test_plain_http_is_told_to_use_https(server: ServerFactory, pair: Pair) -> None:
    running = serving(server, pair)
    with connect(running.address) as connection:
        answer = connection.get("/hello.txt")
        assert answer.status == 400
        assert b"https://" in answer.body
        assert answer.closes
        assert connection.read_to_end() == b""
    wait_for(running, lambda now: now["refused_by_cause"]["plain_http"] == 1)


def test_tls_at_a_plain_address_is_counted(server: ServerFactory, pair: Pair) -> None:
    running = server()
    with pytest.raises(ssl.SSLError), secure(running.address, trusting(pair)):
        pass
    wait_for(running, lambda now: now["refused_by_cause"]["tls_record"] == 1)


def test_a_handshake_in_single_bytes_is_accepted(server: ServerFactory, pair: Pair) -> None:
    running = serving(server, pair)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = trusting(pair).wrap_bio(incoming, outgoing, server_hostname="localhost")
    with connect(running.address) as connection:
        connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def exchange() -> None:
            for byte in outgoing.read():
                connection.send(bytes([byte]))
            incoming.write(connection.socket.recv(65536))

        while True:
            try:
                client.do_handshake()
                break
            except ssl.SSLWantReadError:
                exchange()
        client.write(b"GET /hello.txt HTTP/1.1\r\nHost: a\r\n\r\n")
        got = b""
        while not got.endswith(HELLO):
            try:
                got += client.read(65536)
            except ssl.SSLWantReadError:
                exchange()
        assert got.startswith(b"HTTP/1.1 200 ")


def old_hello() -> bytes:
    """A ClientHello that offers TLS 1.1 and nothing newer (RFC 5246 section 7.4.1.2)."""
    suites = b"\x00\x04\xc0\x09\xc0\x13"
    body = b"\x03\x02" + bytes(32) + b"\x00" + suites + b"\x01\x00"
    message = b"\x01" + len(body).to_bytes(3, "big") + body
    return b"\x16\x03\x01" + len(message).to_bytes(2, "big") + message


FAULTS = {
    "tls_failed_other": b"\x16\x03\x01\x00\x05hello",
    "tls_failed_version": old_hello(),
    "tls_failed_cut": b"\x16\x03\x01\x02\x00\x01\x00",
}


@pytest.mark.parametrize("counter", FAULTS)
def test_a_failed_handshake_is_counted_and_disturbs_no_other(
    server: ServerFactory, pair: Pair, counter: str
) -> None:
    running = serving(server, pair)
    context = trusting(pair)
    with secure(running.address, context) as other:
        with connect(running.address) as connection:
            connection.send(FAULTS[counter])
            if counter != "tls_failed_cut":
                alert = connection.read_to_end()
                assert alert[:1] == b"\x15", alert
        wait_for(running, lambda now: now["counters"][counter] == 1)
        assert other.get("/hello.txt").body == HELLO


def test_broken_records_end_the_connection_with_an_alert(server: ServerFactory, pair: Pair) -> None:
    running = serving(server, pair)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = trusting(pair).wrap_bio(incoming, outgoing, server_hostname="localhost")
    with connect(running.address) as connection:
        while True:
            try:
                client.do_handshake()
                break
            except ssl.SSLWantReadError:
                connection.send(outgoing.read())
                incoming.write(connection.socket.recv(65536))
        client.write(b"GET /hello.txt HTTP/1.1\r\nHost: a\r\n\r\n")
        record = bytearray(outgoing.read())
        record[-1] ^= 1
        connection.send(bytes(record))
        incoming.write(connection.read_to_end())
        incoming.write_eof()
        with pytest.raises(ssl.SSLError, match="BAD_RECORD_MAC"):
            client.read(1000)


def test_counters_equal_what_clients_received(
    server: ServerFactory, pair: Pair, tmp_path: Path
) -> None:
    log = tmp_path / "access.log"
    running = serving(server, pair, "--access-log", str(log))
    context = trusting(pair)
    for number in range(12):
        with secure(running.address, context) as connection:
            for _ in range(number):
                connection.get("/hello.txt")
    numbers = wait_for(running, lambda now: now["gauges"]["connections_open"] == 0)
    assert numbers["counters"]["tls_handshakes"] == 12
    assert numbers["counters"]["requests"] == sum(range(12))
    assert numbers["durations"]["handshake"]["count"] == 12
    running.stop()
    assert len(log.read_text().splitlines()) == sum(range(12))


@pytest.mark.parametrize("form", ["combined", "json"])
@pytest.mark.parametrize("version", VERSIONS)
def test_the_log_has_the_protocol_and_the_cipher(
    server: ServerFactory,
    pair: Pair,
    site: Path,
    tmp_path: Path,
    version: ssl.TLSVersion,
    form: str,
) -> None:
    log = tmp_path / "access.log"
    (site / "big.bin").write_bytes(bytes(500_000))
    flags = ("--access-log", str(log), "--log-format", form)
    running = server(*pair.flags(), *flags, listen=("https://127.0.0.1:0", "127.0.0.1:0"))
    with secure(running.address, trusting(pair, version)) as connection:
        chosen = tls_of(connection).cipher()
        assert chosen
        for path in ("/hello.txt", "/big.bin", "/nothing"):
            connection.get(path)
    with connect(("127.0.0.1", urlsplit(running.urls[1]).port or 0)) as plain:
        plain.get("/index.html")
    running.stop()
    lines = log.read_text().splitlines()
    if form == "json":
        fields = {"tls": chosen[1], "cipher": chosen[0]}
        records = [json.loads(line) for line in lines]
        assert [record.items() >= fields.items() for record in records].count(True) == 3
        assert ["tls" in record or "cipher" in record for record in records].count(False) == 1
    else:
        end = re.compile(rf'" [0-9a-f]{{16}} {chosen[1]} {chosen[0]}$')
        assert len([line for line in lines if end.search(line)]) == 3
        (other,) = (line for line in lines if re.search('" [0-9a-f]{16}$', line))
        assert "/index.html" in other


SUITES = {
    "TLS_AES_128_GCM_SHA256": "tls_1_3_aes_128",
    "TLS_AES_256_GCM_SHA384": "tls_1_3_aes_256",
    "TLS_CHACHA20_POLY1305_SHA256": "tls_1_3_chacha20",
    "ECDHE-ECDSA-AES128-GCM-SHA256": "tls_1_2_ecdsa_aes_128",
    "ECDHE-ECDSA-AES256-GCM-SHA384": "tls_1_2_ecdsa_aes_256",
    "ECDHE-ECDSA-CHACHA20-POLY1305": "tls_1_2_ecdsa_chacha20",
    "ECDHE-RSA-AES128-GCM-SHA256": "tls_1_2_rsa_aes_128",
    "ECDHE-RSA-AES256-GCM-SHA384": "tls_1_2_rsa_aes_256",
    "ECDHE-RSA-CHACHA20-POLY1305": "tls_1_2_rsa_chacha20",
}
GROUPS = {"X25519": "tls_group_x25519", "P-256": "tls_group_p256", "P-384": "tls_group_p384"}


@pytest.mark.parametrize("model", ["epoll"])  # sessions count, whatever the model
def test_suites_groups_and_certificates_are_in_the_statistics(
    server: ServerFactory, pair: Pair, tmp_path: Path
) -> None:
    rsa = make(tmp_path, "rsa", "localhost", "other.example", days=10, key=RSA)
    running = server(*pair.flags(), *rsa.flags(), listen=("https://127.0.0.1:0",))

    def shake_hands(*words: str) -> None:
        address = "{}:{}".format(*running.address)
        command = ["openssl", "s_client", "-connect", address, "-servername", "localhost"]
        subprocess.run(
            [*command, *words], stdin=subprocess.DEVNULL, capture_output=True, check=True
        )

    for suite in SUITES:
        new = suite.startswith("TLS_")
        shake_hands(*(("-tls1_3", "-ciphersuites") if new else ("-tls1_2", "-cipher")), suite)
    for group in GROUPS:
        shake_hands("-groups", group)
    total = len(SUITES) + len(GROUPS)
    numbers = wait_for(running, lambda now: now["counters"]["tls_handshakes"] == total)
    counted = numbers["counters"]
    wanted = dict.fromkeys(SUITES.values(), 1) | {"tls_1_3_aes_256": 1 + len(GROUPS)}
    assert {name: counted[name] for name in wanted} == wanted  # openssl prefers AES-256
    groups = {name: counted[name] for name in GROUPS.values()}
    assert min(groups.values()) >= 1
    assert sum(groups.values()) + counted["tls_group_x25519mlkem768"] == total
    first, second = numbers["certificates"]
    assert (first["name"], first["key"]) == ("localhost", "RSA")
    assert (second["name"], second["key"]) == ("localhost", "ECDSA")
    for one, days in ((first, 10), (second, 90)):
        assert days - 0.1 < one["days_left"] <= days
    pid = str(running.popen.pid)
    shown = weir_stats(pid).stdout
    assert re.search(
        r"^  certificate +\d{4}-\d\d-\d\d, in (10\.0|9\.9) days: localhost \(RSA\)", shown, re.M
    )
    line = (
        f'weir_certificate_end_seconds{{name="localhost",key="RSA"}} {first["ends_unix_seconds"]}'
    )
    assert line in weir_stats("--prometheus", pid).stdout


def test_a_server_without_tls_shows_no_section_about_it(server: ServerFactory) -> None:
    running = server()
    with connect(running.address) as connection:
        connection.get("/hello.txt")
    pid = str(running.popen.pid)
    assert "\nTLS\n" not in weir_stats(pid).stdout
    assert "\nTLS\n" in weir_stats("--explain", pid).stdout


def test_a_stop_ends_idle_connections(server: ServerFactory, pair: Pair) -> None:
    running = serving(server, pair)
    with secure(running.address, trusting(pair)) as connection:
        assert connection.get("/hello.txt").body == HELLO
        running.signal(signal.SIGTERM)
        assert select.select([connection.socket], [], [], TIMEOUT_S)[0]
        assert running.wait() == 0
