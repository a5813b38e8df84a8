# SPDX-License-Identifier: MIT
"""What bench/handshakes.py reads from real handshakes, and which loads it refuses."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bench import certificate, handshakes
from bench.certificate import GROUP, PROTOCOL, SUITE, Identity
from bench.handshakes import Hello
from bench.process import BenchError
from bench.scenarios import FULL, RESUMED, Scenario

# A client connects once for each word: `new`, or `again` with the session of the last connection.
CLIENT = """
import socket, ssl, sys
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.check_hostname = False
context.verify_mode = ssl.CERT_NONE
session = None
socket.create_connection(("127.0.0.1", int(sys.argv[1]))).close()
for word in sys.argv[2:]:
    plain = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    with context.wrap_socket(plain, session=session if word == "again" else None) as connection:
        connection.sendall(b"x")
        assert connection.recv(1) == b"x"
        session = connection.session
"""
SERVER = """
import socket, ssl, sys
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
with socket.create_server(("127.0.0.1", 0)) as listener:
    print(listener.getsockname()[1], flush=True)
    while True:
        plain, _ = listener.accept()
        try:
            with context.wrap_socket(plain, server_side=True) as connection:
                connection.sendall(connection.recv(1))
        except (ssl.SSLError, OSError):
            pass
"""


@pytest.fixture(scope="module")
def identity(tmp_path_factory: pytest.TempPathFactory) -> Identity:
    if shutil.which("openssl") is None:
        pytest.skip("the openssl command makes the certificate")
    return certificate.make(tmp_path_factory.mktemp("run") / "tls")


def watch(identity: Identity, folder: Path, settings: Path, *words: str) -> list[Hello]:
    """The handshakes of a client with these settings of OpenSSL."""
    argv = [sys.executable, "-c", SERVER, str(identity.certificate), str(identity.key)]
    server = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert server.stdout
    try:
        return handshakes.observe(
            int(server.stdout.readline()),
            lambda port: [sys.executable, "-c", CLIENT, str(port), *words],
            env={**os.environ, "OPENSSL_CONF": str(settings)},
            cpu=min(os.sched_getaffinity(0)),
            log=folder / "client.log",
            within_s=60,
        )
    finally:
        server.kill()
        server.wait()
        server.stdout.close()


def load(handshake: str, connections: int) -> Scenario:
    return Scenario(name="any", what="any", handshake=handshake, connections=connections)


def test_tells_full_and_resumed_handshakes_apart(identity: Identity, tmp_path: Path) -> None:
    words = ("new", "again", "again", "new")
    seen = watch(identity, tmp_path, identity.client_settings, *words)
    assert [hello.is_resumed for hello in seen] == [word == "again" for word in words]
    assert {(h.version, h.suite, h.group) for h in seen} == {(PROTOCOL, SUITE, GROUP)}
    counted = handshakes.check(seen, load(RESUMED, connections=2))
    assert (counted.count, counted.resumed, counted.resumable) == (4, 2, 2)
    assert counted.are_resumed


def test_refuses_another_protocol(identity: Identity, tmp_path: Path) -> None:
    settings = tmp_path / "old.cnf"
    settings.write_text(f"{certificate.SETTINGS}MaxProtocol = TLSv1.2\n")
    seen = watch(identity, tmp_path, settings, "new")
    assert [hello.version for hello in seen] == ["TLSv1.2"]
    with pytest.raises(BenchError, match=r"not TLSv1\.3"):
        handshakes.check(seen, load("", connections=1))


def test_refuses_another_cipher_suite_and_group(identity: Identity, tmp_path: Path) -> None:
    settings = tmp_path / "other.cnf"
    other = "Ciphersuites = TLS_AES_256_GCM_SHA384\nGroups = P-256\n"
    settings.write_text(certificate.SETTINGS + other)
    seen = watch(identity, tmp_path, settings, "new")
    assert [(h.suite, h.group) for h in seen] == [("TLS_AES_256_GCM_SHA384", "P-256")]
    with pytest.raises(BenchError, match="TLS_AES_256_GCM_SHA384"):
        handshakes.check(seen, load("", connections=1))


HELLO = Hello(version=PROTOCOL, suite=SUITE, group=GROUP, is_resumed=False)
AGAIN = Hello(version=PROTOCOL, suite=SUITE, group=GROUP, is_resumed=True)


def test_refuses_resumption_in_a_load_of_full_handshakes() -> None:
    assert handshakes.check([HELLO, HELLO], load(FULL, connections=1)).resumed == 0
    with pytest.raises(BenchError, match="1 of 2 handshakes resume"):
        handshakes.check([HELLO, AGAIN], load(FULL, connections=1))


def test_notices_a_server_that_resumes_only_every_second_time() -> None:
    seen = [HELLO] + 50 * [AGAIN, HELLO]
    assert not handshakes.check(seen, load(RESUMED, connections=1)).are_resumed
    with pytest.raises(BenchError, match="none of 2"):
        handshakes.check([HELLO, HELLO], load(RESUMED, connections=1))


def test_waits_for_the_whole_server_hello_and_refuses_an_alert() -> None:
    assert handshakes.server_hello(b"\x16\x03\x03\x00\x7a\x02") is None
    with pytest.raises(BenchError, match="15030300020228"):
        handshakes.server_hello(bytes.fromhex("15030300020228"))
