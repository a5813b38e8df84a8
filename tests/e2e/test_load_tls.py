# SPDX-License-Identifier: MIT
"""`weir load https://`: it verifies servers, counts handshakes, and names what goes wrong."""

from __future__ import annotations

import array
import contextlib
import csv
import fcntl
import io
import json
import ssl
import subprocess
import termios
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO

import pytest

from tests.e2e.certificates import HERE, Pair, make
from tests.e2e.conftest import ServerFactory
from tests.e2e.loading import INVALID, errors, result_of, step_of, weir_load
from tests.e2e.misbehaving import GoneError, Peer, misbehaving, ok
from tests.e2e.peers import PeerServer, peer, program_of
from tests.e2e.ports import reserved_port
from tests.e2e.running import TOP, WEIR
from tests.e2e.sealed import Sealed, sealed, url_of
from tests.waiting import LIMIT_S, wait_until

Start = Callable[..., PeerServer]


@pytest.fixture
def nginx(site: Path, tmp_path: Path, good: Pair) -> Iterator[Start]:
    """Starts nginx, which speaks TLS."""
    if not program_of("nginx"):
        pytest.skip("nginx is not installed")
    (site / "long").write_bytes(bytes(300_000))
    with ExitStack() as stack:
        yield lambda protocols="TLSv1.2 TLSv1.3": stack.enter_context(
            peer("nginx", site, tmp_path, identity=good, directives=f"ssl_protocols {protocols};")
        )


# ---- weir, with every model ----


@pytest.mark.parametrize("sessions", ["resume", "full"])
def test_answers_equal_the_lines_of_the_log_of_weir(
    server: ServerFactory, good: Pair, trust: list[str], tmp_path: Path, sessions: str
) -> None:
    log = tmp_path / "access.log"
    running = server(*good.flags(), "--access-log", str(log), listen=("https://127.0.0.1:0",))
    words = ["--users", "3", "--requests", "150", "--tls", sessions]
    for way in (["--no-keepalive"], ["--pipeline", "4"]):
        step = step_of(f"{running.url}/hello.txt", *trust, *words, *way)
        tls = step["tls"]
        assert (step["status"], errors(step)) == ({"200": 150}, {})
        assert tls["handshakes_failed"] == tls["tickets_refused"] == 0
        assert tls["handshakes_full"] == (150 if sessions == "full" and len(way) == 1 else 3)
        assert step["connects"] == (150 if len(way) == 1 else 3)
    running.stop()
    assert len(log.read_text().splitlines()) == 300


def test_long_bodies_of_weir_are_whole(
    server: ServerFactory, good: Pair, trust: list[str], site: Path
) -> None:
    (site / "long").write_bytes(bytes(range(256)) * 8000)
    running = server(*good.flags(), listen=("https://127.0.0.1:0",))
    words = ["--users", "3", "--requests", "12", "--verify", "hash"]
    step = step_of(f"{running.url}/long", *trust, *words)
    assert (step["answers"], step["body_bytes"], errors(step)) == (12, 12 * 256 * 8000, {})


# ---- servers that behave well ----


@pytest.mark.parametrize(
    "words",
    [
        ["--users", "7"],
        ["--users", "3", "--no-keepalive"],
        ["--users", "3", "--no-keepalive", "--tls", "full"],
        ["--users", "2", "--pipeline", "4"],
        ["--users", "4", "--threads", "2", "--think", "exp:2ms", "--verify", "hash"],
        ["--users", "30", "--rate", "2000", "--poisson"],
        ["--users", "3", "--spin-anyway"],
        ["--method", "HEAD"],
    ],
)
def test_answers_equal_the_lines_of_the_log(
    nginx: Start, trust: list[str], words: list[str]
) -> None:
    server = nginx()
    step = step_of(f"{server.url}/hello.txt", "--requests", "400", *trust, *words)
    assert errors(step) == {}
    assert step["status"] == {"200": 400}
    assert step["body_bytes"] == (0 if "HEAD" in words else 400 * len("hello\n"))
    lines = [line for line in server.stop() if " /hello.txt " in line]
    assert len(lines) == 400 + step["reopened"]


