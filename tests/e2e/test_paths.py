# SPDX-License-Identifier: MIT
"""Settings of paths in a running server: passwords, on every model, over HTTP/1.1 and HTTP/2."""

from __future__ import annotations

import gzip
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.e2e.certificates import Pair
from tests.e2e.conftest import ServerFactory
from tests.e2e.http2 import connect2
from tests.e2e.running import Server
from tests.e2e.test_auth import ALICE, BOB, Way, basic, field, ways, weir
from tests.e2e.test_reload import reload, wait_until_only
from tests.e2e.wire import Answer, connect
from tests.waiting import wait_until

ONE_MODEL = pytest.mark.parametrize("model", ["percore"])
STAFF = 'Basic realm="Staff", charset="UTF-8"'
PAGE = 'Basic realm="Restricted", charset="UTF-8"'

RULES = """
listing = on
markdown = on
site-rules = on
header = Cache-Control: public, max-age=60
spa = app/app.html
[path /staff/**]
auth = {alice}
auth-realm = Staff
[path /staff/open/**]
auth = off
[path /page.html]
auth = {bob}
[path /docs/index.html]
auth = {alice}
[path /app/**]
auth = {alice}
[path /list/README.md]
auth = {alice}
[path /list/closed/**]
auth = {alice}
[path /notes/page.md]
auth = {alice}
[path /in/**]
rewrite = /staff/**
[path /portal/**]
auth = {bob}
rewrite = /staff/**
[path /moved]
redirect = 301 /staff/
[path /staff/old]
redirect = 301 /hello.txt
[path /staff/gone]
status = 410
"""


@pytest.fixture
def lists(tmp_path: Path) -> dict[str, Path]:
    """The files of users. The password of both is `sesame`."""
    made = {}
    for name, line in (("alice", ALICE), ("bob", BOB)):
        made[name] = tmp_path / f"{name}.users"
        made[name].write_text(line)
        made[name].chmod(0o640)
    return made


@pytest.fixture
def guarded(site: Path) -> Path:
    """A site in which some files are secret."""
    for name in ("staff/open", "docs", "app", "list/closed", "errors", "notes"):
        (site / name).mkdir(parents=True)
    for name in (
        "staff/index.html", "staff/secret.txt", "page.html", "docs/index.html", "app/app.html",
        "list/README.md", "list/closed/x.txt", "notes/page.md",
    ):  # fmt: skip
        (site / name).write_text(f"the secret of {name}\n")
    (site / "page.html.gz").write_bytes(gzip.compress((site / "page.html").read_bytes()))
    (site / "staff/big.bin").write_bytes(b"secret" * 50_000)
    (site / "staff/open/a.txt").write_text("open\n")
    (site / "list/b.txt").write_text("b\n")
    (site / "notes/page.html").write_text("<p>open</p>\n")
    (site / "_headers").write_text("/staff/secret.txt\n  Cache-Control: public, s-maxage=9\n")
    (site / "_redirects").write_text("/r/* /staff/:splat 200\n/s/* /staff/secret.txt 200!\n")
    for status in (401, 404):
        (site / f"errors/{status}.html").write_text(f"own page {status}\n")
    return site


def configured(
    server: ServerFactory,
    tmp_path: Path,
    site: Path,
    lists: dict[str, Path],
    pair: Pair | None = None,
) -> Server:
    """With `pair`, the server has an address with TLS, too."""
    conf = tmp_path / "weir.conf"
    tls = f"tls-certificate = {pair.certificate}\ntls-key = {pair.key}\n" if pair else ""
    rules = RULES.format(**lists)
    conf.write_text(f"[site a]\nroot = {site}\nerror-pages = {site}/errors\n{tls}{rules}")
    listen = ("127.0.0.1:0", "https://127.0.0.1:0") if pair else ("127.0.0.1:0",)
    return server("-c", str(conf), "--h2c", folder=None, listen=listen)


