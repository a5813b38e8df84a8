# SPDX-License-Identifier: MIT
"""The rules that come with a site, in `_headers` and `_redirects`, in a running server.

tests/unit/config/sitefile_test.c has what each line means.
"""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import pytest

from tests.e2e.certificates import Pair
from tests.e2e.conftest import ServerFactory
from tests.e2e.http2 import connect2
from tests.e2e.running import Server
from tests.e2e.statistics import read, wait_for
from tests.e2e.test_auth import ways
from tests.e2e.test_check import weir
from tests.e2e.test_roots import switch
from tests.e2e.test_rules import configured, get, write
from tests.e2e.wire import Answer, connect
from tests.waiting import wait_until

ONE_MODEL = pytest.mark.parametrize("model", ["percore"])

HEADERS = """\
# every page
/*
  X-Frame-Options: DENY
  Cache-Control: public, max-age=3600
/*.txt
  ! Cache-Control
  X-Text: one
/sub/*
  X-Text: two
"""

REDIRECTS = """\
/old/* /new/:splat
/date/:year/:month /:month-:year.html 301
/hello.txt /never 301
/index.html /forced 302!
/shop /closed.html 404
/left 410
/docs/* /hello.txt 200
/sub/app/* /sub/app.html 200
"""


def replace(path: Path, text: str) -> None:
    """Writes a file in one step."""
    fresh = path.with_name(".fresh")
    fresh.write_text(text)
    fresh.rename(path)


def make_site(site: Path, headers: str = HEADERS, redirects: str = REDIRECTS) -> Path:
    (site / "_headers").write_text(headers)
    (site / "_redirects").write_text(redirects)
    (site / "closed.html").write_text("closed\n")
    (site / "sub").mkdir()
    (site / "sub/a.txt").write_text("a\n")
    (site / "sub/app.html").write_text("app\n")
    (site / "sub/app").mkdir()
    return site


def following(server: ServerFactory, tmp_path: Path, site: Path, settings: str = "") -> Server:
    """A server of a site with `site-rules = on`."""
    conf = write(tmp_path / "weir.conf", site, f"site-rules = on\n{settings}")
    return configured(server, conf)


def summary(answer: Answer) -> tuple[int, str | None]:
    return answer.status, answer.get("Location")


def test_the_files_of_a_site_decide_its_answers(
    server: ServerFactory, site: Path, pair: Pair
) -> None:
    running = server(
        *(*pair.flags(), "--h2c", "--site-rules", "--listing=off"),
        folder=make_site(site),
        listen=("127.0.0.1:0", "https://127.0.0.1:0"),
    )
    with ways(running, pair) as each:
        for way in (*each, *each):
            assert summary(way.get("/old/a?x=1")) == (302, "/new/a?x=1")
            assert summary(way.get("/date/2026/11")) == (301, "/11-2026.html")
            assert summary(way.get("/index.html")) == (302, "/forced")
            assert summary(way.get("/left")) == (410, None)
            file = way.get("/hello.txt")
            assert (file.status, file.body) == (200, b"hello\n")
            assert file.get("X-Text") == "one"
            assert file.get("X-Frame-Options") == "DENY"
            assert file.get("Cache-Control") is None
            assert way.get("/sub/a.txt").get("X-Text") == "one, two"
            closed = way.get("/shop")
            assert (closed.status, closed.body) == (404, b"closed\n")
            assert closed.get("X-Frame-Options") == "DENY"
            assert closed.get("Cache-Control") is None
            page = way.get("/docs/any/page")
            assert (page.status, page.body) == (200, b"hello\n")
            assert page.get("Cache-Control") == "public, max-age=3600"
            for path in ("/sub/app/route", "/sub/app/"):
                assert way.get(path).body == b"app\n", path
            assert summary(way.get("/sub/app")) == (301, "/sub/app/")


