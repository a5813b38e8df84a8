# SPDX-License-Identifier: MIT
"""Sites that need a password, on every model, over HTTP/1.1 and HTTP/2, plain and TLS."""

from __future__ import annotations

import base64
import contextlib
import os
import select
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest

from tests.e2e.certificates import Pair, make
from tests.e2e.conftest import ServerFactory
from tests.e2e.http2 import Client, reset
from tests.e2e.running import RUNTIME, WEIR, Server
from tests.e2e.statistics import read, wait_for
from tests.e2e.wire import Answer, Connection, connect
from tests.waiting import LIMIT_S, wait_until

# The password is `sesame`. The hash is cheap.
ALICE = "alice:$2b$04$abcdefghijklmnopqrstuuinwY/tkBVrn3xrxQI/TgnMHhkvl85RW\n"
BOB = "bob:$5$rounds=1000$salt$rloU6KpfKKm9G.NUT4Kh3.lZ3eQ67D/GrlYTTZlly7.\n"
# No password has this hash. A comparison takes one or two seconds of CPU time.
SLOW = "slow:$2b$15$abcdefghijklmnopqrstuuinwY/tkBVrn3xrxQI/TgnMHhkvl85RW\n"
CHALLENGE = 'Basic realm="Restricted", charset="UTF-8"'
ONE_MODEL = pytest.mark.parametrize("model", ["percore"])
# Models in which one thread serves several connections: answers are pending there.
SHARING = pytest.mark.parametrize("model", ["pool", "prefork", "epoll", "percore", "uring"])


@pytest.fixture
def users(tmp_path: Path) -> Path:
    path = tmp_path / "users"
    path.write_text(ALICE + BOB)
    path.chmod(0o640)
    return path


@pytest.fixture
def slow_users(users: Path) -> Path:
    """The same, with a user whose hash is slow. Unknown users may cost as much."""
    users.write_text(ALICE + BOB + SLOW)
    return users


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return make(tmp_path, "own", "localhost", "IP:127.0.0.1")


def basic(user: str, password: str = "sesame") -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def field(user: str, password: str = "sesame") -> str:
    return f"Authorization: {basic(user, password)}"


class Way(NamedTuple):
    """How a client speaks to the server."""

    name: str
    get: Callable[..., Answer]  # path, field lines


@contextlib.contextmanager
def ways(running: Server, pair: Pair) -> Iterator[list[Way]]:
    """HTTP/1.1 and HTTP/2, each plain and over TLS. The server has a plain and a TLS address."""
    plain, tls = (urlsplit(url) for url in running.urls[:2])
    with contextlib.ExitStack() as stack:
        made: list[Way] = []
        for protocol in ("http/1.1", "h2"):
            for url in (plain, tls):
                assert url.hostname
                assert url.port
                connection = stack.enter_context(connect((url.hostname, url.port)))
                if url is tls:
                    context = ssl.create_default_context(cafile=str(pair.certificate))
                    context.set_alpn_protocols([protocol])
                    wrapped = context.wrap_socket(connection.socket, server_hostname="localhost")
                    connection = Connection(stack.enter_context(wrapped))
                name = f"{protocol} {url.scheme}"
                made.append(Way(name, getter_of(connection, protocol)))
        yield made


def getter_of(connection: Connection, protocol: str) -> Callable[..., Answer]:
    if protocol == "http/1.1":
        return lambda path, *lines: connection.get(path, "localhost", *lines)
    client = Client(connection)

    def get(path: str, *lines: str) -> Answer:
        pairs = [line.split(": ", 1) for line in lines]
        fields = [(name.lower().encode(), value.encode()) for name, value in pairs]
        return client.answer(client.ask(path, *fields, authority=b"localhost"))

    return get


def everywhere(server: ServerFactory, pair: Pair, users: Path, *arguments: str) -> Server:
    return server(
        *pair.flags(),
        *("--h2c", "--auth", str(users), *arguments),
        listen=("127.0.0.1:0", "https://127.0.0.1:0"),
    )


def counter(running: Server, name: str) -> int:
    return int(read(running.master.pid)["counters"][name])