def is_private(answer: Answer) -> bool:
    """Whether shared caches keep the answer out. Else it must be public."""
    values = answer.all("cache-control")
    assert values in (["private"], ["public, max-age=60"], [])
    return values == ["private"]


# ---- who has access ----

# A path, the user whose password it needs, and the status that this user gets.
NEEDED = [
    ("/hello.txt", None, 200),
    ("/staff/secret.txt", "alice", 200),
    ("/staff/big.bin", "alice", 200),
    ("/staff/", "alice", 200),
    ("/staff", "alice", 301),
    ("/staff/none.css", "alice", 404),
    ("/staff/old", "alice", 301),
    ("/staff/gone", "alice", 410),
    ("/staff/open/a.txt", None, 200),
    ("/page.html", "bob", 200),
    ("/page.html.gz", "bob", 200),
    ("/docs/", "alice", 200),
    ("/in/secret.txt", "alice", 200),
    ("/in/", "alice", 200),
    ("/in", "alice", 200),
    ("/in/open/a.txt", None, 200),
    ("/portal/secret.txt", "alice", 200),
    ("/portal/open/a.txt", "bob", 200),
    ("/moved", None, 301),
    ("/list/", None, 200),
    ("/list/closed/", "alice", 200),
    ("/none", None, 404),
]


def check_path(way: Way, path: str, user: str | None, status: int) -> None:
    """The path needs the password of this user, before and after it is in the cache."""
    for _ in range(2):
        answer = way.get(path)
        if not user:
            assert (answer.status, is_private(answer)) == (status, False), (way.name, path)
            continue
        challenge = PAGE if user == "bob" or path.startswith(("/docs", "/list")) else STAFF
        assert (answer.status, answer.get("www-authenticate")) == (401, challenge), (way.name, path)
        assert answer.body == b"own page 401\n"
        assert is_private(answer)
        answer = way.get(path, field(user))
        assert (answer.status, is_private(answer)) == (status, True), (way.name, path)


def test_each_path_needs_the_password_of_its_section(
    server: ServerFactory, tmp_path: Path, guarded: Path, lists: dict[str, Path], pair: Pair
) -> None:
    running = configured(server, tmp_path, guarded, lists, pair)
    with ways(running, pair) as all_ways:
        for way in all_ways:
            for path, user, status in NEEDED:
                check_path(way, path, user, status)
            # A right password of another section is wrong here.
            assert way.get("/staff/secret.txt", field("bob")).status == 401
            assert way.get("/page.html", field("alice")).status == 401
            tag = way.get("/page.html", field("bob")).get("etag")
            for line in (f"If-None-Match: {tag}", "Range: bytes=1-2"):
                assert way.get("/page.html", line).status == 401
                answer = way.get("/page.html", line, field("bob"))
                assert answer.status in (304, 206)
                assert is_private(answer)
    assert running.messages().count("error") == 0


SECRET_PATHS = [
    "/staff/secret.txt", "//staff/secret.txt", "/staff//secret.txt", "/./staff/secret.txt",
    "/x/../staff/secret.txt", "/staff/open/../secret.txt", "/staff/%73ecret.txt",
    "/%73taff/secret.txt", "/staff%2fsecret.txt", "/staff/open/%2e%2e/secret.txt",
    "/staff/open/..%2fsecret.txt", "/staff/secret.txt?x=1", "/staff/secret.txt/",
    "/staff/secret.txt.gz", "/staff/", "/staff/index.html", "/staff/big.bin", "/in/secret.txt",
    "/in/", "/in/open/../secret.txt", "/portal/secret.txt", "/page.html", "/page.html.gz",
    "/page.html.br", "/docs/", "/docs/index.html", "/docs", "/docs/?sort=size", "/app/app.html",
    "/app/", "/nowhere", "/list/", "/list/?sort=time&order=desc", "/list/README.md",
    "/r/secret.txt", "/s/x", "/notes/page.md", "/notes/page.html", "/notes/page",
    "/list/closed/", "/list/closed/x.txt",
    "/.well-known/acme-challenge/../../staff/secret.txt", "/.well-known/acme-challenge/none",
]  # fmt: skip