@pytest.mark.parametrize("words", [[], ["--verify", "hash"], ["--spin-anyway"]])
def test_long_bodies_are_decrypted_and_counted(
    nginx: Start, trust: list[str], words: list[str]
) -> None:
    server = nginx()
    step = step_of(f"{server.url}/long", "--users", "3", "--requests", "60", *trust, *words)
    assert errors(step) == {}
    assert step["body_bytes"] == 60 * 300_000
    assert step["received_bytes"] > step["body_bytes"]


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
@pytest.mark.parametrize("sessions", ["resume", "full"])
def test_handshakes_are_full_or_resumed(
    nginx: Start, trust: list[str], version: str, sessions: str
) -> None:
    server = nginx(version)
    words = ["--users", "4", "--requests", "100", "--no-keepalive", "--tls", sessions]
    step = step_of(f"{server.url}/hello.txt", *trust, *words)
    assert errors(step) == {}
    tls = step["tls"]
    full = 4 if sessions == "resume" else 100
    assert (tls["handshakes_full"], tls["handshakes_resumed"]) == (full, 100 - full)
    assert (tls["handshakes_failed"], tls["tickets_refused"]) == (0, 0)
    assert tls["handshake"]["count"] == step["connects"] == 100
    assert 0 < tls["handshake"]["min_ns"] <= tls["handshake"]["p50_ns"]
    assert [(one["protocol"], one["answers"]) for one in tls["agreed"]] == [(version, 100)]
    assert all(one["cipher"] and one["group"] for one in tls["agreed"])


def test_a_user_resumes_its_session_unless_told_otherwise(nginx: Start, trust: list[str]) -> None:
    server = nginx()
    words = ["--users", "2", "--requests", "20", "--no-keepalive"]
    result = result_of(f"{server.url}/hello.txt", *trust, *words)
    assert (result["plan"]["tls"], result["plan"]["insecure"]) == ("resume", False)
    assert result["steps"][0]["tls"]["handshakes_full"] == 2


def test_refused_tickets_are_a_doubt(good: Pair, trust: list[str]) -> None:
    def behave(connection: Peer) -> None:
        other = Sealed(connection, good.context())  # with new keys for its tickets
        other.handshake()
        answers(other)

    with misbehaving(behave) as server:
        words = ["--users", "2", "--requests", "20", "--no-keepalive"]
        step = step_of(url_of(server), *trust, *words)
    tls = step["tls"]
    assert errors(step) == {}
    assert (tls["handshakes_full"], tls["tickets_refused"]) == (20, 18)
    (doubt,) = [doubt for doubt in step["doubts"] if doubt["name"] == "tickets_refused"]
    assert doubt["reason"] == "18 of 18 handshakes that offered a ticket were full."
    assert not doubt["makes_invalid"]


def test_users_resume_at_each_of_several_hosts(good: Pair, trust: list[str]) -> None:
    names: list[str | None] = []
    context = good.context()
    context.sni_callback = lambda _, name, __: names.append(name)
    with sealed(context, answers) as server:
        port = server.listener.getsockname()[1]
        urls = [f"https://localhost:{port}/", f"https://127.0.0.1:{port}/"]
        words = ["--users", "1", "--requests", "40", "--no-keepalive"]
        tls = step_of(*urls, *trust, *words)["tls"]
    assert tls["handshakes_full"] == 2
    assert tls["handshakes_resumed"] == 38
    assert set(names) == {"localhost", None}  # an address is no server name


def answers(connection: Sealed) -> None:
    while True:
        connection.request()
        connection.send(ok())


def test_the_server_learns_the_protocol_and_the_hosts_name(good: Pair, trust: list[str]) -> None:
    seen: list[tuple[str | None, str | None]] = []
    names: list[str | None] = []
    context = good.context()
    context.set_alpn_protocols(["h2", "http/1.1"])
    context.sni_callback = lambda _, name, __: names.append(name)

    def behave(connection: Sealed) -> None:
        seen.append((connection.tls.selected_alpn_protocol(), connection.tls.version()))
        answers(connection)

    with sealed(context, behave) as server:
        step = step_of(url_of(server), "--users", "1", "--requests", "3", *trust)
    assert (step["answers"], errors(step)) == (3, {})
    assert seen == [("http/1.1", "TLSv1.3")] * 2
    assert names == ["localhost"] * 2