def weir(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [WEIR, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
        env={**os.environ, "RUNTIME_DIRECTORY": str(RUNTIME)},
    )


# ---- who has access ----


def test_only_the_right_password_opens_a_site(
    server: ServerFactory, pair: Pair, users: Path
) -> None:
    running = everywhere(server, pair, users)
    with ways(running, pair) as all_ways:
        for way in all_ways:
            answer = way.get("/hello.txt")
            assert (answer.status, answer.get("www-authenticate")) == (401, CHALLENGE), way.name
            assert way.get("/hello.txt", field("alice", "wrong")).status == 401
            assert way.get("/hello.txt", field("nobody")).status == 401
            for user in ("alice", "bob", "alice"):
                answer = way.get("/hello.txt", field(user))
                assert (answer.status, answer.body) == (200, b"hello\n"), way.name
                assert answer.get("cache-control") == "private"
            tag = answer.get("etag")
            answer = way.get("/hello.txt", field("alice"), f"If-None-Match: {tag}")
            assert (answer.status, answer.get("cache-control")) == (304, "private")
            answer = way.get("/hello.txt", field("alice"), "Range: bytes=1-2")
            assert (answer.status, answer.get("cache-control")) == (206, "private")
            assert way.get("/hello.txt", f"If-None-Match: {tag}").status == 401
            assert way.get("/absent").status == 401
            assert way.get("/absent", field("alice")).status == 404
    # Each address pair of a way sent two wrong passwords.
    numbers = wait_for(running, lambda now: now["counters"]["passwords_wrong"] == 8)["counters"]
    assert numbers["passwords_compared"] + numbers["passwords_remembered"] == 4 * 7 + 4
    assert numbers["passwords_remembered"] > 0
    assert running.messages().count("error") == 0


def paths_of_the_secret() -> list[str]:
    """Names of /private/secret.txt and of what is near it."""
    return [
        "/private/secret.txt", "/private/", "/private", "//private/secret.txt",
        "/private//secret.txt", "/./private/secret.txt", "/x/../private/secret.txt",
        "/private/secret.txt/", "/private/%73ecret.txt", "/%70rivate/secret.txt",
        "/private/secret%2etxt", "/private%2fsecret.txt", "/private/secret.txt?x=1",
        "/private/secret.txt.gz", "/PRIVATE/secret.txt",
        "/private/./secret.txt", "/private/%2e%2e/private/secret.txt", "/private/index.html",
        "/.well-known/acme-challenge/../../private/secret.txt",
        "/.well-known/acme-challenge/%2e%2e/%2e%2e/private/secret.txt",
        "/.well-known/acme-challenge/..%2f..%2fprivate/secret.txt", "/link.txt", "/errors/404.html",
    ]  # fmt: skip


FIELDS: list[tuple[str, ...]] = [
    (),
    ("Range: bytes=0-3",),
    ("Accept-Encoding: gzip, br",),
    ("If-Modified-Since: Sat, 01 Jan 2000 00:00:00 GMT",),
    ("Accept: application/json",),
    ("Authorization: Basic",),
    ("Authorization: Bearer YWxpY2U6c2VzYW1l",),
    ("Authorization: Digest username=alice",),
    ("Proxy-Authorization: " + basic("alice"),),
    ("X-Original-URL: /", "X-Rewrite-URL: /"),
]


@ONE_MODEL
def test_no_form_of_a_request_goes_round_the_password(
    server: ServerFactory, site: Path, pair: Pair, users: Path
) -> None:
    private, errors = site / "private", site / "errors"
    private.mkdir()
    errors.mkdir()
    for name in ("secret.txt", "secret.txt.gz", "index.html"):
        (private / name).write_text("the secret\n")
    (site / "link.txt").symlink_to("private/secret.txt")
    for status in (404, 429, 401):
        (errors / f"{status}.html").write_text(f"own page {status}\n")
    running = everywhere(server, pair, users, "--listing", "--error-pages", str(errors))
    with ways(running, pair) as all_ways:
        for way in all_ways:
            for path in paths_of_the_secret():
                for fields in FIELDS:
                    answer = way.get(path, *fields)
                    # A target that no site can have is refused without a look at the site.
                    assert answer.status in (400, 401, 404), (way.name, path, fields)
                    assert b"secret" not in answer.body
                    assert b"own page 404" not in answer.body
                    assert answer.get("etag") is None
                    if answer.status == 401:
                        assert answer.body == b"own page 401\n"
                    if answer.closes or answer.status == 400:
                        pytest.fail(f"{way.name} {path} ends the connection")
            assert way.get("/private/secret.txt", field("alice")).status == 200


def test_other_methods_need_the_password_too(server: ServerFactory, users: Path) -> None:
    running = server("--auth", str(users))
    for method in ("HEAD", "OPTIONS", "POST", "DELETE", "BREW"):
        with connect(running.address) as connection:
            connection.send(f"{method} /hello.txt HTTP/1.1\r\nHost: a\r\n\r\n".encode())
            assert connection.read(bodiless=method == "HEAD").status == 401
    with connect(running.address) as connection:
        lines = f"HEAD /hello.txt HTTP/1.1\r\nHost: a\r\n{field('alice')}\r\n\r\n"
        connection.send(lines.encode())
        assert connection.read(bodiless=True).get("content-length") == "6"


def test_requests_that_wait_are_answered_in_their_order(server: ServerFactory, users: Path) -> None:
    running = server("--auth", str(users))
    requests = []
    for user, password in [("alice", "sesame"), ("alice", "no"), ("bob", "sesame"), ("x", "y")]:
        head = f"GET /hello.txt HTTP/1.1\r\nHost: a\r\n{field(user, password)}\r\n\r\n"
        requests.append(head.encode())
    with connect(running.address) as connection:
        connection.send(b"".join(requests))
        assert [connection.read().status for _ in requests] == [200, 401, 200, 401]
        connection.send(requests[0] + requests[2])
        connection.end_sending()
        assert [connection.read().status for _ in range(2)] == [200, 200]
        assert connection.read_to_end() == b""


def test_an_address_with_many_wrong_passwords_gets_429(server: ServerFactory, users: Path) -> None:
    running = server("--auth", str(users), "--workers", "1")
    with connect(running.address) as connection:
        assert connection.get("/hello.txt", "a", field("alice")).status == 200
        statuses = [
            connection.get("/hello.txt", "a", field("alice", f"wrong {i}")).status
            for i in range(30)
        ]
        assert statuses[:10] == [401] * 10
        assert 429 in statuses
        answer = connection.get("/hello.txt", "a", field("alice"))
        assert answer.status == 200  # it is remembered
    numbers = wait_for(running, lambda now: now["counters"]["passwords_limited"] > 0)["counters"]
    assert numbers["passwords_limited"] == statuses.count(429)
    assert numbers["passwords_wrong"] == statuses.count(401)


def test_many_requests_at_once_with_a_right_password_are_answered(
    server: ServerFactory, users: Path
) -> None:
    users.write_text(weir("password", "carol", stdin="sesame\n").stdout)  # not a cheap hash
    running = server("--auth", str(users), "--workers", "1")
    head = f"GET /hello.txt HTTP/1.1\r\nHost: a\r\n{field('carol')}\r\n\r\n"
    with contextlib.ExitStack() as stack:
        many = [stack.enter_context(connect(running.address)) for _ in range(30)]
        for connection in many:
            connection.send(head.encode())
        assert [connection.read().status for connection in many] == [200] * 30


@ONE_MODEL
def test_rules_for_paths_come_after_the_password(
    server: ServerFactory, site: Path, tmp_path: Path, users: Path
) -> None:
    conf = tmp_path / "weir.conf"
    conf.write_text(
        f"[server]\nlisten = 127.0.0.1:0\n[site a]\nroot = {site}\nauth = {users}\n"
        "[path /old]\nredirect = 301 /hello.txt\n[path /gone]\nstatus = 410\n"
        "[path /x/*]\nrewrite = /hello.txt\n[path /hello.txt]\nheader = X-Rule: set\n"
        "cors = https://app.test\ncors-credentials = on\ncors-headers = Authorization\n"
    )
    running = server("-c", str(conf), folder=None, listen=())
    with connect(running.address) as connection:
        for path, status in (("/old", 301), ("/gone", 410), ("/x/y", 200), ("/hello.txt", 200)):
            assert connection.get(path).status == 401, path
            answer = connection.get(path, "a", field("alice"))
            assert (answer.status, answer.get("cache-control")) == (status, "private"), path
            assert connection.get(path).status == 401, path  # also when it is in the cache
        connection.send(
            b"OPTIONS /hello.txt HTTP/1.1\r\nHost: a\r\nOrigin: https://app.test\r\n"
            b"Access-Control-Request-Method: GET\r\n\r\n"
        )
        answer = connection.read()  # a preflight never has a password
        assert answer.status == 204
        assert answer.get("access-control-allow-headers") == "Authorization"


# ---- slow hashes ----


def is_answered(connection: Connection) -> bool:
    return bool(select.select([connection.socket], [], [], 0)[0])


def test_a_slow_hash_does_not_stop_others(server: ServerFactory, slow_users: Path) -> None:
    running = server("--auth", str(slow_users), "--drain-timeout", "1s")
    with connect(running.address) as other:
        assert other.get("/hello.txt", "a", field("alice")).status == 200
        with connect(running.address) as slow, connect(running.address) as slow_too:
            for connection in (slow, slow_too):
                head = f"GET /hello.txt HTTP/1.1\r\nHost: a\r\n{field('slow')}\r\n\r\n"
                connection.send(head.encode())
            wait_for(running, lambda now: now["gauges"]["connections_active"] >= 2)
            for _ in range(3):
                assert other.get("/hello.txt", "a", field("alice")).status == 200
            assert not is_answered(slow)
            assert not is_answered(slow_too)
            slow_too.reset()  # the client leaves meanwhile
            assert other.get("/hello.txt", "a", field("alice")).status == 200
            assert slow.read().status in (401, 503)
            assert slow.get("/hello.txt", "a", field("alice")).status == 200


@SHARING
def test_a_server_stops_during_a_slow_hash(server: ServerFactory, slow_users: Path) -> None:
    running = server("--auth", str(slow_users), "--drain-timeout", "100ms")
    with connect(running.address) as slow:
        slow.send(f"GET /hello.txt HTTP/1.1\r\nHost: a\r\n{field('slow')}\r\n\r\n".encode())
        wait_for(running, lambda now: now["gauges"]["connections_active"] == 1)
        running.stop()
    assert running.messages().count("killed") == 0


@SHARING
def test_only_the_stream_of_a_slow_hash_waits(server: ServerFactory, slow_users: Path) -> None:
    running = server("--auth", str(slow_users), "--h2c", "--drain-timeout", "1s")
    with connect(running.address) as connection:
        client = Client(connection)
        right = (b"authorization", basic("alice").encode())
        slow = client.ask("/hello.txt", (b"authorization", basic("slow").encode()))
        for _ in range(3):
            assert client.get("/hello.txt", right).status == 200
            assert client.get("/hello.txt").status == 401
        assert not client.streams[slow].ended
        assert client.answer(slow).status in (401, 503)
        assert client.get("/hello.txt", right).status == 200


@SHARING
def test_a_stream_that_is_reset_is_not_answered(server: ServerFactory, slow_users: Path) -> None:
    running = server("--auth", str(slow_users), "--h2c", "--drain-timeout", "1s")
    with connect(running.address) as connection:
        client = Client(connection)
        right = (b"authorization", basic("alice").encode())
        streams = [
            client.ask("/hello.txt", (b"authorization", basic("slow", str(i)).encode()))
            for i in range(3)
        ]
        client.send(*(reset(stream) for stream in streams))
        assert client.get("/hello.txt", right).status == 200
        client.settle()
        assert not any(client.streams[stream].ended for stream in streams)


@SHARING
def test_a_full_queue_answers_503_and_serves_the_others(
    server: ServerFactory, slow_users: Path
) -> None:
    running = server(
        *("--auth", str(slow_users), "--h2c", "--workers", "1", "--drain-timeout", "1s"),
        listen=("0.0.0.0:0",),
    )
    with connect(("127.0.0.1", running.address[1])) as other, contextlib.ExitStack() as stack:
        assert other.get("/hello.txt", "a", field("alice")).status == 200
        clients = []
        for number in range(10):  # each address may try ten passwords
            made = socket.create_connection(
                ("127.0.0.1", running.address[1]), LIMIT_S, source_address=(f"127.0.1.{number}", 0)
            )
            client = Client(Connection(stack.enter_context(made)))
            clients.append(client)
            for i in range(9):
                client.ask("/hello.txt", (b"authorization", basic("slow", str(i)).encode()))
            client.settle()
        assert other.get("/hello.txt", "a", field("alice")).status == 200
        statuses = [
            stream.status
            for client in clients
            for stream in client.streams.values()
            if stream.ended
        ]
        assert statuses.count(503) >= 90 - 64 - 2 - statuses.count(401)
        assert set(statuses) <= {503, 401}
        assert counter(running, "passwords_refused") == statuses.count(503)


# ---- secrecy ----


@ONE_MODEL
def test_a_password_is_in_no_output(
    server: ServerFactory, users: Path, tmp_path: Path, site: Path
) -> None:
    log = tmp_path / "access.log"
    running = server("--auth", str(users), "--access-log", str(log), "--log-format", "json")
    password = "a very secret password"
    line = field("alice", password)
    with connect(running.address) as connection:
        assert connection.get("/hello.txt", "a", line).status == 401
        connection.send(f"GET / HTTP/1.1\r\nHost: a\r\n{line}\r\nbad line\r\n\r\n".encode())
        assert connection.read().status == 400
    wait_until(lambda: log.is_file() and len(log.read_text().splitlines()) == 2, "two lines")
    for worker in running.workers():
        limits = Path(f"/proc/{worker.pid}/limits").read_text()
        core = next(each for each in limits.splitlines() if each.startswith("Max core file size"))
        assert core.split()[4:6] in (["1", "1"], ["0", "0"])
    traced = weir("trace", "/hello.txt", str(site), "--auth", str(users), "-H", line)
    assert "this one is wrong" in traced.stdout
    stats = weir("stats", "--json", str(running.master.pid))
    encoded = line.split()[-1]
    for text in (log.read_text(), running.messages(), traced.stdout, traced.stderr, stats.stdout):
        assert password not in text
        assert encoded not in text


# ---- the file ----


@ONE_MODEL
def test_a_changed_list_is_used_and_a_broken_one_is_not(server: ServerFactory, users: Path) -> None:
    running = server("--auth", str(users))

    def status(user: str) -> int:
        with connect(running.address) as connection:
            return connection.get("/hello.txt", "a", field(user)).status

    assert (status("alice"), status("bob")) == (200, 200)
    users.write_text(ALICE)
    wait_until(lambda: status("bob") == 401, "the new list")
    assert status("alice") == 200
    users.write_text(ALICE + BOB + "carol:plain text\n")
    stale = wait_for(running, lambda now: now["gauges"]["users_stale"] == 1)
    assert stale["counters"]["users_refused"] == 1
    assert "users-stale" in [verdict["rule"] for verdict in stale["verdicts"]]
    assert f"{users}:3: " in running.messages()
    assert "plain text" not in running.messages()
    assert (status("alice"), status("bob")) == (200, 401)
    users.write_text(BOB)
    wait_for(running, lambda now: now["gauges"]["users_stale"] == 0)
    wait_until(lambda: status("bob") == 200, "the new list")
    assert status("alice") == 401


@ONE_MODEL
def test_a_reload_reads_the_list_and_refuses_a_broken_one(
    server: ServerFactory, users: Path, tmp_path: Path, site: Path
) -> None:
    conf = tmp_path / "weir.conf"
    conf.write_text(
        f"[server]\nlisten = 127.0.0.1:0\n[site a]\nroot = {site}\nauth = {users}\n"
        "auth-realm = Staff only\n"
    )
    running = server("-c", str(conf), folder=None, listen=())
    with connect(running.address) as connection:
        answer = connection.get("/hello.txt")
        assert answer.get("www-authenticate") == 'Basic realm="Staff only", charset="UTF-8"'
    users.write_text("alice\n")
    done = weir("reload", str(running.master.pid))
    assert done.returncode == 1
    assert f"{users}:1: The line has no colon." in done.stderr
    with connect(running.address) as connection:
        assert connection.get("/hello.txt", "a", field("alice")).status == 200
    users.write_text(BOB)
    done = weir("reload", str(running.master.pid))
    assert done.returncode == 0, done.stderr

    def status(user: str) -> int:
        with connect(running.address) as connection:
            return connection.get("/hello.txt", "a", field(user)).status

    # A worker that drains may have accepted a connection already.
    wait_until(lambda: status("alice") == 401, "the new list")
    assert status("bob") == 200


def test_a_site_with_a_broken_list_does_not_start(site: Path, users: Path) -> None:
    users.write_text("# staff\nalice:$apr1$salt$0123456789012345678901\n")
    done = weir("serve", str(site), "--listen", "127.0.0.1:0", "--auth", str(users))
    assert done.returncode == 1
    assert f"{users}:2: This is a hash of Apache's MD5" in done.stderr


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("auth = {users}", "site a: {users} has 2 users"),
        ("auth = {top}/none", "there is no such file"),
        ("auth = {site}/users", "inside the root of [site a]"),
        ("auth = {users}\nauth = {users}", "set twice"),
        ("auth = {top}", "is not a file"),
        ("auth = {broken}", "{broken}:1: This is no hash"),
        ("auth-realm = x", "the site has no `auth`"),
        ('auth = {users}\nauth-realm = a "b"', "no quote"),
        ("auth = {users}\nheader = Cache-Control: public, max-age=60", "shared caches"),
        ("auth = {users}\nheader = Cache-Control: max-age=60, s-maxage=60", "shared caches"),
        ("auth = {users}\nheader = Cache-Control: public", "shared caches"),
        ("auth = {users}\nheader = CDN-Cache-Control: max-age=60", "shared caches"),
        ("auth = {users}\nheader = Cache-Control: max-age=60", "ok (1 site"),
        ("auth = {users}\n[path /a/*]\ncache-control = public", "shared caches"),
        ("auth = {users}\n[path /a/*]\nheader = Surrogate-Control: max-age=9", "shared caches"),
        ("auth = {users}\n[path /a/*]\ncache-control = no-store", "ok (1 site"),
    ],
)
def test_check_reports_what_cannot_work(
    tmp_path: Path, site: Path, users: Path, lines: str, said: str
) -> None:
    (site / "users").write_text(ALICE)
    broken = tmp_path / "broken"
    broken.write_text("alice:secret\n")
    names = {"users": users, "top": tmp_path, "site": site, "broken": broken}
    conf = tmp_path / "weir.conf"
    conf.write_text(f"[site a]\nroot = {site}\n{lines.format(**names)}\n")
    done = weir("check", str(conf))
    assert said.format(**names) in done.stdout + done.stderr
    assert "secret" not in done.stdout + done.stderr