FIELDS: list[tuple[str, ...]] = [
    (),
    ("Range: bytes=0-3",),
    ("Accept-Encoding: gzip, br",),
    ("Accept: application/json",),
    ("Accept: text/html",),
    ("Accept: text/markdown",),
    ("If-Modified-Since: Sat, 01 Jan 2000 00:00:00 GMT",),
    ("Authorization: Basic",),
    ("X-Original-URL: /hello.txt", "X-Rewrite-URL: /hello.txt"),
]


@ONE_MODEL
def test_no_form_of_a_request_goes_round_the_password_of_a_path(
    server: ServerFactory, tmp_path: Path, guarded: Path, lists: dict[str, Path], pair: Pair
) -> None:
    running = configured(server, tmp_path, guarded, lists, pair)
    with ways(running, pair) as all_ways:
        for way in all_ways:
            for path in SECRET_PATHS:
                for fields in FIELDS:
                    answer = way.get(path, *fields)
                    assert b"secret" not in answer.body, (way.name, path, fields)
                    assert b"closed" not in answer.body
                    assert answer.status in (200, 301, 304, 206, 401, 404), (way.name, path)
                    if not path.startswith(("/list/", "/notes/page.html")):
                        assert answer.status in (401, 404) or path == "/docs", (way.name, path)
                # From now on the cache has the secret.
                way.get(path, field("bob" if path.startswith("/page") else "alice"))


@ONE_MODEL
def test_a_listing_shows_what_its_client_may_have(
    server: ServerFactory, tmp_path: Path, guarded: Path, lists: dict[str, Path]
) -> None:
    running = configured(server, tmp_path, guarded, lists)
    with connect(running.address) as connection:
        for fields in ([], ["Accept: application/json"], [field("alice")]):
            body = connection.get("/list/", "a", *fields).body
            assert b"b.txt" in body
            assert b"README" not in body
            assert b"closed" not in body
        body = connection.get("/list/closed/", "a", field("alice")).body
        assert b"x.txt" in body


@pytest.mark.parametrize("lines", ["spa = index.html", "[path /**]\nrewrite = /index.html"])
@ONE_MODEL
def test_a_challenge_is_not_answered_with_a_page_that_needs_a_password(
    server: ServerFactory, tmp_path: Path, site: Path, lists: dict[str, Path], lines: str
) -> None:
    conf = tmp_path / "weir.conf"
    conf.write_text(f"[site a]\nroot = {site}\nauth = {lists['alice']}\n{lines}\n")
    running = server("-c", str(conf), folder=None)
    with connect(running.address) as connection:
        for _ in range(2):
            answer = connection.get("/.well-known/acme-challenge/none")
            assert answer.status in (403, 404)
            assert b"site" not in answer.body
            assert connection.get("/none", "a", field("alice")).status == 200


# ---- files ----


def test_a_path_can_have_its_own_index_fallback_and_hidden_files(
    server: ServerFactory, tmp_path: Path, site: Path
) -> None:
    for name in ("app", "api", "docs/.old", ".well-known"):
        (site / name).mkdir(parents=True)
    for name in (
        "app/app.html", "docs/first.html", "docs/index.html", "docs/.old/a.txt", ".secret",
        "docs/.old/.b.txt",
    ):  # fmt: skip
        (site / name).write_text(name)
    conf = tmp_path / "weir.conf"
    conf.write_text(
        f"[site a]\nroot = {site}\nspa = index.html\n"
        "[path /app/**]\nspa = app/app.html\n[path /api/**]\nspa = off\n"
        "[path /docs/**]\nindex = first.html\nhidden = on\nlisting = on\n"
        "[path /docs/.old/.*]\nhidden = off\n[path /to/**]\nrewrite = /docs/**\n"
    )
    running = server("-c", str(conf), "--h2c", folder=None)
    index = (site / "index.html").read_text()
    expected = [
        ("/none", 200, index), ("/app/none", 200, "app/app.html"), ("/api/none", 404, None),
        ("/docs/", 200, "docs/first.html"), ("/docs/.old/a.txt", 200, "docs/.old/a.txt"),
        ("/docs/.old/.b.txt", 404, None), ("/.secret", 404, None),
        ("/to/", 200, "docs/index.html"), ("/to/.old/a.txt", 404, None),
        ("/docs/.none.txt", 404, None),
    ]  # fmt: skip
    with connect(running.address) as connection, connect2(running.address) as client:
        for _ in range(2):
            for path, status, body in expected:
                for answer in (connection.get(path), client.get(path)):
                    assert answer.status == status, path
                    assert body is None or answer.body.decode() == body, path
        assert b".b.txt" in connection.get("/docs/.old/").body
        (site / "docs/.none.txt").write_text("new")
        wait_until(lambda: connection.get("/docs/.none.txt").status == 200, "the new file")


