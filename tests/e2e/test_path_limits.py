# SPDX-License-Identifier: MIT
"""Limits of the requests of an address for some paths, on every model, over HTTP/1.1 and HTTP/2.

The rates are so low that no test lives until an address may send its next request."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.conftest import ServerFactory
from tests.e2e.http2 import connect2
from tests.e2e.running import Server
from tests.e2e.statistics import read, settled, wait_for
from tests.e2e.test_auth import ALICE, field, weir
from tests.e2e.test_limits import EVERYWHERE, from_address
from tests.e2e.test_reload import reload, wait_until_only
from tests.e2e.wire import Connection, connect

ONE_MODEL = pytest.mark.parametrize("model", ["percore"])
RULES = """
[path /api/**]
address-request-rate = 1/h
address-request-burst = 3
header = X-Api: yes
always = on
[path /api/free/**]
address-request-rate = 0
[path /api/once]
address-request-rate = 1/h
redirect = 301 /hello.txt
"""


def configured(server: ServerFactory, tmp_path: Path, site: Path, more: str = "") -> Server:
    (site / "api/free").mkdir(parents=True)
    for name in ("api/a.txt", "api/b.txt", "api/free/c.txt"):
        (site / name).write_text(name)
    conf = tmp_path / "weir.conf"
    conf.write_text(f"[server]\n{more}\n[site a]\nroot = {site}\n{RULES}")
    return server("-c", str(conf), "--h2c", folder=None, listen=(EVERYWHERE,))


def statuses(connection: Connection, *paths: str) -> list[int]:
    return [connection.get(path).status for path in paths]


def test_an_address_that_asks_too_often_for_a_path_gets_429(
    server: ServerFactory, tmp_path: Path, site: Path
) -> None:
    running = configured(server, tmp_path, site)
    one = from_address(running, "127.0.0.1")
    # All paths of the section count together, also those without a file.
    assert statuses(one, "/api/a.txt", "/api/none", "/api/a.txt") == [200, 404, 200]
    refused = one.get("/api/b.txt")
    assert refused.status == 429
    assert 3000 < int(refused.get("Retry-After") or 0) <= 3600
    assert refused.get("X-Api") == "yes"
    # Other paths, sections and addresses have their own counts, or none.
    assert statuses(one, "/hello.txt", "/api/once", "/api/once") == [200, 301, 429]
    assert statuses(one, *["/api/free/c.txt"] * 9) == [200] * 9
    other = from_address(running, "127.0.0.2")
    assert statuses(other, *["/api/a.txt"] * 4) == [200, 200, 200, 429]
    # The count belongs to the address, and not to the connection or the protocol.
    again = from_address(running, "127.0.0.1")
    assert statuses(again, "/api/a.txt") == [429]
    port = running.address[1]
    with connect2(("127.0.0.1", port)) as second:
        answer = second.get("/api/a.txt")
        assert (answer.status, bool(answer.get("retry-after"))) == (429, True)
        assert second.get("/hello.txt").status == 200
    wait_for(running, lambda now: now["counters"]["requests_limited"] == 5)
    for each in (one, other, again):
        each.close()


@ONE_MODEL
def test_exempt_networks_have_no_limit_of_a_path(
    server: ServerFactory, tmp_path: Path, site: Path
) -> None:
    running = configured(server, tmp_path, site, "address-exempt = 127.0.0.1")
    with connect(running.address) as exempt:
        assert statuses(exempt, *["/api/a.txt"] * 9) == [200] * 9
    other = from_address(running, "127.0.0.2")
    assert statuses(other, *["/api/a.txt"] * 4) == [200, 200, 200, 429]
    other.close()
    assert read(running.master.pid)["counters"]["requests_limited"] == 1


def test_the_requested_path_counts_and_not_the_file_that_answers(
    server: ServerFactory, tmp_path: Path, site: Path
) -> None:
    errors = tmp_path / "errors"
    errors.mkdir()
    (errors / "404.html").write_text("not here")
    (errors / "429.html").write_text("too many here")
    (site / "folder").mkdir()
    (site / "folder/index.html").write_text("index")
    conf = tmp_path / "weir.conf"
    limited = "address-request-rate = 1/h\n"
    conf.write_text(
        f"[site a]\nroot = {site}\nerror-pages = {errors}\n"
        f"[path /old/*]\nrewrite = /new/*\naddress-request-burst = 2\n{limited}"
        f"[path /new/**]\n{limited}[path /folder/]\n{limited}"
        f"[path /app/**]\nspa = hello.txt\n{limited}"
        f"[path /folder/index.html]\naddress-request-rate = 0\n"
    )
    (site / "new").mkdir()
    (site / "new/page.txt").write_text("new")
    running = server("-c", str(conf), "--h2c", folder=None, listen=(EVERYWHERE,))
    for name, other in (("127.0.0.1", "127.0.0.2"), ("127.0.0.3", "127.0.0.4")):
        one = from_address(running, name)
        # A rewrite is counted for the path that was requested, and once.
        assert statuses(one, "/old/page.txt", "/old/page.txt", "/old/page.txt") == [200, 200, 429]
        assert statuses(one, "/new/page.txt", "/new/page.txt") == [200, 429]
        # So is an index file, a fallback and the page of an error.
        assert statuses(one, "/folder/", "/folder/") == [200, 429]
        assert statuses(one, *["/folder/index.html"] * 3) == [200] * 3
        assert statuses(one, "/app/any", "/app/more") == [200, 429]
        assert statuses(one, *["/absent"] * 3) == [404] * 3
        one.close()
        two = from_address(running, other)
        # An answer without a new body counts, and so does HEAD.
        tag = two.get("/old/page.txt").get("ETag")
        assert two.get("/old/page.txt", "a", f"If-None-Match: {tag}").status == 304
        assert two.get("/old/page.txt", "a", f"If-None-Match: {tag}").status == 429
        for expected in (200, 429):
            two.send(b"HEAD /new/page.txt HTTP/1.1\r\nHost: a\r\n\r\n")
            assert two.read(bodiless=True).status == expected
        two.close()


def test_a_refused_request_gets_the_page_of_its_path(
    server: ServerFactory, tmp_path: Path, site: Path
) -> None:
    """Also the first one, when the page is not in memory. It counts once, although it waits."""
    for name in ("site", "path"):
        (tmp_path / f"errors-{name}").mkdir()
        (tmp_path / f"errors-{name}/429.html").write_text(f"too many for the {name}")
    more = f"error-pages = {tmp_path}/errors-site\n[path /**]\naddress-request-rate = 1/h\n"
    conf = tmp_path / "weir.conf"
    conf.write_text(
        f"[site a]\nroot = {site}\n{more}[path /own/**]\nerror-pages = {tmp_path}/errors-path\n"
    )
    running = server("-c", str(conf), "--h2c", folder=None, listen=(EVERYWHERE,))
    expected = {"/own/any": b"too many for the path", "/hello.txt": b"too many for the site"}
    one = from_address(running, "127.0.0.1")
    with connect2(("127.0.0.1", running.address[1])) as two:
        assert one.get("/hello.txt").status == 200
        for get in (one.get, two.get):
            for path, body in expected.items():
                answer = get(path)
                assert (answer.status, answer.body) == (429, body)
                assert 3000 < int(answer.get("Retry-After") or 0) <= 3600
    one.close()
    assert settled(running)["counters"]["requests_limited"] == 4


def test_all_workers_share_the_count(server: ServerFactory, tmp_path: Path, site: Path) -> None:
    running = configured(server, tmp_path, site)
    clients = [from_address(running, "127.0.0.1") for _ in range(8)]
    for client in clients:
        client.send(b"GET /api/a.txt HTTP/1.1\r\nHost: a\r\n\r\n")
    assert sorted(client.read().status for client in clients) == [200] * 3 + [429] * 5
    for client in clients:
        client.close()


def test_a_request_that_a_password_refuses_does_not_count(
    server: ServerFactory, tmp_path: Path, site: Path
) -> None:
    users = tmp_path / "users"
    users.write_text(ALICE)
    users.chmod(0o640)
    conf = tmp_path / "weir.conf"
    conf.write_text(
        f"[site a]\nroot = {site}\n[path /hello.txt]\nauth = {users}\n"
        "address-request-rate = 1/h\naddress-request-burst = 2\n"
    )
    running = server("-c", str(conf), "--h2c", folder=None, listen=(EVERYWHERE,))
    one = from_address(running, "127.0.0.1")
    assert [one.get("/hello.txt", "a").status for _ in range(3)] == [401] * 3
    # The first password is compared by another thread. The request that waits is counted once.
    found = [one.get("/hello.txt", "a", field("alice")).status for _ in range(3)]
    assert found == [200, 200, 429]
    assert one.get("/hello.txt", "a").status == 401
    one.close()


@ONE_MODEL
def test_a_reload_begins_with_zero(server: ServerFactory, tmp_path: Path, site: Path) -> None:
    running = configured(server, tmp_path, site)
    with connect(running.address) as before:
        assert statuses(before, *["/api/a.txt"] * 4) == [200, 200, 200, 429]
    workers = len(running.workers())
    reload(running)
    wait_until_only(running, workers)
    with connect(running.address) as after:
        assert statuses(after, *["/api/a.txt"] * 4) == [200, 200, 200, 429]


def test_the_rule_with_the_limit_is_named(tmp_path: Path, site: Path) -> None:
    conf = tmp_path / "weir.conf"
    conf.write_text(f"[site a]\nroot = {site}\n{RULES}")
    for words in (
        ("trace", "/api/x", "-c", str(conf)),
        ("check", str(conf), "--explain", "/api/x"),
    ):
        shown = weir(*words).stdout
        assert f"{conf}:4: [path /api/**]; sets X-Api; address-request-rate = 1/h" in shown, shown
        assert "at most 3 at once" in shown
    for words in (
        ("trace", "/api/once", "-c", str(conf)),
        ("check", str(conf), "--explain", "/api/once"),
    ):
        shown = weir(*words).stdout
        assert "at most 3 at once; the rate of a later rule holds" in shown
        assert "address-request-rate = 1/h, at most 1 at once; redirects" in shown
    conf.write_text(
        f"[site a]\nroot = {site}\n[path /a]\naddress-request-burst = 2\nstatus = 410\n"
    )
    refused = weir("check", str(conf))
    assert refused.returncode != 0
    assert f"{conf}:4: error: address-request-burst" in refused.stdout + refused.stderr