def test_a_long_request_arrives_whole(good: Pair, trust: list[str], tmp_path: Path) -> None:
    body = bytes(range(256)) * 8000
    (tmp_path / "body").write_bytes(body)
    received: list[bool] = []

    def behave(connection: Sealed) -> None:
        while True:
            whole = connection.request(len(body))
            received.append(whole.endswith(b"\r\n\r\n" + body))
            connection.send(ok())

    with sealed(good.context(), behave) as server:
        words = ["--users", "2", "--requests", "6", "--data-file", str(tmp_path / "body")]
        step = step_of(url_of(server), *trust, *words)
    assert (step["answers"], errors(step)) == (6, {})
    assert received == [True] * 6
    assert 6 * len(body) < step["sent_bytes"] < 6 * (len(body) + 500)


def test_an_answer_in_single_bytes_is_read(good: Pair, trust: list[str]) -> None:
    def behave(connection: Sealed) -> None:
        connection.request()
        for byte in connection.seal(ok(b"x" * 50)) + connection.close_notify():
            connection.peer.send(bytes([byte]))
        raise GoneError

    with sealed(good.context(), behave) as server:
        step = step_of(url_of(server), "--users", "1", "--requests", "2", *trust)
    assert (step["answers"], step["body_bytes"], errors(step)) == (2, 100, {})


def unread(pipe: IO[bytes]) -> int:
    """The number of bytes in a pipe."""
    count = array.array("i", [0])
    fcntl.ioctl(pipe.fileno(), termios.FIONREAD, count)
    return count[0]


def type_into(program: subprocess.Popen[bytes], text: bytes) -> None:
    """Writes to the program's input, and waits until it has read all of it."""
    pipe = program.stdin
    assert pipe
    pipe.write(text)
    pipe.flush()
    wait_until(lambda: unread(pipe) == 0, f"{text!r} is read")


