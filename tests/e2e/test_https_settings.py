# SPDX-License-Identifier: MIT
"""The settings of an operator for https: addresses, certificates, redirects, and their errors."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.e2e import certificates
from tests.e2e.conftest import Port, ServerFactory
from tests.e2e.running import RUNTIME, STATISTICS, WEIR, Server
from tests.e2e.sockets import tcp_sockets
from tests.e2e.wire import Connection, connect
from tests.waiting import LIMIT_S, wait_until

HTTPS = ("https://127.0.0.1:0",)

# A hash of a password by SHA-256 with few rounds.
CHEAP_HASH = "$5$rounds=1000$weirtest$SeIwQP.s2vhguhsRY0WfG8VVjmqPANDXQPq6i/eQvmB"

ONE_MODEL = pytest.mark.parametrize("model", ["percore"])  # the master is the same in every model


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(WEIR), *arguments],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
        env={**os.environ, "RUNTIME_DIRECTORY": str(RUNTIME), **environment},
    )


def counters(running: Server) -> dict[str, int]:
    read = run("stats", "--json", str(running.popen.pid))
    numbers = json.loads(read.stdout)
    return {**numbers["counters"], **numbers["gauges"]}


# ---- addresses ----


@ONE_MODEL
def test_the_addresses_are_printed_with_their_scheme(server: ServerFactory, tmp_path: Path) -> None:
    pair = certificates.make(tmp_path, "cert", "localhost")
    running = server(*pair.flags(), listen=(*HTTPS, "http://127.0.0.1:0", "localhost:0"))
    assert [url.partition(":")[0] for url in running.urls[:3]] == ["https", "http", "http"]
    for url in running.urls:
        assert f"weir serves {url}\n" in running.messages()


def listeners(port: int) -> set[str]:
    """The listening sockets of 127.0.0.1:PORT, as Process.sockets() names them."""
    found = {s.link for s in tcp_sockets(port) if s.listens and s.host == "127.0.0.1"}
    assert found
    return found


def speaks_tls(client: certificates.Client) -> bool:
    """An old worker, which has no TLS, may still accept connections."""
    with contextlib.suppress(ssl.SSLError, ConnectionError):
        client.resumes()
        return True
    return False


@ONE_MODEL
def test_a_reload_changes_the_scheme_and_keeps_the_address(
    server: ServerFactory, tmp_path: Path, site: Path, port: Port
) -> None:
    pair = certificates.make(tmp_path, "cert", "localhost")
    conf = tmp_path / "weir.conf"
    free = port()
    body = f"[site a]\nroot = {site}\n{pair.settings()}"
    conf.write_text(f"[server]\nlisten = 127.0.0.1:{free}\n{body}")
    running = server("-c", str(conf), folder=None, listen=())
    listening = listeners(free)
    assert listening <= running.master.sockets()
    conf.write_text(f"[server]\nlisten = https://127.0.0.1:{free}\n{body}")
    assert run("reload", str(running.popen.pid)).returncode == 0
    assert listeners(free) == listening
    assert listening <= running.master.sockets()
    client = certificates.Client(pair, running.address)
    wait_until(lambda: speaks_tls(client), "a worker with TLS")


@ONE_MODEL
def test_a_reload_does_not_exchange_addresses_that_the_kernel_has_picked(
    server: ServerFactory, tmp_path: Path
) -> None:
    pair = certificates.make(tmp_path, "cert", "localhost")
    running = server(*pair.flags(), listen=("127.0.0.1:0", *HTTPS, "127.0.0.1:0"))
    assert run("reload", str(running.popen.pid)).returncode == 0
    for url in (running.urls[0], running.urls[2]):
        with connect(("127.0.0.1", urlsplit(url).port or 0)) as client:
            assert client.get("/hello.txt").status == 200
    secure = certificates.Client(pair, ("127.0.0.1", urlsplit(running.urls[1]).port or 0))
    assert not secure.resumes()


# ---- certificates ----


@pytest.mark.parametrize("addresses", [("https://*:0", "off"), ("127.0.0.1:0", "https://*:0")])
def test_an_address_for_other_machines_needs_a_certificate(
    site: Path, addresses: tuple[str, str]
) -> None:
    words = ("--listen", addresses[0], "--stats-listen", addresses[1])
    done = run("serve", str(site), *words, "--control", "off", WEIR_STATS_PASSWORD=CHEAP_HASH)
    assert done.returncode == 2
    assert "tls-certificate and tls-key" in done.stderr


def test_a_key_of_another_certificate_is_an_error_with_both_names(
    site: Path, tmp_path: Path
) -> None:
    one = certificates.make(tmp_path, "one", "one.example")
    two = certificates.make(tmp_path, "two", "two.example")
    flags = ["--tls-certificate", str(one.certificate), "--tls-key", str(two.key)]
    done = run("serve", str(site), "--listen", HTTPS[0], "--control", "off", *flags)
    assert done.returncode == 1
    assert str(one.certificate) in done.stderr
    assert str(two.key) in done.stderr


@pytest.fixture
def home() -> Iterator[Path]:
    """The home folder of a user without rights, because root has one folder for all servers."""
    folder = Path(tempfile.mkdtemp(prefix="weir-home-"))
    (folder / "site").mkdir()
    if os.geteuid() == 0:
        for path in (folder, folder / "site"):
            shutil.chown(path, "nobody")
    yield folder
    shutil.rmtree(folder)


@ONE_MODEL
def test_localhost_gets_a_certificate_that_is_kept(server: ServerFactory, home: Path) -> None:
    as_nobody = ("setpriv", "--reuid", "nobody", "--clear-groups")
    certificate, fingerprints = "", []
    for _ in range(2):
        running = server(
            folder=home / "site",
            listen=("https://localhost:0",),
            wrapper=as_nobody if os.geteuid() == 0 else (),
            environment={"HOME": str(home), "XDG_STATE_HOME": str(home / "state")},
        )
        line = re.search(r"self-signed certificate: (\S+), SHA-256 (\S+);", running.messages())
        assert line
        certificate = line[1]
        assert f"curl --cacert {certificate}" in running.messages()
        fingerprints.append(line[2])
        running.stop()
    command = f"openssl x509 -in {certificate} -noout -fingerprint -sha256 -ext subjectAltName"
    shown = subprocess.run(command.split(), capture_output=True, text=True, check=True).stdout
    assert fingerprints == [re.findall(r"Fingerprint=(\S+)", shown)[0]] * 2
    assert "DNS:localhost" in shown
    keys = [path for path in (home / "state").rglob("*") if "PRIVATE KEY" in read(path)]
    assert [stat.S_IMODE(path.stat().st_mode) for path in keys] == [0o600]


def read(path: Path) -> str:
    return path.read_text() if path.is_file() else ""


# ---- changes ----


@ONE_MODEL
def test_a_changed_certificate_is_used_and_a_broken_one_is_not(
    server: ServerFactory, tmp_path: Path
) -> None:
    pair = certificates.make(tmp_path, "cert", "localhost", days=90)
    later = certificates.make(tmp_path, "later", "localhost", days=400)
    running = server(*pair.flags(), listen=HTTPS)
    before = counters(running)
    assert before["certificates_end_s"] > 0
    assert before["certificates_stale"] == 0

    whole = pair.key.read_bytes()
    pair.key.write_bytes(whole[:50])
    wait_until(lambda: counters(running)["certificates_stale"] == 1, "the refusal")
    now = counters(running)
    assert now["certificates_refused"] == 1
    assert now["certificates_end_s"] == before["certificates_end_s"]
    assert running.messages().count("The certificates that were read before stay in use") == 1
    verdicts = run("stats", "--json", str(running.popen.pid)).stdout
    assert "certificates-stale" in verdicts

    pair.replace_with(later)
    wait_until(lambda: counters(running)["certificates_stale"] == 0, "the new certificate")
    now = counters(running)
    assert now["certificates_refused"] == 1
    assert now["certificates_end_s"] > before["certificates_end_s"] + 300 * 86400
    assert now["reloads"] == before["reloads"]


@ONE_MODEL
def test_a_reload_with_a_broken_certificate_fails_and_names_it(
    server: ServerFactory, tmp_path: Path
) -> None:
    pair = certificates.make(tmp_path, "cert", "localhost")
    running = server(*pair.flags(), listen=HTTPS)
    pair.certificate.write_text("-----BEGIN CERTIFICATE-----\n")
    done = run("reload", str(running.popen.pid))
    assert done.returncode == 1
    assert str(pair.certificate) in done.stderr


@ONE_MODEL
def test_a_worker_that_dies_is_replaced_without_the_files(
    server: ServerFactory, tmp_path: Path
) -> None:
    pair = certificates.make(tmp_path, "cert", "localhost")
    running = server(*pair.flags(), listen=HTTPS)
    pair.key.unlink()
    dead = running.workers()[0]
    os.kill(dead.pid, signal.SIGKILL)
    wait_until(lambda: any(worker != dead for worker in running.workers()), "another worker")
    wait_until(lambda: "serves in place of" in running.messages(), "its readiness")


# ---- redirects ----


def test_plain_requests_are_redirected_to_the_port_of_https(
    server: ServerFactory, tmp_path: Path
) -> None:
    pair = certificates.make(tmp_path, "cert", "localhost")
    flags = [*pair.flags(), "--https-redirect", "--hsts", "365d"]
    running = server(*flags, listen=("127.0.0.1:0", *HTTPS))
    port = urlsplit(running.urls[1]).port
    with connect(running.address) as client:
        answer = client.get("/hello.txt?a=b", "shop.example:8080")
    assert answer.status == 308
    assert answer.get("Location") == f"https://shop.example:{port}/hello.txt?a=b"
    assert answer.get("Strict-Transport-Security") is None


def test_challenges_of_an_issuer_are_served_without_tls(
    server: ServerFactory, tmp_path: Path, site: Path
) -> None:
    pair = certificates.make(tmp_path, "cert", "localhost")
    folder = site / ".well-known/acme-challenge"
    folder.mkdir(parents=True)
    (folder / "token").write_text("token.thumbprint")
    running = server(*pair.flags(), "--https-redirect", listen=("127.0.0.1:0", *HTTPS))
    with connect(running.address) as client:
        answer = client.get("/.well-known/acme-challenge/token")
    assert (answer.status, answer.body) == (200, b"token.thumbprint")


def test_trace_explains_the_redirect(site: Path, tmp_path: Path) -> None:
    pair = certificates.make(tmp_path, "cert", "localhost")
    flags = [*pair.flags(), "--https-redirect", "--listen", "https://127.0.0.1:8443"]
    done = run("trace", "/hello.txt", str(site), *flags)
    assert "308" in done.stdout
    assert "`https-redirect = on`" in done.stdout


def test_a_live_trace_shows_what_tls_has_agreed_on(
    server: ServerFactory, tmp_path: Path, site: Path
) -> None:
    pair = certificates.make(tmp_path, "cert", "shop.example")
    conf = tmp_path / "weir.conf"
    body = f"[site a]\nroot = {site}\nhost = shop.example\nhsts = 1h\nhttps-redirect = on\n"
    conf.write_text(f"[server]\nlisten = {HTTPS[0]}\n{body}{pair.settings()}")
    running = server("-c", str(conf), folder=None, listen=())
    words = ("trace", "--live", "/hello.txt", "--host", "shop.example:443")
    shown = run(*words, str(running.popen.pid))
    assert shown.returncode == 0, shown.stderr
    assert f"Process {running.popen.pid} at {running.url}/ gives the same answer" in shown.stdout
    assert re.search(r"^Over TLS: TLSv1\.3, TLS_[A-Z0-9_]+, \S+$", shown.stdout, re.M)
    assert "Strict-Transport-Security: max-age=3600" in shown.stdout
    result = json.loads(run(*words, "--json", str(running.popen.pid)).stdout)
    assert (result["status"], result["live"]["same"]) == (200, True)
    assert result["live"]["tls"]["protocol"] == "TLSv1.3"
    wait_until(lambda: counters(running)["requests"] == 2, "both requests")


def test_a_live_trace_prefers_an_address_without_tls(server: ServerFactory, tmp_path: Path) -> None:
    pair = certificates.make(tmp_path, "cert", "localhost")
    running = server(*pair.flags(), listen=(*HTTPS, "127.0.0.1:0"))
    shown = run("trace", "--live", "/hello.txt", "--json", str(running.popen.pid))
    live = json.loads(shown.stdout)["live"]
    assert (live["url"], live["tls"], live["same"]) == (running.urls[1], None, True)


# ---- over TLS ----


def connect_tls(
    running: Server, pair: certificates.Pair, host: str
) -> tuple[Connection, ssl.SSLSocket]:
    """Connects with this server name, and trusts this certificate alone."""
    plain = socket.create_connection(running.address, LIMIT_S)
    wrapped = certificates.trusting(pair).wrap_socket(plain, server_hostname=host)
    return Connection(wrapped), wrapped


@dataclass(frozen=True)
class TwoSites:
    """A configuration with two sites, which have certificates of their own."""

    one: certificates.Pair
    two: certificates.Pair
    conf: Path


@pytest.fixture
def two_sites(tmp_path: Path, site: Path) -> TwoSites:
    one = certificates.make(tmp_path, "one", "one.example", "both.example")
    two = certificates.make(tmp_path, "two", "two.example")
    conf = tmp_path / "weir.conf"
    conf.write_text(
        "[server]\nlisten = https://127.0.0.1:0\n"
        f"[site one]\nroot = {site}\nhost = one.example\nhsts = 365d\n{one.settings()}"
        f"[site two]\nroot = {site}\nhost = two.example, both.example\n{two.settings()}"
    )
    return TwoSites(one, two, conf)


def test_each_site_has_its_certificate_and_its_hsts(
    server: ServerFactory, two_sites: TwoSites
) -> None:
    running = server("-c", str(two_sites.conf), folder=None, listen=())
    for pair, host, hsts in (
        (two_sites.one, "one.example", "max-age=31536000"),
        (two_sites.two, "two.example", None),
    ):
        client, wrapped = connect_tls(running, pair, host)
        answer = client.get("/hello.txt", host)
        assert (answer.status, answer.body) == (200, b"hello\n")
        assert answer.get("Strict-Transport-Security") == hsts
        assert client.get("/absent", host).get("Strict-Transport-Security") == hsts
        wrapped.close()


def test_a_request_for_a_site_that_the_certificate_lacks_is_misdirected(
    server: ServerFactory, two_sites: TwoSites
) -> None:
    running = server("-c", str(two_sites.conf), folder=None, listen=())
    client, wrapped = connect_tls(running, two_sites.one, "one.example")
    for host, status in (
        ("one.example", 200),
        ("two.example", 421),
        ("TWO.example.:443", 421),
        ("both.example", 200),  # another site, and the certificate covers it
        ("ONE.EXAMPLE", 200),
    ):
        assert client.get("/hello.txt", host).status == status, host
    wrapped.close()


@pytest.mark.parametrize("model", ["epoll"])
def test_a_site_without_a_certificate_has_that_of_the_first_site_with_one(
    server: ServerFactory, tmp_path: Path, site: Path
) -> None:
    """And not that of the site without a host, which answers clients that name an unknown one."""
    first = certificates.make(tmp_path, "first", "first.example", "covered.example")
    other = certificates.make(tmp_path, "other", "other.example")
    conf = tmp_path / "weir.conf"
    conf.write_text(
        "[server]\nlisten = https://127.0.0.1:0\n"
        f"[site first]\nroot = {site}\nhost = first.example\n{first.settings()}"
        f"[site rest]\nroot = {site}\n{other.settings()}"
        f"[site bare]\nroot = {site}\nhost = covered.example, bare.example\n"
    )
    running = server("-c", str(conf), folder=None, listen=())
    client, wrapped = connect_tls(running, first, "covered.example")
    assert client.get("/hello.txt", "covered.example").status == 200
    wrapped.close()
    with pytest.raises(ssl.SSLCertVerificationError):
        connect_tls(running, first, "bare.example")
    done = run("check", str(conf))
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert line == (
        f"{conf}:{len(conf.read_text().splitlines())}: warning: site bare has no tls-certificate, "
        f"and {first.certificate} of site first does not cover the host bare.example. Clients "
        "refuse it over https."
    )
    conf.write_text(conf.read_text().replace("https://", "http://"))
    assert "site bare" not in run("check", str(conf)).stderr


def served(running: Server) -> bytes:
    """The certificate that a new connection gets."""
    return ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate(running.address))


def trusted(running: Server, pair: certificates.Pair) -> ssl.SSLSocket | None:
    with contextlib.suppress(ssl.SSLCertVerificationError):
        return connect_tls(running, pair, "localhost")[1]
    return None


def test_a_reload_brings_a_new_certificate_and_keeps_connections(
    server: ServerFactory, tmp_path: Path
) -> None:
    pair = certificates.make(tmp_path, "cert", "localhost")
    later = certificates.make(tmp_path, "later", "localhost")
    old, new = (ssl.PEM_cert_to_DER_cert(each.certificate.read_text()) for each in (pair, later))
    running = server(*pair.flags(), "--drain-idle", "1m", listen=HTTPS)
    client, wrapped = connect_tls(running, pair, "localhost")
    assert client.get("/hello.txt").status == 200
    pair.replace_with(later)
    assert run("reload", str(running.popen.pid)).returncode == 0
    # Connections made during the change may still reach an old worker.
    wait_until(lambda: served(running) == new, "the new certificate")
    assert client.get("/hello.txt").status == 200
    assert wrapped.getpeercert(True) == old
    wrapped.close()
    next_client = wait_until(lambda: trusted(running, pair), "a client trusts the certificate")
    assert next_client
    with next_client:
        assert Connection(next_client).get("/hello.txt").status == 200


def test_sessions_are_resumed_over_reloads(server: ServerFactory, tmp_path: Path) -> None:
    pair = certificates.make(tmp_path, "cert", "localhost")
    running = server(*pair.flags(), listen=HTTPS)
    client = certificates.Client(pair, running.address)
    assert not client.resumes()
    assert client.resumes()
    assert run("reload", str(running.popen.pid)).returncode == 0
    assert client.resumes()


def test_curl_gets_files_over_tls(server: ServerFactory, tmp_path: Path, site: Path) -> None:
    (site / "large").write_bytes(os.urandom(300_000))
    pair = certificates.make(tmp_path, "cert", "shop.example")
    running = server(*pair.flags(), listen=HTTPS)
    port = running.address[1]
    command = ["curl", "--silent", "--show-error", "--fail", "--cacert", str(pair.certificate)]
    command += ["--noproxy", "*", "--connect-to", f"shop.example:443:127.0.0.1:{port}"]
    urls = [f"https://shop.example/{name}" for name in ("hello.txt", "large", "hello.txt")]
    done = subprocess.run([*command, *urls], capture_output=True, timeout=LIMIT_S, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == b"hello\n" + (site / "large").read_bytes() + b"hello\n"


def has_in_memory(pid: int, secret: bytes) -> bool:
    """Whether the memory of a process has these bytes, in the order of the file or of a number."""
    maps = Path(f"/proc/{pid}/maps").read_text()
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        for line in maps.splitlines():
            first, last = (int(word, 16) for word in line.split()[0].split("-"))
            if not line.split()[1].startswith("rw"):
                continue
            with contextlib.suppress(OSError):
                memory.seek(first)
                found = memory.read(last - first)
                if secret in found or secret[::-1] in found:
                    return True
    return False


def secret_of(pair: certificates.Pair) -> bytes:
    """The number that is the private key."""
    shown = subprocess.run(
        ["openssl", "pkey", "-in", str(pair.key), "-noout", "-text"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    digits = re.search(r"priv:\s+([0-9a-f:\s]+?)\s*pub:", shown)
    assert digits
    return bytes.fromhex(re.sub(r"[:\s]", "", digits[1]))[-32:]


@ONE_MODEL
@pytest.mark.skipif(os.geteuid() != 0, reason="only root reads the memory of the workers")
def test_only_workers_and_the_master_have_the_key(server: ServerFactory, tmp_path: Path) -> None:
    pair = certificates.make(tmp_path, "cert", "localhost")
    secret = secret_of(pair)
    running = server(*pair.flags(), "--stats-listen", "127.0.0.1:0", listen=HTTPS)
    page = [child for child in running.master.children() if child.comm == STATISTICS]
    assert len(page) == 1
    assert all(has_in_memory(worker.pid, secret) for worker in running.workers())
    # The master forks it with the key, and it erases the key before it serves.
    wait_until(lambda: not has_in_memory(page[0].pid, secret), "a page without the key")


# ---- weir check ----


def checked(tmp_path: Path, site: Path, host: str, lines: str) -> subprocess.CompletedProcess[str]:
    conf = tmp_path / "weir.conf"
    conf.write_text(
        f"[server]\nlisten = https://*:443\n[site shop]\nroot = {site}\nhost = {host}\n{lines}"
        f"[site rest]\nroot = {site}\n"
    )
    return run("check", str(conf))


def test_check_says_how_long_a_certificate_is_valid_and_for_whom(
    tmp_path: Path, site: Path
) -> None:
    pair = certificates.make(tmp_path, "shop", "shop.example", "*.shop.example", "IP:192.0.2.1")
    done = checked(tmp_path, site, "shop.example, a.shop.example", pair.settings())
    assert (done.returncode, done.stderr) == (0, "")
    line = rf"site shop: {pair.certificate} matches its key and is valid until \d{{4}}-\d\d-\d\d, "
    assert re.match(line + r"for shop\.example, \*\.shop\.example, 192\.0\.2\.1\n", done.stdout)


def test_check_warns_of_hosts_that_a_certificate_does_not_cover(tmp_path: Path, site: Path) -> None:
    pair = certificates.make(tmp_path, "shop", "shop.example")
    done = checked(tmp_path, site, "shop.example, www.shop.example", pair.settings())
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert re.match(
        r".*weir\.conf:6: warning: .* does not cover the host www\.shop\.example ", line
    )


def test_check_warns_of_a_certificate_that_ends_soon(tmp_path: Path, site: Path) -> None:
    pair = certificates.make(tmp_path, "shop", "shop.example", days=10)
    done = checked(tmp_path, site, "shop.example", pair.settings())
    assert re.search(r"weir\.conf:6: warning: .* ends in (10|9)\.\d days\. Renew it\.", done.stderr)


def test_check_says_that_a_certificate_has_ended(tmp_path: Path, site: Path) -> None:
    issuer = certificates.make(tmp_path, "issuer", "issuer.example")
    dates = ("20240101000000Z", "20240201000000Z")
    pair = certificates.make(tmp_path, "shop", "shop.example", issuer=issuer, dates=dates)
    done = checked(tmp_path, site, "shop.example", pair.settings())
    assert f"{pair.certificate} matches its key and ended at 2024-02-01, for" in done.stdout
    assert re.search(r"weir\.conf:6: warning: .* ended at 2024-02-01", done.stderr)


@pytest.mark.parametrize("model", ["epoll"])
@pytest.mark.parametrize(
    "options",
    [
        ("--listen", "https://127.0.0.1:0"),
        ("--listen", "127.0.0.1:0", "--stats-listen", "https://127.0.0.1:0"),
    ],
    ids=["sites", "page"],
)
def test_the_log_warns_of_a_certificate_that_clients_refuse(
    server: ServerFactory, tmp_path: Path, site: Path, options: tuple[str, ...]
) -> None:
    """At the start, and after each reload, because the file may have been replaced. Also where only
    the statistics page has TLS."""
    issuer = certificates.make(tmp_path, "issuer", "issuer.example")
    dates = ("20240101000000Z", "20240201000000Z")
    pair = certificates.make(tmp_path, "shop", "shop.example", issuer=issuer, dates=dates)
    conf = tmp_path / "weir.conf"
    conf.write_text(
        f"[site shop]\nroot = {site}\nhost = shop.example, other.example\n{pair.settings()}"
    )
    running = server("-c", str(conf), *options, folder=None, listen=())
    warnings = re.compile(r" warning \[\d+\] (the certificate .*)$", re.M)
    expected = ["ended at 2024-02-01", "does not cover the host other.example of site shop."]
    wait_until(lambda: len(warnings.findall(running.messages())) == 2, running.messages)
    running.signal(signal.SIGHUP)
    wait_until(lambda: len(warnings.findall(running.messages())) == 4, running.messages)
    for line, text in zip(warnings.findall(running.messages()), expected * 2, strict=True):
        assert text in line


def test_check_warns_of_a_chain_without_the_issuer(tmp_path: Path, site: Path) -> None:
    issuer = certificates.make(tmp_path, "issuer", "issuer.example")
    pair = certificates.make(tmp_path, "shop", "shop.example", issuer=issuer)
    done = checked(tmp_path, site, "shop.example", pair.settings())
    assert done.returncode == 0
    assert "Append the certificate of the issuer" in done.stderr
    pair.certificate.write_text(pair.certificate.read_text() + issuer.certificate.read_text())
    assert "issuer" not in checked(tmp_path, site, "shop.example", pair.settings()).stderr


def test_check_refuses_a_key_of_another_certificate(tmp_path: Path, site: Path) -> None:
    pair = certificates.make(tmp_path, "shop", "shop.example")
    other = certificates.make(tmp_path, "other", "shop.example")
    lines = f"tls-certificate = {pair.certificate}\ntls-key = {other.key}\n"
    done = checked(tmp_path, site, "shop.example", lines)
    assert done.returncode == 1
    assert f"weir.conf:6: error: the key {other.key} does not belong to" in done.stderr