def with_error_pages(tmp_path: Path, site: Path, users: Path, tls: str = "") -> Path:
    """A configuration with pages of errors for the site, and for two of its paths."""
    for name, statuses in (("site", (403, 404)), ("api", (401, 404, 410, 412)), ("old", (403,))):
        folder = tmp_path / f"errors-{name}"
        folder.mkdir()
        for status in statuses:
            (folder / f"{status}.html").write_text(f"{status} of {name}\n")
    (site / "api").mkdir()
    (site / "api/data.txt").write_text("data\n")
    conf = tmp_path / "weir.conf"
    conf.write_text(
        f"[site a]\nroot = {site}\nerror-pages = {tmp_path}/errors-site\n{tls}"
        f"[path /api/**]\nerror-pages = {tmp_path}/errors-api\n"
        f"[path /api/staff/**]\nauth = {users}\n"
        "[path /api/gone]\nstatus = 410\n"
        "[path /api/closed/**]\ndeny = all\n"
        f"[path /api/old/**]\nerror-pages = {tmp_path}/errors-old\n"
        "[path /api/old/closed]\nstatus = 403\n"
    )
    return conf


# A path, a field of the request, and the status and the page of the answer. None: the built-in one.
PAGES = [
    ("/none", (), 404, "404 of site\n"),
    ("/api/none", (), 404, "404 of api\n"),
    ("/api/none", ("Authorization: Basic bm8=",), 404, "404 of api\n"),
    ("/api/gone", (), 410, "410 of api\n"),
    ("/api/data.txt", ('If-Match: "other"',), 412, "412 of api\n"),
    ("/hello.txt", ('If-Match: "other"',), 412, None),
    ("/api/staff/x", (), 401, "401 of api\n"),
    ("/api/closed/x", (), 403, "403 of site\n"),
    ("/api/old/none", (), 404, "404 of site\n"),
    ("/api/old/closed", (), 403, "403 of old\n"),
    ("/api/old/x", ("Expect: other",), 417, None),
    ("/api/data.txt", (), 200, "data\n"),
]


def test_a_path_can_have_its_own_error_pages(
    server: ServerFactory, tmp_path: Path, site: Path, lists: dict[str, Path], pair: Pair
) -> None:
    tls = f"tls-certificate = {pair.certificate}\ntls-key = {pair.key}\n"
    conf = with_error_pages(tmp_path, site, lists["alice"], tls)
    listen = ("127.0.0.1:0", "https://127.0.0.1:0")
    flags = ("--h2c", "--sandbox", "on")
    running = server("-c", str(conf), *flags, folder=None, listen=listen)
    with ways(running, pair) as all_ways:
        for way in all_ways:
            for _ in range(2):
                for path, fields, status, body in PAGES:
                    answer = way.get(path, *fields)
                    assert answer.status == status, (way.name, path)
                    if body is None:
                        assert b"<!doctype html>" in answer.body, (way.name, path)
                    else:
                        assert answer.body.decode() == body, (way.name, path)
    assert running.messages().count("error") == running.messages().count("errors-")


