# SPDX-License-Identifier: MIT
"""TLS sessions of one host that a client offers to another host of the same server.

A session is resumed at its own site alone. So nothing that differs between two sites is skipped:
the certificate, the lowest version of TLS, the password, and which hosts are answered."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.e2e import certificates
from tests.e2e.conftest import ServerFactory
from tests.e2e.running import Server
from tests.e2e.test_auth import ALICE
from tests.e2e.test_auth import field as password_of
from tests.e2e.wire import Connection, connect

# `open` and `closed` share a certificate, so that a connection for one may have requests for both.
HOSTS = ("open.test", "closed.test", "strict.test")
HSTS = "max-age=31536000"
CHALLENGE = 'Basic realm="closed", charset="UTF-8"'


class Seen(NamedTuple):
    """What an answer tells about its site."""

    status: int
    body: bytes
    hsts: str | None
    challenge: str | None


WANTED = {
    "open.test": Seen(200, b"open", None, None),
    "closed.test": Seen(401, b"", HSTS, CHALLENGE),
    "strict.test": Seen(200, b"strict", HSTS, None),
}


@dataclass
class Visitor:
    """A client with one context, because a session belongs to a context. It checks certificates
    itself, since a connection may have no name."""

    running: Server
    context: ssl.SSLContext
    certificates: dict[str, bytes]
    sessions: dict[str, ssl.SSLSession | None] = field(default_factory=dict)

    @contextlib.contextmanager
    def connected(
        self, host: str | None, session: ssl.SSLSession | None = None
    ) -> Iterator[tuple[Connection, ssl.SSLSocket]]:
        with (
            connect(self.running.address) as plain,
            self.context.wrap_socket(
                plain.socket, server_hostname=host, session=session
            ) as wrapped,
        ):
            yield Connection(wrapped), wrapped

    def accepts(self, host: str) -> bool:
        return self.context.maximum_version != ssl.TLSVersion.TLSv1_2 or host != "strict.test"

    def expects_answers_of(self, host: str, connection: Connection, wrapped: ssl.SSLSocket) -> None:
        """Asserts that the connection is one of this host, with its certificate and answers."""
        assert wrapped.getpeercert(True) == self.certificates[host]
        for other in HOSTS:
            answer = connection.get("/page.txt", other)
            if self.certificates[other] != self.certificates[host]:
                assert answer.status == 421, (host, other)
                continue
            body = answer.body if answer.status == 200 else b""
            hsts, challenge = (
                answer.get(name) for name in ("Strict-Transport-Security", "WWW-Authenticate")
            )
            assert Seen(answer.status, body, hsts, challenge) == WANTED[other], (host, other)

    def begin_sessions(self) -> None:
        """A session of each host. That of the closed one begins with the right password."""
        for host in filter(self.accepts, HOSTS):
            with self.connected(host) as (connection, wrapped):
                answer = connection.get("/page.txt", host, password_of("alice"))
                assert (answer.status, answer.body) == (200, host.split(".")[0].encode())
                assert not wrapped.session_reused
                self.sessions[host] = wrapped.session


@pytest.fixture(params=certificates.VERSIONS, ids=lambda version: version.name)
def visitor(
    request: pytest.FixtureRequest, server: ServerFactory, tmp_path: Path, users: Path
) -> Visitor:
    both = certificates.make(tmp_path, "both", "open.test", "closed.test")
    strict = certificates.make(tmp_path, "strict", "strict.test")
    text = "[server]\nlisten = https://127.0.0.1:0\n"
    for name, pair, more in (
        ("open", both, ""),
        ("closed", both, f"auth = {users}\nauth-realm = closed\nhsts = 365d\n"),
        ("strict", strict, "tls-min = 1.3\nhsts = 365d\n"),
    ):
        root = tmp_path / name
        root.mkdir()
        (root / "page.txt").write_text(name)
        text += f"[site {name}]\nroot = {root}\nhost = {name}.test\n{pair.settings()}{more}"
    conf = tmp_path / "weir.conf"
    conf.write_text(text)
    context = certificates.trusting(both, request.param)
    context.load_verify_locations(strict.certificate)
    context.check_hostname = False
    shared, own = (
        ssl.PEM_cert_to_DER_cert(each.certificate.read_text()) for each in (both, strict)
    )
    served = {"open.test": shared, "closed.test": shared, "strict.test": own}
    return Visitor(server("-c", str(conf), folder=None, listen=()), context, served)


@pytest.fixture
def users(tmp_path: Path) -> Path:
    path = tmp_path / "users"
    path.write_text(ALICE)
    path.chmod(0o640)
    return path


def test_a_session_is_resumed_at_its_own_host(visitor: Visitor) -> None:
    visitor.begin_sessions()
    for host, session in visitor.sessions.items():
        with visitor.connected(host, session) as (connection, wrapped):
            assert wrapped.session_reused
            visitor.expects_answers_of(host, connection, wrapped)


def test_a_session_of_another_host_skips_nothing(visitor: Visitor) -> None:
    visitor.begin_sessions()
    pairs = [(a, b) for a in visitor.sessions for b in HOSTS if a != b]
    for of, host in pairs:
        session = visitor.sessions[of]
        if not visitor.accepts(host):
            with pytest.raises(ssl.SSLError), visitor.connected(host, session):
                pass
            continue
        with visitor.connected(host, session) as (connection, wrapped):
            assert not wrapped.session_reused, (of, host)
            visitor.expects_answers_of(host, connection, wrapped)


def test_a_session_without_a_name_is_one_of_the_first_site(visitor: Visitor) -> None:
    visitor.begin_sessions()
    for host, session in visitor.sessions.items():
        with visitor.connected(None, session) as (connection, wrapped):
            assert not wrapped.session_reused or host == "open.test"
            visitor.expects_answers_of("open.test", connection, wrapped)
