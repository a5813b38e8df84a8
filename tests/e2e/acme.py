# SPDX-License-Identifier: MIT
"""Pebble, the issuer of certificates for tests of ACME clients, with a name server. Both answer on
loopback only. The name server says that every host is 127.0.0.1."""

from __future__ import annotations

import json
import shutil
import socket
import ssl
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from tests.e2e import certificates
from tests.e2e.certificates import Pair
from tests.waiting import LIMIT_S, wait_until

# Clients renew from 30 days before the end, and weir warns from 14 days before it.
VALID_DAYS = 20


@dataclass(frozen=True)
class Issuer:
    directory: str  # the URL at which an ACME client begins
    own: Pair  # of Pebble's own https address
    root: Path  # the certificate that its certificates lead to


def need(*programs: str) -> None:
    for program in programs:
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed; scripts/bootstrap test installs it")


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), LIMIT_S).close()
    except ConnectionRefusedError:
        return False
    return True


@contextmanager
def _running(
    log: Path, *words: str | Path, **environment: str
) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as output:
        process = subprocess.Popen(
            words, stdout=output, stderr=subprocess.STDOUT, env={"PATH": "/usr/bin", **environment}
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(LIMIT_S)


@contextmanager
def issuer(folder: Path, port: Callable[[], int], http_port: int) -> Iterator[Issuer]:
    """Runs Pebble. It fetches its challenges from `http_port`, which stands for port 80."""
    need("pebble", "pebble-challtestsrv", "openssl")
    folder.mkdir()
    own = certificates.make(folder, "pebble", "localhost", "IP:127.0.0.1")
    acme_port, management_port, names_port, control_port = port(), port(), port(), port()
    configuration = {
        "listenAddress": f"127.0.0.1:{acme_port}",
        "managementListenAddress": f"127.0.0.1:{management_port}",
        "certificate": str(own.certificate),
        "privateKey": str(own.key),
        "httpPort": http_port,
        "tlsPort": http_port,
        "certificateValidityPeriod": VALID_DAYS * 86400,
    }
    (folder / "pebble.json").write_text(json.dumps({"pebble": configuration}))
    names = ["pebble-challtestsrv", "-dns01", f"127.0.0.1:{names_port}", "-defaultIPv6", ""]
    names += ["-management", f"127.0.0.1:{control_port}", "-http01", "", "-https01", ""]
    pebble = ["pebble", "-config", str(folder / "pebble.json")]
    pebble += ["-dnsserver", f"127.0.0.1:{names_port}"]
    with ExitStack() as stack:
        stack.enter_context(_running(folder / "names.log", *names, "-tlsalpn01", ""))
        # Pebble refuses one nonce of twenty unless it is told not to. Not every client tries again.
        settings = {"PEBBLE_WFE_NONCEREJECT": "0", "PEBBLE_VA_NOSLEEP": "1"}
        settings["PEBBLE_AUTHZREUSE"] = "0"
        stack.enter_context(_running(folder / "log", *pebble, **settings))
        for each in (control_port, names_port, acme_port, management_port):
            wait_until(partial(_answers, each), lambda: (folder / "log").read_text())
        trust = ssl.create_default_context(cafile=str(own.certificate))
        url = f"https://localhost:{management_port}/roots/0"
        with urllib.request.urlopen(url, timeout=LIMIT_S, context=trust) as answer:
            (folder / "root.pem").write_bytes(answer.read())
        directory = f"https://localhost:{acme_port}/dir"
        yield Issuer(directory, own, folder / "root.pem")
