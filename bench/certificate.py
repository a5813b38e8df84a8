# SPDX-License-Identifier: MIT
"""The certificate of a run, and the settings that hold both ends to one kind of TLS.

The certificate is self-signed, with an ECDSA key on P-256, and lives as long as the run. OpenSSL
reads the settings of a program that has none of its own from the file named by OPENSSL_CONF.
"""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bench.process import BenchError

PROTOCOL = "TLSv1.3"
SUITE = "TLS_AES_128_GCM_SHA256"
GROUP = "X25519"
AGREED = f"{PROTOCOL}, {SUITE}, {GROUP}, ECDSA P-256 certificate"
# In a server's order. The clients offer only the first one.
SUITES = (SUITE, "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")

SETTINGS = """\
openssl_conf = start
[start]
ssl_conf = libssl
[libssl]
system_default = defaults
[defaults]
"""
CLIENT = f"""\
MinProtocol = {PROTOCOL}
MaxProtocol = {PROTOCOL}
Ciphersuites = {SUITE}
Groups = {GROUP}
"""
SERVER = f"""\
MinProtocol = TLSv1.2
Ciphersuites = {":".join(SUITES)}
Groups = {GROUP}:P-256
"""


@dataclass(frozen=True, kw_only=True)
class Identity:
    """What a server needs for TLS, and how its clients are limited."""

    certificate: Path
    key: Path
    client_settings: Path  # for OPENSSL_CONF
    server_settings: Path


def make(folder: Path) -> Identity:
    """Makes a key and its certificate in a new folder.

    Raises:
        BenchError: the openssl command is missing or fails.
    """
    folder.mkdir()
    identity = Identity(
        certificate=folder / "certificate.pem",
        key=folder / "key.pem",
        client_settings=folder / "client.cnf",
        server_settings=folder / "server.cnf",
    )
    identity.client_settings.write_text(SETTINGS + CLIENT)
    identity.server_settings.write_text(SETTINGS + SERVER)
    if shutil.which("openssl") is None:
        raise BenchError("the openssl command is missing: apt-get install openssl")
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -sha256 -days 2"
    argv = [*command.split(), "-subj", "/CN=localhost"]
    argv += ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    argv += ["-keyout", str(identity.key), "-out", str(identity.certificate)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f"openssl made no certificate: {done.stderr.strip()}")
    return identity