@ONE_MODEL
def test_methods_and_conditions_hold_for_what_a_line_answers(
    server: ServerFactory, tmp_path: Path, site: Path
) -> None:
    make_site(site)
    (site / "closed.html").write_bytes(bytes(300_000))
    running = following(server, tmp_path, site)
    with connect(running.address) as connection:

        def ask(method: str, path: str, *fields: str) -> Answer:
            lines = [f"{method} {path} HTTP/1.1", "Host: a", *fields, "", ""]
            connection.send("\r\n".join(lines).encode())
            return connection.read(bodiless=method == "HEAD")

        assert summary(ask("HEAD", "/old/a")) == (302, "/new/a")
        head = ask("HEAD", "/shop")
        assert (head.status, head.get("Content-Length")) == (404, "300000")
        assert ask("GET", "/shop").body == bytes(300_000)
        assert ask("GET", "/shop", "Range: bytes=0-1").status == 404
        assert ask("POST", "/old/a", "Content-Length: 0").status == 405
        tag = ask("GET", "/docs/x").get("ETag")
        assert ask("GET", "/docs/y", f"If-None-Match: {tag}").status == 304
        assert ask("GET", "/docs/y", "Range: bytes=1-2").body == b"el"


def test_the_files_themselves_are_not_served(
    server: ServerFactory, tmp_path: Path, site: Path
) -> None:
    make_site(site)
    (site / "sub/_headers").write_text("a file like any other\n")
    (site / "_headers.gz").write_bytes(gzip.compress(HEADERS.encode()))
    replace(site / "_redirects", "/rewrite /_headers 200!\n")
    running = following(server, tmp_path, site, "listing = on\nindex = none.html\n")
    with connect(running.address) as connection, connect2(running.address) as client:
        for source in (connection, client):
            for path in ("_headers", "_redirects", "%5Fheaders", "rewrite", "_headers/"):
                assert source.get(f"/{path}").status == 404, path
            assert source.get("/_headers.gz").status == 404
            listing = source.get("/").body
            assert b"hello.txt" in listing
            assert b"_headers" not in listing
            assert b"_redirects" not in listing
            assert source.get("/sub/_headers").status == 200


def test_without_the_setting_they_are_files_like_any_other(
    server: ServerFactory, site: Path
) -> None:
    running = server(folder=make_site(site))
    assert get(running, "/_headers").body == HEADERS.encode()
    assert get(running, "/old/a").status == 404
    assert get(running, "/hello.txt").get("X-Text") is None


def test_a_change_is_read_again(server: ServerFactory, tmp_path: Path, site: Path) -> None:
    running = following(server, tmp_path, site, "[path /conf]\nheader = X-Conf: yes\n")
    assert get(running, "/old").status == 404
    replace(site / "_redirects", "/old /one 301\n")
    wait_until(lambda: get(running, "/old").get("Location") == "/one", "the first rules")
    replace(site / "_redirects", "/old /two 301\n")
    wait_until(lambda: get(running, "/old").get("Location") == "/two", "the second rules")
    replace(site / "_headers", "/*\n  X-New: yes\n")
    wait_until(lambda: get(running, "/hello.txt").get("X-New") == "yes", "the fields")
    (site / "_redirects").unlink()
    wait_until(lambda: get(running, "/old").status == 404, "the rules are gone")
    assert get(running, "/hello.txt").get("X-New") == "yes"
    assert f"{site}/_redirects has changed: the rules of the site are read" in running.messages()


def test_the_rules_of_a_release_come_with_its_files(server: ServerFactory, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "page.txt").write_text(name)
        (tmp_path / name / "_headers").write_text(f"/*\n  X-Release: {name}\n")
    link = tmp_path / "current"
    link.symlink_to(tmp_path / "one")
    running = following(server, tmp_path, link)

    def release() -> tuple[bytes, str | None]:
        answer = get(running, "/page.txt")
        return answer.body, answer.get("X-Release")

    assert release() == (b"one", "one")
    switch(link, tmp_path / "two")
    wait_until(lambda: release() == (b"two", "two"), "the second release is served")