@ONE_MODEL
def test_error_pages_of_a_path_are_followed(
    server: ServerFactory, tmp_path: Path, site: Path, lists: dict[str, Path]
) -> None:
    conf = with_error_pages(tmp_path, site, lists["alice"])
    running = server("-c", str(conf), "--sandbox", "on", folder=None)

    def page() -> bytes:
        with connect(running.address) as connection:
            return connection.get("/api/none").body

    assert page() == b"404 of api\n"
    (tmp_path / "errors-api").rename(tmp_path / "aside")
    (tmp_path / "errors-api").mkdir()
    (tmp_path / "errors-api/404.html").write_text("another folder\n")
    wait_until(lambda: page() == b"another folder\n", "the page in the new folder")
    conf.write_text(conf.read_text().replace("errors-api", "aside"))
    assert reload(running)[0]
    wait_until(lambda: page() == b"404 of api\n", "the page of the new configuration")


def test_trace_and_check_name_the_section_with_the_error_page(
    tmp_path: Path, site: Path, lists: dict[str, Path]
) -> None:
    conf = with_error_pages(tmp_path, site, lists["alice"])
    api, old = (f"{tmp_path}/errors-{name}" for name in ("api", "old"))
    shown = weir("trace", "/api/none", "-c", str(conf)).stdout
    assert f"; error-pages = {api}" in shown
    assert f"that of {conf}:4: [path /api/**], from {api}" in shown
    shown = weir("trace", "/api/old/none", "-c", str(conf)).stdout
    assert f"the site's own, from {tmp_path}/errors-site" in shown
    assert f"there is no `404.html` in {old}\n" in shown
    assert f"{tmp_path}/errors-site/404.html" in shown
    shown = weir("check", str(conf), "--explain", "/api/old/x").stdout
    assert f"[path /api/old/**]; error-pages = {old}" in shown
    for name in (str(conf), os.path.relpath(conf)):
        shown = weir("check", "--explain", "/api/old/x", name).stdout
        assert f"[path /api/old/**]; error-pages = {old}" in shown


# ---- a whole server ----

CLIENTS, ROUNDS = 4, 6


def drive(running: Server, number: int) -> list[str]:
    """Requests open and secret files, with and without a password. Returns what is wrong."""
    wrong = []
    paths = [("/hello.txt", None), ("/staff/secret.txt", "alice"), ("/page.html", "bob")]
    with connect(running.address) as connection, connect2(running.address) as client:
        for turn in range(ROUNDS):
            for path, user in paths[turn % 3 :] + paths[: turn % 3]:
                for given in (None, user):
                    if number % 2:
                        fields = [(b"authorization", basic(given).encode())] if given else []
                        answer = client.get(path, *fields)
                    else:
                        lines = [field(given)] if given else []
                        answer = connection.get(path, "a", *lines)
                    expected = 200 if given == user else 401
                    if answer.status != expected or (b"secret" in answer.body) != bool(given):
                        wrong.append(f"{path} with {given}: {answer.status}")
    return wrong


def test_threads_share_the_passwords_of_paths(
    server: ServerFactory, tmp_path: Path, guarded: Path, lists: dict[str, Path]
) -> None:
    running = configured(server, tmp_path, guarded, lists)
    count = len(running.workers())
    for _ in range(2):
        with ThreadPoolExecutor(CLIENTS) as pool:
            for wrong in pool.map(lambda number: drive(running, number), range(CLIENTS)):
                assert wrong == []
        assert reload(running)[0]
        wait_until_only(running, count)  # the next clients meet new workers, and empty caches
    assert running.messages().count("error") == 0


@ONE_MODEL
def test_a_changed_list_of_a_path_is_used(
    server: ServerFactory, tmp_path: Path, guarded: Path, lists: dict[str, Path]
) -> None:
    running = configured(server, tmp_path, guarded, lists)

    def status(user: str) -> int:
        with connect2(running.address) as client:
            credentials = (b"authorization", basic(user).encode())
            return client.get("/page.html", credentials).status

    assert (status("alice"), status("bob")) == (401, 200)
    lists["bob"].write_text(ALICE)
    wait_until(lambda: status("alice") == 200, "the new list")
    assert status("bob") == 401


