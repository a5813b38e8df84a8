# SPDX-License-Identifier: MIT
"""Makes certificates for tests with the program openssl, and connects with them."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import shutil
import socket
import ssl
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.wire import Connection
from tests.waiting import LIMIT_S

HERE = ("localhost", "IP:127.0.0.1")
VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]
EC = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")
RSA = ("-newkey", "rsa:2048")

# The settings of `openssl ca`, which alone sets the dates of a certificate.
ISSUING = """
[ca]
default_ca = own
[own]
new_certs_dir = {folder}
database = {folder}/index
serial = {folder}/serial
default_md = sha256
policy = any
[any]
commonName = supplied
"""


@dataclass(frozen=True)
class Pair:
    """The files of a certificate and its key."""

    certificate: Path
    key: Path

    def settings(self) -> str:
        """The lines of a site in weir.conf."""
        return f"tls-certificate = {self.certificate}\ntls-key = {self.key}\n"

    def flags(self) -> list[str]:
        return ["--tls-certificate", str(self.certificate), "--tls-key", str(self.key)]

    def context(self) -> ssl.SSLContext:
        """The side of a server that has this pair."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.key)
        return context

    def key_digest(self) -> str:
        """The SHA-256 of the public key in base64, as browsers pin keys."""
        command = ("openssl", "pkey", "-in", str(self.key), "-pubout", "-outform", "DER")
        done = subprocess.run(command, capture_output=True, timeout=LIMIT_S, check=True)
        return base64.b64encode(hashlib.sha256(done.stdout).digest()).decode()

    def replace_with(self, other: Pair) -> None:
        """Renames the files of another pair over these, as programs that renew do."""
        other.key.rename(self.key)
        other.certificate.rename(self.certificate)


def openssl(*words: str | Path) -> None:
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed")
    subprocess.run(["openssl", *words], capture_output=True, timeout=LIMIT_S, check=True)


def issue(request: Path, pair: Pair, issuer: Pair, names: str, dates: tuple[str, str]) -> None:
    """Signs a request for these names. `dates` are the start and the end, as YYYYMMDDHHMMSSZ."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "index").touch()
        (folder / "serial").write_text("01\n")
        (folder / "conf").write_text(ISSUING.format(folder=folder))
        (folder / "extensions").write_text(f"{names}\n")
        openssl(
            *("ca", "-batch", "-notext", "-config", folder / "conf"),
            *("-extfile", folder / "extensions", "-startdate", dates[0], "-enddate", dates[1]),
            *("-cert", issuer.certificate, "-keyfile", issuer.key),
            *("-in", request, "-out", pair.certificate),
        )


def make(
    folder: Path,
    name: str,
    *hosts: str,
    days: int = 90,
    key: tuple[str, ...] = EC,
    issuer: Pair | None = None,
    dates: tuple[str, str] | None = None,
) -> Pair:
    """Makes NAME.pem and NAME.key for these hosts: names, or addresses written IP:ADDRESS. Without
    an issuer the certificate is self-signed. `dates` need an issuer, and replace `days`."""
    pair = Pair(folder / f"{name}.pem", folder / f"{name}.key")
    alternatives = ",".join(host if ":" in host else f"DNS:{host}" for host in hosts)
    names = f"subjectAltName={alternatives}"
    made: tuple[str | Path, ...] = (
        "req",
        *key,
        "-nodes",
        "-subj",
        f"/CN={name}",
        "-keyout",
        pair.key,
    )
    if dates:
        assert issuer
        request = folder / f"{name}.csr"
        openssl(*made, "-out", request)
        issue(request, pair, issuer, names, dates)
        return pair
    signed: tuple[str | Path, ...] = ()
    if issuer:
        signed = ("-CA", issuer.certificate, "-CAkey", issuer.key)
        signed += ("-addext", "basicConstraints=critical,CA:FALSE")
    openssl(*made, "-x509", "-days", str(days), "-addext", names, *signed, "-out", pair.certificate)
    return pair


def trusting(pair: Pair, version: ssl.TLSVersion | None = None) -> ssl.SSLContext:
    """The side of a client that trusts this certificate."""
    context = ssl.create_default_context(cafile=str(pair.certificate))
    if version:
        context.minimum_version = context.maximum_version = version
    return context


@contextlib.contextmanager
def secure(
    address: tuple[str, int],
    context: ssl.SSLContext,
    *,
    session: ssl.SSLSession | None = None,
    receive_buffer: int | None = None,
) -> Iterator[Connection]:
    """A connection over TLS. A close without close_notify is an error."""
    plain = Connection.to(address, receive_buffer=receive_buffer)
    with context.wrap_socket(
        plain.socket, server_hostname="localhost", session=session, suppress_ragged_eofs=False
    ) as wrapped:
        yield Connection(wrapped)


class Client:
    """A client that trusts one certificate, and offers the session of its first connection again.
    It uses TLS 1.2, because there the ticket comes with the handshake."""

    def __init__(self, pair: Pair, address: tuple[str, int], host: str = "localhost") -> None:
        self.context = trusting(pair, ssl.TLSVersion.TLSv1_2)
        self.address, self.host = address, host
        self.session: ssl.SSLSession | None = None

    def resumes(self) -> bool:
        """Makes a connection with one request. Whether the session was resumed."""
        plain = socket.create_connection(self.address, LIMIT_S)
        with self.context.wrap_socket(
            plain, server_hostname=self.host, session=self.session
        ) as wrapped:
            assert Connection(wrapped).get("/hello.txt", self.host).status == 200
            self.session = self.session or wrapped.session
            return wrapped.session_reused is True