def test_check_warns_of_passwords_without_tls(tmp_path: Path, site: Path, users: Path) -> None:
    conf = tmp_path / "weir.conf"
    conf.write_text(f"[server]\nlisten = *:8080\n[site a]\nroot = {site}\nauth = {users}\n")
    done = weir("check", str(conf))
    assert done.returncode == 0
    assert "passwords travel without TLS" in done.stderr


@ONE_MODEL
def test_weir_password_makes_a_line(server: ServerFactory, users: Path) -> None:
    made = weir("password", "j\u00f6rg", stdin="long: password\n")
    assert made.returncode == 0, made.stderr
    assert made.stdout.startswith("j\u00f6rg:$y$")
    users.write_text(ALICE + made.stdout)
    running = server("--auth", str(users))
    with connect(running.address) as connection:
        line = field("j\u00f6rg", "long: password")
        assert connection.get("/hello.txt", "a", line).status == 200
    for user in ("a:b", "a\nb", "#a", "x" * 256):
        wrong = weir("password", user, stdin="sesame\n")
        assert (wrong.returncode, wrong.stdout) == (2, ""), user


def test_trace_names_the_list_and_the_cause(site: Path, users: Path) -> None:
    arguments = ("trace", "/hello.txt", str(site), "--auth", str(users))
    for line, status, cause in [
        (None, "401", "the request has none that can be read"),
        (field("alice", "no"), "401", "this one is wrong"),
        (field("alice"), "200", "right, by"),
    ]:
        done = weir(*arguments, *(("-H", line) if line else ()))
        assert status in done.stdout
        assert cause in done.stdout
        assert str(users) in done.stdout
