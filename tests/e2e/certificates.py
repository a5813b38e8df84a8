# SPDX-License-Identifier: MIT
"""Makes certificates for tests with the program openssl, and connects with them."""

from __future__ import annotations

import socket
import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.wire import Connection
from tests.waiting import LIMIT_S

EC = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")
RSA = ("-newkey", "rsa:2048")


@dataclass(frozen=True)
class Pair:
    """The files of a self-signed certificate and its key."""

    certificate: Path
    key: Path

    def settings(self) -> str:
        """The lines of a site in weir.conf."""
        return f"tls-certificate = {self.certificate}\ntls-key = {self.key}\n"

    def flags(self) -> list[str]:
        return ["--tls-certificate", str(self.certificate), "--tls-key", str(self.key)]

    def replace_with(self, other: Pair) -> None:
        """Renames the files of another pair over these, as programs that renew do."""
        other.key.rename(self.key)
        other.certificate.rename(self.certificate)


def make(
    folder: Path,
    name: str,
    *hosts: str,
    days: int = 90,
    key: tuple[str, ...] = EC,
    issuer: Pair | None = None,
) -> Pair:
    """Makes NAME.pem and NAME.key for these hosts: names, or addresses written IP:ADDRESS. Without
    an issuer the certificate is self-signed."""
    pair = Pair(folder / f"{name}.pem", folder / f"{name}.key")
    alternatives = ",".join(host if ":" in host else f"DNS:{host}" for host in hosts)
    command = ["openssl", "req", "-x509", *key, "-nodes", "-days", str(days)]
    command += ["-subj", f"/CN={name}", "-addext", f"subjectAltName={alternatives}"]
    command += ["-keyout", str(pair.key), "-out", str(pair.certificate)]
    if issuer:
        command += ["-CA", str(issuer.certificate), "-CAkey", str(issuer.key)]
        command += ["-addext", "basicConstraints=critical,CA:FALSE"]
    subprocess.run(command, capture_output=True, check=True)
    return pair


class Client:
    """A client that trusts one certificate, and offers the session of its first connection again.
    It uses TLS 1.2, because there the ticket comes with the handshake."""

    def __init__(self, pair: Pair, address: tuple[str, int], host: str = "localhost") -> None:
        self.context = ssl.create_default_context(cafile=str(pair.certificate))
        self.context.maximum_version = ssl.TLSVersion.TLSv1_2
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