@ONE_MODEL
def test_a_root_that_is_made_again_has_its_new_rules(
    server: ServerFactory, tmp_path: Path, site: Path
) -> None:
    (site / "_redirects").write_text("/old /one 301\n")
    running = following(server, tmp_path, site)
    assert summary(get(running, "/old")) == (301, "/one")
    shutil.rmtree(site)
    wait_until(lambda: get(running, "/hello.txt").status == 404, "the files are gone")
    site.mkdir()
    (site / "_redirects").write_text("/old /two 301\n")
    wait_until(lambda: get(running, "/old").get("Location") == "/two", "the rules are back")


@ONE_MODEL
def test_a_wrong_line_costs_only_itself_and_is_counted(
    server: ServerFactory, tmp_path: Path, site: Path
) -> None:
    lines = "/a /one 301\n/b /two 301 Country=de\n/c\n/d /four 301\n"
    make_site(site, headers="/x\n  no colon\n  X-Good: yes\n", redirects=lines)
    running = following(server, tmp_path, site)
    assert summary(get(running, "/a")) == (301, "/one")
    assert summary(get(running, "/d")) == (301, "/four")
    assert get(running, "/b").status == 404
    assert get(running, "/x").get("X-Good") == "yes"
    now = read(running.master.pid)
    assert now["gauges"]["site_rules_refused"] == 3
    assert "site-rules-refused" in [verdict["rule"] for verdict in now["verdicts"]]
    for place in ("_headers:2: `no colon`", "_redirects:2: `Country=de`", "_redirects:3: `/c`"):
        assert f" warning [{running.master.pid}] {site}/{place} " in running.messages()
    replace(site / "_redirects", "/a /one 301\n")
    replace(site / "_headers", "/x\n  X-Good: yes\n")
    wait_for(running, lambda now: now["gauges"]["site_rules_refused"] == 0)