# ---- weir check, weir trace ----


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("[path /a/**]\nauth = {alice}", "[path /a/**]: {alice} has 1 user"),
        ("[path /a/**]\nauth = {broken}", ":3: error: {broken}:1: This is no hash"),
        ("[path /a/b]\nauth = {alice}\n[path /a/**]\nauth = off", "move this section before it"),
        ("auth = {alice}\n[path /**]\nauth = {bob}", "the `auth` of the site has no effect"),
        ("[path /a/**]\nauth = {alice}\n[path /**/*.js]\nauth = off", "some of the same paths"),
        ("[path /a/**]\nauth = {alice}\ncache-control = public", "shared caches"),
    ],
)
def test_overruled_passwords_are_reported(
    tmp_path: Path, site: Path, lists: dict[str, Path], lines: str, said: str
) -> None:
    broken = tmp_path / "broken"
    broken.write_text("alice:plain\n")
    broken.chmod(0o640)
    conf = tmp_path / "weir.conf"
    conf.write_text(f"[site a]\nroot = {site}\n{lines.format(**lists, broken=broken)}\n")
    done = weir("check", str(conf))
    assert said.format(**lists, broken=broken) in done.stdout + done.stderr


def test_explain_shows_the_sections_of_a_path(
    tmp_path: Path, guarded: Path, lists: dict[str, Path]
) -> None:
    conf = tmp_path / "weir.conf"
    conf.write_text(f"[site a]\nroot = {guarded}\n{RULES.format(**lists)}")
    text = conf.read_text().splitlines()

    def explained(*arguments: str) -> list[str]:
        done = weir("check", *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    def line(section: str) -> str:
        return f"{conf}:{text.index(section) + 1}"

    found = explained(str(conf), "--explain", "/x/../staff/%6fpen/a.txt?x=1")
    assert found == [
        "path /staff/open/a.txt",
        f"site a, {conf}:1",
        f"  rule        {conf}:1: [site a]; sets Cache-Control; listing = on; markdown = on",
        f"  rule        {line('[path /staff/**]')}: [path /staff/**]; auth = {lists['alice']}"
        "; the auth of a later rule holds",
        f"  rule        {line('[path /staff/open/**]')}: [path /staff/open/**]; auth = off",
        "  field       Cache-Control: public, max-age=60",
    ]
    found = explained("-c", str(conf), "--explain", "/portal/x")
    assert f"  password    of {lists['alice']}, by {line('[path /staff/**]')}" in found
    assert "  field       Cache-Control: private" in found
    refused = weir("check", str(conf), "--explain", "/a b")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "is no path of a request" in refused.stderr
    for arguments in ((str(conf), "/a"), (str(conf), "again", "--explain")):
        assert weir("check", *arguments).returncode == 2


def test_trace_names_the_section_with_the_password(
    tmp_path: Path, guarded: Path, lists: dict[str, Path]
) -> None:
    conf = tmp_path / "weir.conf"
    conf.write_text(f"[site a]\nroot = {guarded}\n{RULES.format(**lists)}")
    line = conf.read_text().splitlines().index("[path /staff/**]") + 1
    section = f"{conf}:{line}, [path /staff/**]"
    for path in ("/staff/secret.txt", "/in/secret.txt"):
        done = weir("trace", path, "-c", str(conf))
        assert f"{section} needs a password (`auth = {lists['alice']}`)" in done.stdout
        done = weir("trace", path, "-c", str(conf), "-H", field("alice"))
        assert f"right, by `auth = {lists['alice']}` of {section}" in done.stdout
    done = weir("trace", "/staff/open/a.txt", "-c", str(conf))
    assert "[path /staff/open/**]; auth = off" in done.stdout
    assert "needs a password" not in done.stdout
