# SPDX-License-Identifier: MIT
"""Certificates from an ACME issuer. The steps of docs/https.md are run as they are written there,
except for the folders and for the address of the issuer."""

from __future__ import annotations

import re
import shlex
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.command import run
from tests.e2e.acme import Issuer, issuer, need
from tests.e2e.conftest import Port, ServerFactory
from tests.e2e.running import RUNTIME, TOP, WEIR, Server
from tests.e2e.wire import Connection
from tests.waiting import wait_until

HOST = "shop.example.org"
OURS = {"RUNTIME_DIRECTORY": str(RUNTIME)}  # so that `weir reload` finds the server
BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
ONE_MODEL = pytest.mark.parametrize("model", ["percore"])  # the master is the same in every model


def steps_for(client: str) -> list[str]:
    """The commands of docs/https.md for this client."""
    text = (TOP / "docs/https.md").read_text()
    found = re.search(rf"^\*\*{client}\*\*\n\n```sh\n(.*?)```", text, re.MULTILINE | re.DOTALL)
    assert found, client
    return found[1].splitlines()


class Shop:
    """A site that is served over http, and later over https, too."""

    def __init__(self, server: ServerFactory, site: Path, folder: Path, port: Port) -> None:
        self.site, self.folder = site, folder
        self.http, self.https = port(), port()
        self.configuration = folder / "weir.conf"
        self.configure(f"http://127.0.0.1:{self.http}", "")
        self.running: Server = server(
            *("--config", str(self.configuration), "--drain-idle", "1m"), folder=None, listen=()
        )

    def configure(self, listen: str, settings: str) -> None:
        self.configuration.write_text(
            f"[server]\nlisten = {listen}\n"
            f"[site shop]\nhost = {HOST}\nroot = {self.site}\n{settings}"
        )

    def begin_https(self, certificate: Path, key: Path) -> None:
        """As docs/https.md says after the first certificate."""
        self.configure(
            f"https://127.0.0.1:{self.https}, http://127.0.0.1:{self.http}",
            f"tls-certificate = {certificate}\ntls-key = {key}\nhttps-redirect = on\n",
        )
        run([str(WEIR), "reload", str(self.running.popen.pid)], **OURS)

    def get(self) -> int:
        """The status of a plain request."""
        with Connection.to(("127.0.0.1", self.http)).socket as plain:
            return Connection(plain).get("/hello.txt", HOST).status

    def get_securely(self, root: Path) -> str:
        """The serial number of the certificate with which a new connection is answered."""
        trust = ssl.create_default_context(cafile=str(root))
        plain = Connection.to(("127.0.0.1", self.https)).socket
        with trust.wrap_socket(plain, server_hostname=HOST) as secure:
            assert Connection(secure).get("/hello.txt", HOST).status == 200
            certificate = secure.getpeercert()
        assert certificate
        return str(certificate["serialNumber"])


@contextmanager
def asking(ask: Callable[[], object]) -> Iterator[None]:
    """Meanwhile, a client asks again and again. Each answer must be right."""
    ended, failures, answers = threading.Event(), [], [0]

    def keep_asking() -> None:
        while not ended.is_set():
            try:
                ask()
                answers[0] += 1
            except (OSError, AssertionError) as error:
                failures.append(error)
                return
            ended.wait(0.01)

    thread = threading.Thread(target=keep_asking)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    assert not failures, failures
    assert answers[0] > 0


def follow(
    shop: Shop,
    issued_by: Issuer,
    first: Callable[[], None],
    renew: Callable[[], None],
    certificate: Path,
    key: Path,
) -> None:
    """A first certificate, https, and a renewal. The server is never restarted."""

    def plainly() -> None:
        assert shop.get() == 200

    with asking(plainly):
        first()
    shop.begin_https(certificate, key)
    wait_until(lambda: shop.get() == 308, "the redirect to https")
    before = shop.get_securely(issued_by.root)
    with asking(lambda: shop.get_securely(issued_by.root)):
        renew()
        wait_until(
            lambda: shop.get_securely(issued_by.root) != before,
            lambda: f"the next certificate: {shop.running.messages()}",
        )
    assert not list((shop.site / ".well-known/acme-challenge").glob("*"))


@ONE_MODEL
def test_uacme_gets_and_renews_a_certificate(
    server: ServerFactory, site: Path, tmp_path: Path, port: Port
) -> None:
    need("uacme", "unshare")
    # uacme trusts the authorities of the system only, so it gets a file of authorities of its own.
    alone = ["unshare", "--user", "--map-root-user", "--mount"]
    if (
        not Path(BUNDLE).exists()
        or subprocess.run([*alone, "true"], capture_output=True, check=False).returncode != 0
    ):
        pytest.skip(f"a test needs {BUNDLE} and user namespaces to have uacme trust Pebble")
    *before, new, issue = steps_for("uacme")
    state = tmp_path / "uacme"
    environment = {"UACME_CHALLENGE_PATH": f"{site}/.well-known/acme-challenge"}
    assert before == [
        "mkdir -p /srv/shop/.well-known/acme-challenge",
        "export UACME_CHALLENGE_PATH=/srv/shop/.well-known/acme-challenge",
    ]
    (site / ".well-known/acme-challenge").mkdir(parents=True)
    shop = Shop(server, site, tmp_path, port)
    with issuer(tmp_path / "pebble", port, shop.http) as issued_by:
        trusting = f"mount --bind {issued_by.own.certificate} {BUNDLE} && exec"
        options = f"uacme --yes --acme-url {issued_by.directory} --confdir {state}"

        def call(step: str) -> None:
            assert step.startswith("uacme ")
            command = f"{trusting} {step.replace('uacme', options, 1)}"
            run([*alone, "sh", "-c", command], **OURS, **environment)

        def first() -> None:
            call(new)
            call(issue)

        certificate, key = state / HOST / "cert.pem", state / "private" / HOST / "key.pem"
        follow(shop, issued_by, first, lambda: call(issue), certificate, key)


@ONE_MODEL
def test_certbot_gets_and_renews_a_certificate(
    server: ServerFactory, site: Path, tmp_path: Path, port: Port
) -> None:
    need("certbot")
    (step,) = steps_for("certbot")
    state = tmp_path / "certbot"
    shop = Shop(server, site, tmp_path, port)
    with issuer(tmp_path / "pebble", port, shop.http) as issued_by:

        def call(words: list[str]) -> None:
            assert words[0] == "certbot"
            words += ["--server", issued_by.directory, "--non-interactive"]
            for kind in ("config", "work", "logs"):
                words += [f"--{kind}-dir", str(state / kind)]
            run(words, REQUESTS_CA_BUNDLE=str(issued_by.own.certificate), **OURS)

        def first() -> None:
            words = shlex.split(step.replace("/srv/shop", str(site)))
            call([*words, "--agree-tos", "--email", "admin@example.org"])

        def renew() -> None:  # as the timer of the package does
            call(["certbot", "renew", "--no-random-sleep-on-renew"])

        live = state / "config/live" / HOST
        follow(shop, issued_by, first, renew, live / "fullchain.pem", live / "privkey.pem")
