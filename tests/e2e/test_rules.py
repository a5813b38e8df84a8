# SPDX-License-Identifier: MIT
"""Rules for paths in a running server. What each rule does is in the conformance cases."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import ServerFactory
from tests.e2e.http2 import Client, connect2
from tests.e2e.running import Server
from tests.e2e.test_reload import reload
from tests.e2e.wire import TIMEOUT_S, Answer, Connection, connect
from tests.waiting import wait_until

LONG = [("X-" + letter, letter * 330) for letter in "ABCDEFGHIJKL"]


def write(path: Path, site: Path, paths: str) -> Path:
    """Writes a configuration in one step."""
    fresh = path.with_suffix(".new")
    listen = "listen = 127.0.0.1:0\nh2c = on"
    fresh.write_text(f"[server]\n{listen}\n[site a]\nroot = {site}\n{paths}\n")
    fresh.rename(path)
    return path


def configured(server: ServerFactory, conf: Path) -> Server:
    return server("-c", str(conf), folder=None, listen=())


def get(running: Server, path: str) -> Answer:
    with connect(running.address) as connection:
        return connection.get(path)


@contextlib.contextmanager
def connect_from(source: str, running: Server) -> Iterator[Connection]:
    """A connection from another address of this machine. All of 127.0.0.0/8 is."""
    made = socket.create_connection(running.address, TIMEOUT_S, source_address=(source, 0))
    connection = Connection(made)
    try:
        yield connection
    finally:
        connection.close()


def statuses(source: str, running: Server, paths: list[str], *, http2: bool) -> list[int]:
    with connect_from(source, running) as connection:
        client = Client(connection) if http2 else connection
        return [client.get(path).status for path in paths]


def test_a_cached_file_is_sent_to_no_client_that_a_rule_denies(
    server: ServerFactory, tmp_path: Path, site: Path
) -> None:
    (site / "in").mkdir()
    (site / "in/index.html").write_text("index\n")
    (site / "in/a.txt").write_text("secret\n")
    (site / "in/big.bin").write_bytes(bytes(300_000))
    rules = (
        "[path /in/**]\nallow = 127.0.0.0/8\ndeny = 127.0.9.0/24\n"
        "[path /in/open/**]\nallow = all\nrewrite = /hello.txt\n"
        "[path /in/moved]\nredirect = 301 /hello.txt"
    )
    running = configured(server, write(tmp_path / "weir.conf", site, rules))
    paths = ["/in/a.txt", "/in/", "/in/big.bin", "/in", "/in/open/x", "/in/moved", "/in/none"]
    admitted, denied = [200, 200, 200, 301, 200, 301, 404], [403, 403, 403, 403, 200, 403, 403]
    for _ in range(2):
        for http2 in (False, True):
            assert statuses("127.0.0.1", running, paths, http2=http2) == admitted
            assert statuses("127.0.9.7", running, paths, http2=http2) == denied
            assert statuses("127.0.9.7", running, ["/hello.txt"], http2=http2) == [200]


@pytest.mark.parametrize("model", ["percore"])
def test_a_client_of_a_unix_socket_has_no_address(
    server: ServerFactory, tmp_path: Path, site: Path
) -> None:
    place = tmp_path / "s"
    conf = write(tmp_path / "weir.conf", site, "[path /a/**]\nallow = 0.0.0.0/0, ::/0")
    conf.write_text(
        conf.read_text().replace("listen = ", f"listen = unix:{place}, ", 1)
        + "\n[path /b/**]\nallow = all\n"
    )
    configured(server, conf)
    with connect(str(place)) as connection:
        assert connection.get("/a/x").status == 403
        assert connection.get("/b/x").status == 404


def test_a_reload_applies_changed_rules_and_refuses_wrong_ones(
    server: ServerFactory, tmp_path: Path, site: Path
) -> None:
    conf = write(tmp_path / "weir.conf", site, "[path /*.txt]\nheader = X-Rule: one")
    running = configured(server, conf)
    assert get(running, "/hello.txt").get("X-Rule") == "one"
    write(conf, site, "[path /*.txt]\nheader = X-Rule: two\n[path /hello.txt]\nstatus = 410")
    assert reload(running)[0]
    wait_until(lambda: get(running, "/hello.txt").status == 410, "the new rules are in force")
    write(conf, site, "[path *.txt]\nheader = X-Rule: three")
    good, text = reload(running)
    assert not good
    assert f"{conf}:6: error: [path *.txt]: the pattern does not begin with a slash" in text
    # On a busy machine a worker of the first configuration may still accept a connection.
    wait_until(lambda: get(running, "/hello.txt").status == 410, "the new rules stay in force")


def test_a_changed_file_keeps_the_fields_of_its_rule(
    server: ServerFactory, tmp_path: Path, site: Path
) -> None:
    conf = write(tmp_path / "weir.conf", site, "[path /*.txt]\nheader = X-Rule: one")
    running = configured(server, conf)
    with connect(running.address) as connection:
        for _ in range(3):
            answer = connection.get("/hello.txt")
            assert (answer.body, answer.get("X-Rule")) == (b"hello\n", "one")
    (site / "hello.txt").write_text("changed\n")
    wait_until(lambda: get(running, "/hello.txt").body == b"changed\n", "the new file is served")
    assert get(running, "/hello.txt").get("X-Rule") == "one"


def test_redirects_have_the_fields_of_all_rules_of_their_path(
    server: ServerFactory, tmp_path: Path, site: Path
) -> None:
    rules = (
        "[path /old/**]\nheader = X-Old: yes\nredirect = 301 /new/**\n"
        "[path /**/deep]\nheader = X-Deep: yes\n[path /moved]\nredirect = 302 https://b.test/x\n"
        "[path /old/query]\nredirect = 307 /found?a=1\n"
        "[path /api/**]\ncors = https://c.test, https://d.test\nredirect = 308 /v2/**\n"
    )
    expected = {  # path -> status, Location, X-Old, X-Deep
        "/old/a%20b": (301, "/new/a%20b", "yes", None),
        "/old/a?x=1&y": (301, "/new/a?x=1&y", "yes", None),
        "/old/a/deep": (301, "/new/a/deep", "yes", "yes"),
        "/moved": (302, "https://b.test/x", None, None),
        "/moved?x": (302, "https://b.test/x?x", None, None),
        "/old/query?b": (307, "/found?a=1", "yes", None),
        "/api/x": (308, "/v2/x", None, None),
    }
    names = ("Location", "X-Old", "X-Deep")
    running = configured(server, write(tmp_path / "weir.conf", site, rules))
    with connect(running.address) as connection, connect2(running.address) as client:
        for path, wanted in [*expected.items(), *expected.items()]:
            for answer in (connection.get(path), client.get(path)):
                assert (answer.status, *map(answer.get, names)) == wanted
                assert (answer.body, answer.get("Content-Length")) == (b"", "0")
        for origin, line in [("https://d.test", "https://d.test"), ("https://e.test", None)]:
            for answer in (
                connection.get("/api/x", "a", f"Origin: {origin}"),
                client.get("/api/x", (b"origin", origin.encode())),
            ):
                assert answer.get("Access-Control-Allow-Origin") == line
                assert (answer.get("Location"), answer.get("Vary")) == ("/v2/x", "Origin")


def test_fields_of_the_greatest_length_fit_into_every_answer(
    server: ServerFactory, tmp_path: Path, site: Path
) -> None:
    lines = "".join(f"header = {name}: {value}\n" for name, value in LONG)
    rules = f"[path /**]\nalways = on\n{lines}[path /old]\nredirect = 301 /{'n' * 900}"
    conf = write(tmp_path / "weir.conf", site, rules)
    (site / "big.bin").write_bytes(bytes(300_000))
    (site / "folder").mkdir()
    running = configured(server, conf)
    expected = {"/hello.txt": 200, "/big.bin": 200, "/old": 301, "/folder": 301, "/none": 404}
    with connect(running.address) as connection, connect2(running.address) as client:
        for path, status in [*expected.items(), *expected.items()]:
            for answer in (connection.get(path), client.get(path)):
                assert answer.status == status
                assert [answer.get(name) for name, _ in LONG] == [value for _, value in LONG]
                if status == 200:
                    assert answer.body == (site / path[1:]).read_bytes()


@pytest.mark.parametrize("model", ["percore"])
def test_a_listing_and_its_folder_have_the_fields_of_their_paths(
    server: ServerFactory, tmp_path: Path, site: Path
) -> None:
    (site / "list").mkdir()
    (site / "list/a.txt").write_text("a\n")
    rules = "listing = on\n[path /list/]\nheader = X-List: yes\n[path /list]\nheader = X-Name: yes"
    running = configured(server, write(tmp_path / "weir.conf", site, rules))
    with connect(running.address) as connection, connect2(running.address) as client:
        for source in (connection, client):
            for _ in range(2):
                answer = source.get("/list/")
                assert (answer.status, answer.get("X-List")) == (200, "yes")
                assert answer.get("X-Name") is None
                answer = source.get("/list")
                assert (answer.status, answer.get("X-Name")) == (301, "yes")
                assert answer.get("X-List") is None


@pytest.mark.parametrize("model", ["percore"])
@pytest.mark.parametrize(
    "rule", ["deny = all", "status = 410", "redirect = 302 /", "rewrite = /list/a.txt"]
)
def test_a_listing_shows_no_readme_that_its_own_rules_keep_back(
    server: ServerFactory, tmp_path: Path, site: Path, rule: str
) -> None:
    for folder in ("list", "open"):
        (site / folder).mkdir()
        (site / folder / "a.txt").write_text("a\n")
        (site / folder / "README.md").write_text("the words of the file\n")
    rules = f"listing = on\n[path /list/README.md]\n{rule}"
    running = configured(server, write(tmp_path / "weir.conf", site, rules))
    with connect(running.address) as connection, connect2(running.address) as client:
        for source in (connection, client):
            for path, shown in (("/open/", True), ("/list/", False), ("/list/README.md", False)):
                assert (b"the words of the file" in source.get(path).body) == shown


def test_a_site_that_only_redirects_needs_no_root(
    server: ServerFactory, tmp_path: Path, site: Path
) -> None:
    """It is there at the start, and after a reload."""
    conf = tmp_path / "weir.conf"
    old = "[site old]\nhost = old.example\n[path /**]\nredirect = 301 http://new.example/**"
    running = configured(server, write(conf, site, old))
    for _ in range(2):
        with connect(running.address) as connection:
            answer = connection.get("/a/b?c", "old.example")
        assert (answer.status, answer.get("Location")) == (301, "http://new.example/a/b?c")
        assert get(running, "/hello.txt").body == b"hello\n"
        assert reload(running)[0]