@ONE_MODEL
def test_a_file_that_cannot_be_read_is_reported_and_the_site_is_served(
    server: ServerFactory, tmp_path: Path, site: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("/* /x 301!\n")
    (site / "_redirects").symlink_to(secret)
    (site / "_headers").write_text("#" * (256 * 1024 + 1))
    running = following(server, tmp_path, site)
    assert get(running, "/hello.txt").body == b"hello\n"
    messages = running.messages()
    assert f"{site}/_redirects: the file is a link that leaves the root of the site" in messages
    assert f"{site}/_headers: the file has more than 256 KiB; none of its lines" in messages
    assert read(running.master.pid)["gauges"]["site_rules_refused"] == 2


@ONE_MODEL
def test_files_of_the_greatest_length_are_used(
    server: ServerFactory, tmp_path: Path, site: Path
) -> None:
    headers = "".join(f"/{n}\n  X-Number: {n}\n" for n in range(100))
    redirects = "".join(f"/{n} /to/{n} 301\n" for n in range(2100))
    make_site(site, headers, redirects)
    running = following(server, tmp_path, site)
    with connect(running.address) as connection, connect2(running.address) as client:
        for source in (connection, client):
            for number in (0, 99, 100, 2099):
                answer = source.get(f"/{number}")
                assert summary(answer) == (301, f"/to/{number}")
                assert answer.get("X-Number") == (str(number) if number < 100 else None)
    assert read(running.master.pid)["gauges"]["site_rules_refused"] == 0


@ONE_MODEL
def test_a_rule_with_networks_guards_what_the_files_add(
    server: ServerFactory, tmp_path: Path, site: Path
) -> None:
    make_site(site)
    running = following(server, tmp_path, site, "[path /docs/**]\ndeny = all\n")
    for _ in range(2):
        assert get(running, "/docs/any").status == 403
        assert get(running, "/shop").status == 404


REFUSED = """\
[path /sub/closed/**]
deny = all
[path /sub/mine/**]
allow = 127.0.0.0/8, ::1
[path /sub/draft/**]
status = 404
"""

LEADING = """\
/absent/* /sub/:splat 200
/forced/* /sub/:splat 200!
/page /sub/closed/a.txt 404
/folder /sub/closed 200!
"""


@ONE_MODEL
def test_a_line_leads_to_nothing_that_a_section_refuses(
    server: ServerFactory, tmp_path: Path, site: Path
) -> None:
    make_site(site, redirects=LEADING)
    for name in ("closed", "mine", "draft"):
        (site / "sub" / name).mkdir(parents=True)
        (site / "sub" / name / "a.txt").write_text(name)
    (site / "sub/closed/index.html").write_text("closed")
    running = following(server, tmp_path, site, REFUSED)
    for _ in range(2):
        for path, status in (
            ("/absent/closed/a.txt", 404),
            ("/forced/closed/a.txt", 403),
            ("/absent/draft/a.txt", 404),
            ("/forced/draft/a.txt", 404),
            ("/folder", 403),
            ("/page", 404),
        ):
            answer = get(running, path)
            assert answer.status == status, path
            assert not {b"closed", b"draft"} & {answer.body}, path
        assert get(running, "/absent/mine/a.txt").body == b"mine"
        assert get(running, "/forced/mine/a.txt").body == b"mine"
    done = weir("trace", "/forced/closed/a.txt", "-c", "weir.conf", cwd=tmp_path)
    assert (
        f"{site}/_redirects:2, `/forced/*`, leads to a path that this client may not have"
        in done.stdout
    )


def test_check_names_each_line_that_cannot_be_used(tmp_path: Path, site: Path) -> None:
    make_site(site, redirects="/ok /fine\n/a https://b.example/:splat 200\n")
    conf = tmp_path / "weir.conf"
    conf.write_text(f"[site a]\nroot = {site}\nsite-rules = on\n")
    done = weir("check", "weir.conf", cwd=tmp_path)
    assert done.returncode == 0
    assert f"{site}/_redirects:2: warning: the target `https" not in done.stderr
    assert f"{site}/_redirects:2: warning: `https://b.example/:splat` is another" in done.stderr
    assert "1 warning" in done.stdout
    assert "site a: 3 paths of _headers and 1 line of _redirects can be used\n" in done.stdout
    conf.write_text(f"[site a]\nroot = {site}\n")
    done = weir("check", "weir.conf", cwd=tmp_path)
    assert "_redirects" not in done.stderr


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/old/a", "because     {site}/_redirects:1, `/old/*`, redirects the path"),
        ("/left", "because     {site}/_redirects:6, `/left`, gives this status to the path"),
        ("/shop", "{site}/_redirects:5: `/shop`; answers with 404 and the page at `/closed.html`"),
        ("/docs/x", "{site}/_redirects:7: `/docs/*`; answers with the file at `/hello.txt`, as"),
        ("/hello.txt", "{site}/_redirects:3: `/hello.txt`; redirects with 301 to `/never`, but "),
        ("/index.html", "because     {site}/_redirects:4, `/index.html`, redirects the path"),
        ("/sub/a.txt", "{site}/_headers:5: `/*.txt`; sets X-Text; removes Cache-Control\n"),
        ("/_headers", "`_headers` has rules of the site and is not served: site-rules = on"),
    ],
)
@pytest.mark.parametrize("version", ["1.1", "2"])
def test_a_trace_names_the_file_and_the_line(
    tmp_path: Path, site: Path, path: str, expected: str, version: str
) -> None:
    make_site(site)
    conf = tmp_path / "weir.conf"
    conf.write_text(f"[site a]\nroot = {site}\nsite-rules = on\n")
    done = weir("trace", path, "-c", "weir.conf", "--http-version", version, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert expected.format(site=site) in done.stdout