@contextlib.contextmanager
def openssl_server(identity: Pair, *words: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """The server of the command `openssl`; yields it and its address."""
    with (
        reserved_port() as port,
        subprocess.Popen(
            [
                *("openssl", "s_server", "-accept", f"127.0.0.1:{port}", *words),
                *("-cert", str(identity.certificate), "-key", str(identity.key)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as server,
    ):
        assert server.stdout
        try:
            wait_for_line(server.stdout, "ACCEPT")
            yield server, f"127.0.0.1:{port}"
        finally:
            server.kill()


@pytest.mark.parametrize(
    ("words", "agreed"),
    [
        (
            ["-tls1_3", "-ciphersuites", "TLS_CHACHA20_POLY1305_SHA256", "-groups", "P-384"],
            ("TLSv1.3", "TLS_CHACHA20_POLY1305_SHA256", "secp384r1"),
        ),
        (
            ["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-GCM-SHA256", "-groups", "P-256"],
            ("TLSv1.2", "ECDHE-ECDSA-AES128-GCM-SHA256", "secp256r1"),
        ),
    ],
)
def test_the_report_names_protocol_cipher_and_group(
    good: Pair, trust: list[str], words: list[str], agreed: tuple[str, str, str]
) -> None:
    with openssl_server(good, "-www", *words) as (_, address):
        # Its answers have no length: close_notify ends them.
        step = step_of(f"https://{address}/", *trust, "--users", "1", "--requests", "4")
        text = weir_load(f"https://{address}/", *trust, "--users", "1", "--requests", "4").stdout
    assert (step["answers"], errors(step)) == (4, {})
    (one,) = step["tls"]["agreed"]
    assert (one["protocol"], one["cipher"], one["group"]) == agreed
    assert " ".join(agreed) in text


def test_a_new_key_of_the_server_is_followed(good: Pair, trust: list[str]) -> None:
    """`openssl s_server` sends a KeyUpdate, and requests one, when it reads a line with a K."""
    with openssl_server(good) as (server, address):
        assert server.stdout
        load = subprocess.Popen(
            [
                *(str(WEIR), "load", f"https://{address}/", *trust, "--json"),
                *("--users", "1", "--requests", "3"),
            ],
            stdout=subprocess.PIPE,
        )
        for keys in (b"", b"K\n", b"K\n"):
            wait_for_line(server.stdout, "GET / HTTP/1.1")
            type_into(server, keys)
            type_into(server, ok(b"hello\n"))
        out, _ = load.communicate(timeout=LIMIT_S)
    (step,) = json.loads(out)["steps"]
    assert (step["answers"], step["connects"], errors(step)) == (3, 1, {})


def wait_for_line(stream: IO[bytes], text: str) -> None:
    for line in stream:
        if text in line.decode(errors="replace"):
            return
    raise AssertionError(f"`{text}` never came")


# ---- certificates that are not trusted ----

DATES = {
    "expired": ("20240101000000Z", "20240201000000Z"),
    "early": ("20980101000000Z", "20990101000000Z"),
}


@pytest.mark.parametrize(
    ("kind", "reason", "cure"),
    [
        ("other name", "is for example.org, 192.0.2.1, and not for localhost", "use a URL with"),
        ("expired", "ended at 2024-02-01 00:00 UTC", "renew it"),
        ("early", "is valid only from 2098-01-01 00:00 UTC", "set the clock"),
        ("self-signed", "is self-signed", "--cacert FILE"),
        ("unknown authority", "has an issuer that is neither known", "--cacert FILE"),
    ],
)
def test_an_untrusted_certificate_ends_the_load_before_its_first_request(
    tmp_path: Path, authority: Pair, trust: list[str], kind: str, reason: str, cure: str
) -> None:
    hosts = ("example.org", "IP:192.0.2.1") if kind == "other name" else HERE
    issuer = None if kind == "self-signed" else authority
    trust = [] if kind == "unknown authority" else trust
    identity = make(tmp_path, "doubted", *hosts, issuer=issuer, dates=DATES.get(kind))
    with sealed(identity.context(), answers) as server:
        url = url_of(server)
        done = weir_load(url, "--users", "2", "--requests", "5", *trust)
        assert done.returncode == INVALID
        assert done.stdout == ""
        assert done.stderr.startswith("weir: the certificate of localhost:")
        assert done.stderr.count("\n") == 1
        assert reason in done.stderr
        assert cure in done.stderr
        assert "--insecure" in done.stderr
        assert server.requests == 0
        step = step_of(url, "--users", "2", "--requests", "5", "--insecure")
        assert (step["answers"], errors(step)) == (5, {})


def test_a_self_signed_certificate_can_be_its_own_authority(tmp_path: Path) -> None:
    own = make(tmp_path, "own", *HERE)
    with sealed(own.context(), answers) as server:
        words = ["--requests", "5", "--cacert", str(own.certificate)]
        assert step_of(url_of(server), *words)["answers"] == 5


def test_names_in_a_certificate_cannot_write_to_the_terminal(
    tmp_path: Path, authority: Pair, trust: list[str]
) -> None:
    identity = make(tmp_path, "hostile", "\x1b]0;title\x07.example", issuer=authority)
    with sealed(identity.context(), answers) as server:
        done = weir_load(url_of(server), *trust)
    assert done.returncode == INVALID
    assert "\x1b" not in done.stderr
    assert "\\x1b" in done.stderr


# ---- servers that do not speak TLS, or badly ----


def test_a_server_without_tls_is_named_before_the_run() -> None:
    def behave(connection: Peer) -> None:
        connection.connection.recv(65536)
        connection.send(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        connection.wait_for_close()

    with misbehaving(behave) as server:
        done = weir_load(url_of(server), "--insecure")
    assert (done.returncode, done.stdout) == (INVALID, "")
    assert "answers without TLS; use http://" in done.stderr


def test_garbage_for_a_handshake_is_named_before_the_run() -> None:
    def behave(connection: Peer) -> None:
        connection.connection.recv(65536)
        connection.send(b"\x00\x01garbage" * 10)
        connection.wait_for_close()

    with misbehaving(behave) as server:
        done = weir_load(url_of(server), "--insecure")
    assert (done.returncode, done.stdout) == (INVALID, "")
    assert "the TLS handshake with localhost:" in done.stderr
    assert "check that the server speaks TLS" in done.stderr


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_server_with_old_versions_only_is_named_before_the_run(good: Pair) -> None:
    context = good.context()
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    with sealed(context, answers) as server:
        done = weir_load(url_of(server), "--insecure")
    assert (done.returncode, done.stdout) == (INVALID, "")
    assert "check that the server speaks TLS 1.2 or 1.3" in done.stderr


def test_a_server_that_cannot_be_reached_is_left_to_the_run() -> None:
    with reserved_port() as port:
        words = ["--insecure", "--requests", "3", "--users", "1"]
        step = step_of(f"https://localhost:{port}/", *words)
    assert errors(step) == {"connect_refused": 3}
    assert step["tls"]["handshakes_failed"] == 0


def test_a_server_that_never_answers_is_left_to_the_run() -> None:
    with misbehaving(never_answers) as server:
        words = ["--insecure", "--requests", "3", "--users", "1", "--connect-timeout", "300ms"]
        step = step_of(url_of(server), *words)
    assert errors(step) == {"tls_timeout": 3}
    assert (step["tls"]["handshakes_failed"], step["requests"]) == (3, 3)


def first_good(context: ssl.SSLContext, then: Callable[[Peer], None]) -> Callable[[Peer], None]:
    """The first connection, which verifies the certificate, succeeds. Later ones behave badly."""

    def behave(connection: Peer) -> None:
        if connection.number == 0:
            Sealed(connection, context).handshake()
            connection.wait_for_close()
        then(connection)

    return behave


def never_answers(connection: Peer) -> None:
    connection.wait_for_close()


def closes_in_the_handshake(connection: Peer) -> None:
    connection.connection.recv(65536)
    raise GoneError


def resets_in_the_handshake(connection: Peer) -> None:
    connection.connection.recv(65536)
    connection.reset()


def answers_with_garbage(connection: Peer) -> None:
    connection.connection.recv(65536)
    connection.send(b"\x16\x03\x03\xff\xffgarbage")
    connection.wait_for_close()


def cuts_the_server_hello(connection: Peer) -> None:
    connection.connection.recv(65536)
    connection.send(b"\x16\x03\x03\x00\x7a\x02\x00\x00\x76\x03")
    raise GoneError


@pytest.mark.parametrize(
    ("then", "error"),
    [
        (never_answers, "tls_timeout"),
        (closes_in_the_handshake, "tls_closed"),
        (resets_in_the_handshake, "tls_closed"),
        (answers_with_garbage, "tls_handshake"),
        (cuts_the_server_hello, "tls_closed"),
    ],
)
def test_a_failed_handshake_is_counted_by_its_cause(
    good: Pair, trust: list[str], then: Callable[[Peer], None], error: str
) -> None:
    with misbehaving(first_good(good.context(), then)) as server:
        limit = "300ms" if then is never_answers else "60s"
        words = ["--users", "2", "--requests", "4", "--connect-timeout", limit]
        step = step_of(url_of(server), *trust, *words)
    assert errors(step) == {error: 4}
    assert step["answers"] == 0
    assert step["tls"]["handshakes_failed"] == step["connects"] == 4
    assert step["tls"]["agreed"] == []


def test_a_certificate_that_changes_during_the_run_is_an_error(
    tmp_path: Path, authority: Pair, good: Pair, trust: list[str]
) -> None:
    other = make(tmp_path, "other", "example.org", issuer=authority).context()

    def then(connection: Peer) -> None:
        Sealed(connection, other).handshake()
        connection.wait_for_close()

    with misbehaving(first_good(good.context(), then)) as server:
        step = step_of(url_of(server), "--users", "1", "--requests", "3", *trust)
    assert errors(step) == {"tls_certificate": 3}
    assert step["tls"]["handshakes_failed"] == 3


def closes_at_once(connection: Sealed) -> None:
    connection.end()


def cuts_a_record(connection: Sealed) -> None:
    connection.request()
    connection.peer.send(connection.seal(ok(b"x" * 1000))[:-300])
    raise GoneError


def cuts_between_records(connection: Sealed) -> None:
    connection.request()
    connection.send(ok(b"x" * 1000)[:-300])
    raise GoneError


def damages_a_record(connection: Sealed) -> None:
    connection.request()
    record = bytearray(connection.seal(ok()))
    record[-1] ^= 1
    connection.peer.send(bytes(record))
    connection.peer.wait_for_close()


def speaks_plain_suddenly(connection: Sealed) -> None:
    connection.request()
    connection.peer.send(ok())
    connection.peer.wait_for_close()


def ends_without_close_notify(connection: Sealed) -> None:
    connection.request()
    connection.send(b"HTTP/1.1 200 OK\r\n\r\nhello")
    raise GoneError


def ends_inside_a_length(connection: Sealed) -> None:
    connection.request()
    connection.send(ok(b"x" * 1000)[:-300])
    connection.end()


@pytest.mark.parametrize(
    ("behaviour", "error"),
    [
        (closes_at_once, "closed_before"),
        (cuts_a_record, "closed_before"),
        (cuts_between_records, "closed_amid"),
        (ends_inside_a_length, "closed_amid"),
        (damages_a_record, "tls_broken"),
        (speaks_plain_suddenly, "tls_broken"),
        (ends_without_close_notify, "tls_truncated"),
    ],
)
def test_a_broken_connection_is_counted_by_its_cause(
    good: Pair, trust: list[str], behaviour: Callable[[Sealed], None], error: str
) -> None:
    with sealed(good.context(), behaviour) as server:
        words = ["--users", "2", "--requests", "4", "--no-keepalive"]
        step = step_of(url_of(server), *trust, *words)
    assert errors(step) == {error: 4}
    assert step["answers"] == 0


def test_a_body_that_close_notify_ends_is_whole(good: Pair, trust: list[str]) -> None:
    def behave(connection: Sealed) -> None:
        connection.request()
        connection.send(b"HTTP/1.1 200 OK\r\n\r\nhello")
        connection.end()

    with sealed(good.context(), behave) as server:
        step = step_of(url_of(server), "--users", "2", "--requests", "6", *trust)
    assert (step["answers"], step["body_bytes"], errors(step)) == (6, 30, {})


def test_garbage_after_an_answer_belongs_to_no_request(good: Pair, trust: list[str]) -> None:
    def behave(connection: Sealed) -> None:
        connection.request()
        connection.peer.send(connection.seal(ok()) + b"garbage that is no record")
        connection.peer.wait_for_close()

    with sealed(good.context(), behave) as server:
        step = step_of(url_of(server), "--users", "1", "--requests", "5", *trust)
    assert (step["answers"], errors(step)) == (5, {"tls_broken": 5})
    assert step["connects"] == 5


def test_a_request_is_sent_again_after_the_server_closes_an_idle_connection(
    good: Pair, trust: list[str]
) -> None:
    def behave(connection: Sealed) -> None:
        connection.request()
        connection.send(ok())
        connection.end()

    with sealed(good.context(), behave) as server:
        words = ["--users", "1", "--requests", "5", "--think", "5ms"]
        step = step_of(url_of(server), *trust, *words)
    assert (step["answers"], step["connects"], errors(step)) == (5, 5, {})


def test_the_server_gets_close_notify_from_a_client_that_ends(good: Pair, trust: list[str]) -> None:
    ends: list[bytes] = []

    def behave(connection: Sealed) -> None:
        connection.request()
        connection.send(ok())
        ends.append(connection.rest())

    with sealed(good.context(), behave) as server:
        words = ["--users", "1", "--requests", "3", "--no-keepalive"]
        step = step_of(url_of(server), *trust, *words)
        wait_until(lambda: len(ends) == 3, "three ends")
    assert step["answers"] == 3
    assert ends == [b""] * 3  # an end without close_notify is an error


# ---- system calls ----


def test_a_request_on_a_warm_connection_costs_one_send_and_one_recv(
    nginx: Start, trust: list[str], tmp_path: Path
) -> None:
    if not program_of("strace"):
        pytest.skip("strace is not installed")
    server = nginx()
    out = tmp_path / "strace"
    words = ["--users", "1", "--requests", "200"]
    subprocess.run(
        [
            *("strace", "-f", "-qq", "-o", str(out), "-e", "trace=sendto,sendmsg,recvfrom,recvmsg"),
            *(str(WEIR), "load", f"{server.url}/hello.txt", *trust, *words),
        ],
        stdout=subprocess.DEVNULL,
        timeout=LIMIT_S,
        check=False,
    )
    lines = out.read_text().splitlines()
    sends = sum("send" in line for line in lines)
    receives = sum("recv" in line for line in lines)
    # The probe and the handshake need some more, and so does the end.
    assert 200 <= sends <= 200 + 5
    assert 200 <= receives <= 200 + 12


# ---- reports ----


def test_every_form_of_the_report_has_the_handshakes(nginx: Start, trust: list[str]) -> None:
    server = nginx()
    words = ["--users", "2", "--requests", "50", "--no-keepalive"]
    url = f"{server.url}/hello.txt"
    text = weir_load(url, *trust, *words).stdout
    assert f"https://127.0.0.1:{server.url.rsplit(':', 1)[1]}/hello.txt" in text
    assert "TLS: sessions are resumed, certificates verified" in text
    assert "2 full, 48 resumed, 0 failed" in text
    assert "TLSv1.3" in text
    assert max(map(len, text.splitlines())) <= 80
    (row,) = csv.DictReader(io.StringIO(weir_load(url, *trust, *words, "--csv").stdout))
    assert (row["handshakes_full"], row["handshakes_resumed"]) == ("2", "48")
    assert float(row["handshake_p50_ns"]) > 0


def test_the_document_describes_every_member(good: Pair, trust: list[str]) -> None:
    document = (TOP / "docs/load-json.md").read_text()
    with sealed(good.context(), answers) as server:
        result = result_of(url_of(server), "--requests", "300", *trust)
    (step,) = result["steps"]
    for name in {*result["plan"], *result["plan"]["targets"][0]}:
        assert f"`{name}`" in document
    for name in {*step["tls"], *step["tls"]["agreed"][0]}:
        assert f"`{name}`" in document


def test_a_result_without_tls_has_none(site: Path, tmp_path: Path) -> None:
    if not program_of("nginx"):
        pytest.skip("nginx is not installed")
    with peer("nginx", site, tmp_path) as server:
        result = result_of(f"{server.url}/hello.txt", "--requests", "5")
    assert result["plan"]["tls"] == "none"
    assert result["steps"][0]["tls"] is None


def test_parts_of_a_load_are_merged_with_their_handshakes(
    nginx: Start, trust: list[str], tmp_path: Path
) -> None:
    server = nginx()
    words = ["--users", "4", "--requests", "80", "--no-keepalive", "--json"]
    files = []
    for shard in ("0/2", "1/2"):
        done = weir_load(f"{server.url}/hello.txt", *trust, *words, "--shard", shard)
        files.append(tmp_path / f"{shard[0]}.json")
        files[-1].write_text(done.stdout)
    merged = json.loads(weir_load("merge", *files, "--json").stdout)
    (step,) = merged["steps"]
    tls = step["tls"]
    assert (tls["handshakes_full"], tls["handshakes_resumed"]) == (4, 76)
    assert tls["handshake"]["count"] == 80
    assert [one["answers"] for one in tls["agreed"]] == [80]
    text = weir_load("merge", *files).stdout
    assert "https://" in text
    assert "4 full, 76 resumed" in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["https://localhost/", "--cacert", "/nonexistent"], "No such file"),
        (["https://localhost/", "--cacert", "/dev/null"], "no certificate in PEM form"),
        (["https://localhost/", "--cacert", "x", "--insecure"], "choose one"),
        (["https://localhost/", "--tls", "half"], "neither resume nor full"),
        (["http://localhost/", "--insecure"], "go with https://"),
        (["http://localhost/", "--tls", "full"], "go with https://"),
    ],
)
def test_each_mistake_is_reported_in_one_line(words: list[str], said: str) -> None:
    done = weir_load(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
