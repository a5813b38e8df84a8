# SPDX-License-Identifier: MIT
"""Requests that a proxy has forwarded: which address the log and the limits use, on every model."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.certificates import Pair, secure, trusting
from tests.e2e.conftest import ServerFactory
from tests.e2e.http2 import Client
from tests.e2e.proxied import ELSEWHERE, EVERYWHERE, PROXY, connect_from, line, logged, peers
from tests.e2e.running import Server
from tests.e2e.statistics import settled, wait_for
from tests.e2e.test_check import weir
from tests.e2e.wire import Answer, connect
from tests.waiting import wait_until

HELLO = b"hello\n"
TRUSTED = f"{PROXY}, 10.0.0.0/8, unix"
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def forwarding(server: ServerFactory, *arguments: str, listen: str = EVERYWHERE) -> Server:
    return server("--forwarded-from", TRUSTED, *arguments, listen=(listen,))


def logging(log: Path) -> tuple[str, ...]:
    return ("--access-log", str(log), "--log-format", "json")


def test_the_last_address_that_is_no_proxy_is_the_client(
    server: ServerFactory, tmp_path: Path
) -> None:
    log = tmp_path / "access.log"
    running = forwarding(server, *logging(log))
    fields = {
        "X-Forwarded-For: 192.0.2.1": "192.0.2.1",
        "x-forwarded-for: 203.0.113.9, 192.0.2.2, 10.0.0.7": "192.0.2.2",
        "X-Forwarded-For: 203.0.113.9\r\nX-Forwarded-For: 2001:db8::1": "2001:db8::1",
        "X-Forwarded-For: nonsense\r\nX-Forwarded-For: 10.0.0.7, 10.0.0.8": PROXY,
        "X-Forwarded-For: unknown": PROXY,
        "Forwarded: for=192.0.2.3": PROXY,
        "X-Other: 192.0.2.4": PROXY,
    }
    with connect_from(running, PROXY) as connection:
        for number, each in enumerate(fields):
            assert connection.get(f"/hello.txt?{number}", "a", each).body == HELLO
    lines = logged(log, len(fields))
    assert [each["peer"] for each in lines] == list(fields.values())
    for logged_line in lines:
        assert logged_line.get("via") == (None if logged_line["peer"] == PROXY else PROXY)
    numbers = settled(running)["counters"]
    assert (numbers["requests_forwarded"], numbers["forwarded_malformed"]) == (3, 1)


def test_the_standard_field_can_be_chosen(server: ServerFactory, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    running = forwarding(server, "--forwarded-field", "forwarded", *logging(log))
    fields = {
        'Forwarded: for="[2001:db8::1]:4711";proto=https, for=10.0.0.1': "2001:db8::1",
        'Forwarded: for="unclosed, for=192.0.2.2': "192.0.2.2",
        "X-Forwarded-For: 192.0.2.3": PROXY,
    }
    with connect_from(running, PROXY) as connection:
        for number, each in enumerate(fields):
            assert connection.get(f"/hello.txt?{number}", "a", each).body == HELLO
    assert peers(log, len(fields)) == list(fields.values())


def test_no_other_address_can_name_a_client(server: ServerFactory, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    running = forwarding(server, *logging(log))
    with connect_from(running, ELSEWHERE) as connection:
        assert connection.get("/hello.txt", "a", "X-Forwarded-For: 192.0.2.1").body == HELLO
    assert peers(log, 1) == [ELSEWHERE]


def test_http2_names_clients_likewise(server: ServerFactory, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    running = forwarding(server, "--h2c", "on", *logging(log))
    with connect_from(running, PROXY) as connection:
        client = Client(connection)
        for number in (1, 2, 3):
            field = (b"x-forwarded-for", b"192.0.2.%d" % number)
            assert client.get(f"/hello.txt?{number}", field).body == HELLO
        assert client.get("/hello.txt?4").body == HELLO
    assert peers(log, 4) == ["192.0.2.1", "192.0.2.2", "192.0.2.3", PROXY]


def behind_tls(server: ServerFactory, site: Path, conf: Path, field: str) -> Server:
    conf.write_text(
        f"[server]\nlisten = {EVERYWHERE}\nh2c = on\n"
        f"forwarded-from = {TRUSTED}\nforwarded-field = {field}\n"
        f"[site a]\nroot = {site}\nhttps-redirect = on\nhsts = 1h\n"
    )
    return server("-c", str(conf), folder=None, listen=())


def served(answer: Answer) -> bool:
    """Whether the file is served as over https. Otherwise the answer leads to https."""
    hsts = answer.get("Strict-Transport-Security")
    if answer.status == 200:
        assert (answer.body, hsts) == (HELLO, "max-age=3600")
    else:
        got = (answer.status, answer.get("Location"), hsts)
        assert got == (308, "https://a/hello.txt", None)
    return answer.status == 200


@pytest.mark.parametrize(
    ("field", "https", "http"),
    [
        ("x-forwarded-for", "X-Forwarded-Proto: https", "X-Forwarded-Proto: http"),
        ("forwarded", "Forwarded: for=192.0.2.1;proto=https", "Forwarded: proto=http"),
    ],
)
def test_the_scheme_that_a_proxy_names_decides_about_https(
    server: ServerFactory, site: Path, tmp_path: Path, field: str, https: str, http: str
) -> None:
    running = behind_tls(server, site, tmp_path / "weir.conf", field)
    varies = https.partition(":")[0]
    for http2 in (False, True):
        for source, text, is_served, vary in [
            (PROXY, https, True, None),
            (PROXY, http, False, varies),
            (PROXY, "X-Other: https", False, None),
            (ELSEWHERE, https, False, None),
        ]:
            with connect_from(running, source) as connection:
                name, _, value = text.partition(": ")
                if http2:
                    pair = (name.lower().encode(), value.encode())
                    answer = Client(connection).get("/hello.txt", pair)
                else:
                    answer = connection.get("/hello.txt", "a", text)
            assert served(answer) == is_served, (source, text, http2)
            assert is_served or answer.get("Vary") == vary


@pytest.mark.parametrize("model", ["percore"])
def test_a_proxy_over_tls_can_say_that_its_client_has_none(
    server: ServerFactory, site: Path, tmp_path: Path, pair: Pair
) -> None:
    conf = tmp_path / "weir.conf"
    conf.write_text(
        "[server]\nlisten = https://127.0.0.1:0\nforwarded-from = 127.0.0.1\n"
        f"[site a]\nroot = {site}\nhttps-redirect = on\nhsts = 1h\n{pair.settings()}"
    )
    running = server("-c", str(conf), folder=None, listen=())
    with secure(running.address, trusting(pair)) as connection:
        for fields, is_served in [
            (["X-Forwarded-Proto: http"], False),
            (["X-Forwarded-Proto: https"], True),
            ([], True),
            (["X-Forwarded-For: 192.0.2.1", "X-Forwarded-Proto: https, http"], False),
        ]:
            assert served(connection.get("/hello.txt", "a", *fields)) == is_served


@pytest.mark.parametrize("model", ["percore"])
def test_trace_shows_the_scheme_that_a_proxy_names(
    server: ServerFactory, site: Path, tmp_path: Path
) -> None:
    conf = tmp_path / "weir.conf"
    behind_tls(server, site, conf, "x-forwarded-for")
    words = ("trace", "/hello.txt", "-c", str(conf), "--host", "a", "--from", PROXY)
    done = weir(*words, "-H", "X-Forwarded-Proto: http", cwd=tmp_path)
    assert "scheme      http, as the proxy says\n" in done.stdout
    assert "`https-redirect = on`, and the client has used http" in done.stdout
    done = weir(*words, "-H", "X-Forwarded-Proto: https", cwd=tmp_path)
    assert "scheme      https, as the proxy says\n" in done.stdout
    assert "200" in done.stdout


def test_a_large_answer_has_the_client_in_its_line(
    server: ServerFactory, site: Path, tmp_path: Path
) -> None:
    log = tmp_path / "access.log"
    (site / "big.bin").write_bytes(bytes(3_000_000))
    running = forwarding(server, *logging(log))
    with connect_from(running, PROXY) as connection:
        fields = ("X-Forwarded-For: 192.0.2.1", f"Traceparent: {TRACE}")
        assert len(connection.get("/big.bin", "a", *fields).body) == 3_000_000
    [each] = logged(log, 1)
    assert (each["peer"], each["via"], each["traceparent"]) == ("192.0.2.1", PROXY, TRACE)


def test_a_unix_socket_can_have_a_proxy(server: ServerFactory, tmp_path: Path) -> None:
    log, path = tmp_path / "access.log", tmp_path / "socket"
    forwarding(server, *logging(log), listen=f"unix:{path}")
    with connect(str(path)) as connection:
        assert connection.get("/hello.txt", "a", "X-Forwarded-For: 192.0.2.9").body == HELLO
    assert peers(log, 1) == ["192.0.2.9"]


def test_a_proxy_can_stand_behind_one_that_passes_bytes_on(
    server: ServerFactory, tmp_path: Path
) -> None:
    log = tmp_path / "access.log"
    running = forwarding(server, "--proxy-protocol", PROXY, *logging(log))
    with connect_from(running, PROXY, line("10.0.0.9")) as connection:
        assert connection.get("/hello.txt", "a", "X-Forwarded-For: 192.0.2.1").body == HELLO
    [each] = logged(log, 1)
    assert (each["peer"], each["via"]) == ("192.0.2.1", "10.0.0.9")


def test_requests_are_limited_for_each_client(server: ServerFactory) -> None:
    limits = ("--address-request-rate", "1", "--address-connections", "1", "--workers", "1")
    running = forwarding(server, *limits)
    with connect_from(running, PROXY) as connection, connect_from(running, PROXY) as other:
        first, second = (f"X-Forwarded-For: 192.0.2.{number}" for number in (1, 2))
        statuses = [connection.get("/hello.txt", "a", first).status for _ in range(100)]
        assert statuses[:10] == [200] * 10
        assert 429 in statuses
        assert other.get("/hello.txt", "a", second).status == 200
        assert connection.get("/hello.txt", "a", second).status == 200
    wait_for(running, lambda now: now["counters"]["requests_limited"] == statuses.count(429))


def test_the_log_has_a_well_formed_trace(server: ServerFactory, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    running = server(*logging(log))
    with connect(running.address) as connection:
        for number, fields in enumerate(
            [
                [f"traceparent: {TRACE}"],
                [f"Traceparent: {TRACE.upper()}"],
                [f"Traceparent: {TRACE}", f"Traceparent: {TRACE}"],
                [],
            ]
        ):
            assert connection.get(f"/hello.txt?{number}", "a", *fields).body == HELLO
    assert [each.get("traceparent") for each in logged(log, 4)] == [TRACE, None, None, None]


def test_the_combined_log_ends_with_the_trace(server: ServerFactory, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    running = server("--access-log", str(log))
    with connect(running.address) as connection:
        assert connection.get("/hello.txt?1", "a", f"Traceparent: {TRACE}").body == HELLO
        assert connection.get("/hello.txt?2").body == HELLO
    wait_until(lambda: len(log.read_text().splitlines()) == 2, "two lines")
    traced, other = sorted(log.read_text().splitlines(), key=lambda line: "?2" in line)
    assert traced.endswith(f" {TRACE}")
    assert len(traced.split()) == len(other.split()) + 1


@pytest.mark.parametrize("model", ["epoll"])
def test_check_warns_of_settings_that_trust_all_or_do_nothing(
    server: ServerFactory, tmp_path: Path, model: str
) -> None:
    del server, model  # one run is enough
    done = weir("check", ".", "--forwarded-from", "::/0", cwd=tmp_path)
    assert "any client can claim to be any other" in done.stderr
    done = weir("check", ".", "--forwarded-field", "forwarded", cwd=tmp_path)
    assert "no effect without `forwarded-from`" in done.stderr
    done = weir("check", ".", "--forwarded-field", "x-real-ip", cwd=tmp_path)
    assert done.returncode != 0
    assert "is not x-forwarded-for or forwarded" in done.stderr


def test_rules_admit_the_client_and_not_the_proxy(
    server: ServerFactory, site: Path, tmp_path: Path
) -> None:
    conf = tmp_path / "weir.conf"
    conf.write_text(
        f"[server]\nlisten = {EVERYWHERE}\nproxy-protocol = {ELSEWHERE}\nforwarded-from = {PROXY}\n"
        f"[site a]\nroot = {site}\n[path /hello.txt]\nallow = 192.0.2.0/24\n"
    )
    running = server("-c", str(conf), folder=None, listen=())
    statuses = {"192.0.2.1": 200, "198.51.100.1": 403}
    for client, status in statuses.items():
        with connect_from(running, ELSEWHERE, line(client)) as connection:
            assert connection.get("/hello.txt").status == status
        with connect_from(running, PROXY) as connection:
            field = f"X-Forwarded-For: {client}"
            assert connection.get("/hello.txt", "a", field).status == status
            assert connection.get("/hello.txt").status == 403
