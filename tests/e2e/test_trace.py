# SPDX-License-Identifier: MIT
"""`weir trace` predicts the answer of the server, and names the cause."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.certificates import make
from tests.e2e.running import TOP, WEIR, Server, start
from tests.e2e.wire import connect
from tests.waiting import LIMIT_S

CONFIGURATION = """\
[server]
listen = 127.0.0.1:0
model = epoll
cache-file-max = 4K
cache-size = 64K
{user}

[site any]
root = {top}/site

[site list]
host = list.test
root = {top}/site
listing = on

[site spa]
host = spa.test
root = {top}/site
spa = index.html

[site pages]
host = pages.test
root = {top}/site
error-pages = {top}/errors
header = X-Frame-Options: DENY

[site open]
host = open.test
root = {top}/site
hidden = on

[site wild]
host = *.wild.test
root = {top}/site/sub

[site rules]
host = rules.test
root = {top}/site
header = X-Own: 1

[path /*.txt]
header = X-Text: yes
header = -X-Own

[path /old/*]
redirect = 301 /new/*

[path /old/kept.txt]
rewrite = /hello.txt

[path /gone]
status = 410

[path /sub/**]
allow = 10.0.0.0/8, ::1
deny = 10.0.9.0/24

[path /empty/**]
listing = on

[site ruled-list]
host = ruled-list.test
root = {top}/site/empty
listing = on

[path /]
listing = off

[site markdown]
host = markdown.test
root = {top}/site
markdown = on
"""

AGENT = "Accept: text/markdown, text/html;q=0.5"

OLD = "If-Modified-Since: Sat, 01 Jan 2000 00:00:00 GMT"
NEW = "If-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT"


@dataclass(frozen=True)
class Case:
    """A request, the answer it gets, and what is said of the cause or the way."""

    target: str
    status: int
    said: str = ""
    host: str = "localhost"
    fields: tuple[str, ...] = ()
    method: str = "GET"

    def __str__(self) -> str:
        return " ".join([self.method, self.host + self.target, *self.fields])


CASES = [
    Case("/hello.txt", 200, "kept in memory"),
    Case("/hello.txt?x=1", 200, "`x=1`"),
    Case("/sub/../%68ello.txt", 200, "after percent-decoding"),
    Case("/hello.txt", 200, "open.test` matches its `host = open.test`", "open.test"),
    Case("/", 200, "`a.wild.test` matches its `host = *.wild.test`", "a.wild.test"),
    Case("/", 200, "index.html is a file of"),
    Case("/link.txt", 200, "by a link to `hello.txt`"),
    Case("/big.bin", 200, "kept as 1 open file: larger than cache-file-max, 4096 bytes"),
    Case("/film.bin", 200, "from the content; no Last-Modified"),
    Case("/page.html", 200, "yes: Accept `text/markdown, text", "markdown.test", (AGENT,)),
    Case("/page.html", 200, "no: /page.md is for clients whose Accept", "markdown.test"),
    Case("/hello.txt", 200, "kept in memory", method="HEAD"),
    Case("/hello.txt", 200, "gzip: of the stored forms", fields=("Accept-Encoding: br, gzip",)),
    Case("/hello.txt", 200, "prefers the plain file", fields=("Accept-Encoding: gzip;q=0",)),
    Case("/older.txt", 200, "is older than the plain file", fields=("Accept-Encoding: gzip",)),
    Case("/hello.txt", 206, "1 part", fields=("Range: bytes=1-2",)),
    Case("/hello.txt", 206, "2 parts", fields=("Range: bytes=0-0,3-3",)),
    Case("/hello.txt", 200, "is ignored", fields=("Range: lines=1-2",)),
    Case("/hello.txt", 200, "does not match", fields=("Range: bytes=0-0", 'If-Range: "x"')),
    Case(
        "/hello.txt", 416, "the range `bytes=9-` is outside the file", fields=("Range: bytes=9-",)
    ),
    Case("/hello.txt", 304, "names the ETag", fields=("If-None-Match: {etag}",)),
    Case("/hello.txt", 304, "not modified since", fields=(NEW,)),
    Case("/hello.txt", 200, "do not change the answer", fields=(OLD,)),
    Case("/hello.txt", 412, 'If-Match `"x"` does not name', fields=('If-Match: "x"',)),
    Case("/sub", 301, "is a folder, and the path has no slash"),
    Case("/empty/", 403, "/site/empty/ has no index file, and listing = off"),
    Case("/empty/", 200, "as a page", "list.test"),
    Case("/empty/", 200, "as JSON", "list.test", ("Accept: application/json",)),
    Case("/out", 403, "the link `out` (to `/etc/passwd`) leaves the root"),
    Case("/sub/up", 403, "the link `up` (to `../../errors`) leaves the root"),
    Case("/loop", 403, "the link `loop` (to `loop`) is a link that must not be followed"),
    Case("/fifo", 403, "is neither a file nor a directory"),
    Case("/.secret", 404, "`.secret` is hidden: hidden = off"),
    Case("/.dir/x", 404, "`.dir` is hidden: hidden = off"),
    Case("/.secret", 200, "is a file of", "open.test"),
    Case("/sub/none/x", 404, "no `none` in {top}/site/sub"),
    Case("/dead", 404, "the link `dead` in {top}/site points to `nowhere`"),
    Case("/hello.txt/x", 404, "/site/hello.txt is not a folder"),
    Case("/route", 200, "a person probably opens it", "spa.test"),
    Case("/none.js", 404, "no `none.js` in", "spa.test"),
    Case("/none", 404, "no `none` in", "pages.test"),
    Case("/a%2fb", 404, "%2F, a slash inside a name"),
    Case("/../x", 400, "climbs above the root"),
    Case("/%zz", 400, "not followed by two hexadecimal digits"),
    Case("/a%00", 400, "a percent-encoded control byte"),
    Case("/a b", 400, "write %20 for a space in the target"),
    Case("/a#b", 400, "fragment"),
    Case("/", 400, "Host field is not a host name", host="a/b"),
    Case("/", 400, "more than one Host", fields=("Host: b",)),
    Case("/", 400, "no valid name before its colon", fields=("X y: 1",)),
    Case(
        "/",
        400,
        "both Content-Length and Transfer-Encoding",
        fields=("Content-Length: 0", "Transfer-Encoding: chunked"),
    ),
    Case(
        "/",
        413,
        "more bytes than the limit, 1048576",
        fields=("Content-Length: 2000000",),
        method="POST",
    ),
    Case("/", 414, "more bytes than the limit, 8192", host="{9000*x}"),
    Case("/", 417, "Expect is `tea`", fields=("Expect: tea",)),
    Case("/", 405, "POST is not allowed", method="POST"),
    Case("/", 501, "FROB is an unknown method", method="FROB"),
    Case("/", 501, "a coding other than `chunked`", fields=("Transfer-Encoding: gzip, chunked",)),
    Case("*", 204, method="OPTIONS"),
    Case("/hello.txt", 200, "[path /*.txt]; sets X-Text; removes X-Own", "rules.test"),
    Case("/", 200, "no [path] of the site covers the path", "rules.test"),
    Case("/sub/", 403, "{conf}:54, [path /sub/**], does not allow 127.0.0.1", "rules.test"),
    Case(
        "/old/a",
        301,
        "{conf}:45: [path /old/*]; redirects with 301 to `/new/*`",
        "rules.test",
    ),
    Case("/old/a", 301, "{conf}:45, [path /old/*], redirects the path", "rules.test"),
    Case("/old/kept.txt", 200, "`/new/*`, but a later rule decides", "rules.test"),
    Case("/old/kept.txt", 200, "answers with the file at `/hello.txt`", "rules.test"),
    Case("/empty/", 200, "[path /empty/**]; listing = on", "rules.test"),
    Case("/", 403, "listing = off for this path", "ruled-list.test"),
    Case("/gone", 410, "[path /gone], gives this status to the path", "rules.test"),
]


def make_site(top: Path) -> None:
    site = top / "site"
    for folder in ("sub", "empty", ".dir"):
        (site / folder).mkdir(parents=True)
    (top / "errors").mkdir()
    (top / "errors/404.html").write_text("<title>404</title>our own\n")
    for name in ("index.html", "sub/index.html", "hello.txt", "older.txt", ".secret", ".dir/x"):
        (site / name).write_text("hello\n")
    for name in ("hello.txt", "older.txt"):
        (site / f"{name}.gz").write_bytes(gzip.compress(b"hello\n"))
    os.utime(site / "older.txt.gz", (1_000_000_000, 1_000_000_000))
    for name in ("page.html", "page.md"):
        (site / name).write_text("hello\n")
    for name in ("big.bin", "film.bin"):
        (site / name).write_bytes(bytes(100_000))
    os.utime(site / "film.bin", (1, 1))
    for name, target in (
        ("link.txt", "hello.txt"),
        ("out", "/etc/passwd"),
        ("sub/up", "../../errors"),
        ("loop", "loop"),
        ("dead", "nowhere"),
    ):
        (site / name).symlink_to(target)
    os.mkfifo(site / "fifo")


@dataclass
class World:
    """A server, its configuration, and a folder of control sockets of its own."""

    top: Path
    place: Path
    servers: list[Server] = field(default_factory=list)

    @property
    def config(self) -> Path:
        return self.top / "weir.conf"

    def start(self, *arguments: str) -> Server:
        self.servers.append(
            start(
                list(arguments),
                self.top / f"stderr-{len(self.servers)}",
                environment={"RUNTIME_DIRECTORY": str(self.place)},
            )
        )
        return self.servers[-1]

    def trace(self, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [WEIR, "trace", *arguments],
            env={"PATH": os.defpath, "RUNTIME_DIRECTORY": str(self.place)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
            cwd=cwd or self.top,
        )

    def result(self, *arguments: str) -> dict[str, Any]:
        done = self.trace(*arguments, "--json")
        assert (done.returncode, done.stderr) == (0, ""), arguments
        result = json.loads(done.stdout)
        assert isinstance(result, dict)
        return result

    def filled(self, text: str) -> str:
        text = text.replace("{conf}", str(self.config))
        text = text.replace("{top}", str(self.top)).replace("{9000*x}", "localhost")
        return text.replace("{etag}", self.etag) if "{etag}" in text else text

    @property
    def etag(self) -> str:
        with connect(self.servers[0].address) as connection:
            return connection.get("/hello.txt", "localhost").get("ETag") or ""


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with tempfile.TemporaryDirectory() as top, tempfile.TemporaryDirectory() as place:
        made = World(Path(top).resolve(), Path(place))
        made.top.chmod(0o755)
        make_site(made.top)
        user = "user = nobody" if os.geteuid() == 0 else ""
        made.config.write_text(CONFIGURATION.format(top=made.top, user=user))
        made.start("-c", str(made.config))
        yield made
        for server in made.servers:
            if server.popen.poll() is None:
                server.stop()


def ask(server: Server, request: list[str], method: str) -> tuple[int, list[str]]:
    """The status and head that the server sends, without its date."""
    with connect(server.address) as connection:
        connection.send(("\r\n".join(request) + "\r\n\r\n").encode("latin-1"))
        answer = connection.read(bodiless=method == "HEAD")
    return answer.status, [f"{name}: {value}" for name, value in answer.fields if name != "Date"]


def undated(head: list[str]) -> list[str]:
    """The head without its date and the random boundary of a multipart body."""
    head = [re.sub("weir[0-9a-f]{16}", "*", line) for line in head]
    return [line for line in head if not line.startswith("Date: ")]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_prediction_equals_the_answer_of_the_server(world: World, case: Case) -> None:
    target = "/" + "x" * 9000 if case.host.startswith("{") else case.target
    host = world.filled(case.host)
    fields = [world.filled(line) for line in case.fields]
    words = [target, "-c", str(world.config), "--host", host, "--method", case.method]
    for line in fields:
        words += ["-H", line]
    result = world.result(*words)
    request = [f"{case.method} {target} HTTP/1.1", f"Host: {host}", *fields]
    status, head = ask(world.servers[0], request, case.method)
    assert (result["status"], undated(result["head"])) == (status, undated(head))
    assert result["status"] == case.status
    way = [step["text"] for step in result["steps"]]
    assert any(world.filled(case.said) in text for text in [result["cause"] or "", *way]), result
    assert (result["cause"] is None) == (case.status < 300)
    shown = world.trace(*words)
    assert shown.returncode == 0
    assert f"\nanswer      {case.status} " in shown.stdout
    assert f"because     {result['cause']}\n" in shown.stdout or not result["cause"]
    assert "\033" not in shown.stdout


def test_a_file_without_read_permission_is_named(world: World) -> None:
    closed = world.top / "site/closed"
    closed.mkdir()
    (closed / "x.txt").write_text("x\n")
    (closed / "x.txt").chmod(0)
    result = world.result("/closed/x.txt", "-c", str(world.config))
    user = "nobody" if os.geteuid() == 0 else ""
    assert result["status"] == 403
    assert result["cause"].startswith(f"permission denied on {closed}/x.txt for user {user}")
    closed.chmod(0)
    try:
        result = world.result("/closed/x.txt", "-c", str(world.config))
        request = ["GET /closed/x.txt HTTP/1.1", "Host: a"]
        assert ask(world.servers[0], request, "GET")[0] == result["status"]
        assert result["cause"].startswith(f"permission denied on {closed} for user {user}")
    finally:
        closed.chmod(0o755)


def test_rules_with_networks_are_explained_for_any_client(world: World) -> None:
    words = ["/sub/", "-c", str(world.config), "--host", "rules.test"]
    assert world.result(*words, "--from", "10.0.8.1")["status"] == 200
    assert world.result(*words, "--from", "::1")["status"] == 200
    result = world.result(*words, "--from", "10.0.9.1")
    assert result["status"] == 403
    assert result["cause"].endswith("[path /sub/**], does not allow 10.0.9.1")
    rules = [step["text"] for step in result["steps"] if step["about"] == "rule"]
    assert rules == [
        f"{world.config}:54: [path /sub/**]; allows 10.0.0.0/8, ::1; denies 10.0.9.0/24"
    ]
    for wrong in ("10.0.0.0/8", "example.org", ""):
        done = world.trace(*words, "--from", wrong)
        assert (done.returncode, done.stdout) == (2, ""), wrong
        assert "is no address; write it as 192.0.2.7 or 2001:db8::7" in done.stderr


def test_a_host_without_a_site_is_reported(world: World) -> None:
    only = world.top / "only.conf"
    only.write_text(
        f"[server]\nlisten = 127.0.0.1:0\n[site a]\nhost = a.test\nroot = {world.top}\n"
    )
    result = world.result("/site/hello.txt", "-c", str(only), "--host", "b.test")
    assert (result["status"], result["site"]) == (421, None)
    assert result["cause"] == "no site has the host `b.test`"
    assert world.result("/site/hello.txt", "-c", str(only))["request"]["host"] == "a.test"
    assert world.result("http://a.test/site/hello.txt", "-c", str(only))["status"] == 200
    given = world.result("/site/hello.txt", str(only), "-H", "host: a.test")
    assert (given["status"], given["request"]["host"]) == (200, "a.test")


def test_the_cache_step_says_how_a_file_is_kept(world: World) -> None:
    folder = str(world.top / "site")

    def kept(*more: str) -> tuple[str, str]:
        result = world.result("/big.bin", folder, *more)
        lines = [step["text"] for step in result["steps"] if step["about"] == "cache"]
        return result["file"]["cache"], lines[0]

    assert kept("--cache-size", "0")[0] == "none"
    assert "the cache is off" in kept("--cache-size", "0")[1]
    assert kept("--cache-file-max", "1M")[0] == "memory"
    assert "an eighth of cache-size" in kept("--cache-file-max", "1M", "--cache-size", "256K")[1]
    assert kept("--cache-file-max", "1M", "--cache-size", "256K")[0] == "none"
    assert kept()[0] == "descriptor"


def test_the_json_has_the_documented_members(world: World) -> None:
    result = world.result("/hello.txt", "-c", str(world.config), "-H", "Accept-Encoding: gzip")
    assert list(result) == [
        "schema",
        "request",
        "path",
        "site",
        "steps",
        "file",
        "status",
        "head",
        "cause",
        "live",
    ]
    assert result["schema"] == 1
    assert result["site"] == {"name": "any", "rule": "*", "root": f"{world.top}/site"}
    assert result["file"]["encoding"] == "gzip"
    assert result["live"] is None
    manual = (TOP / "docs/man/weir-trace.1").read_text()
    for member in [*result, *result["file"], *result["site"]]:
        assert re.search(rf"^\.It (?:Va )?{member}$", manual, re.MULTILINE), member
    hostile = world.result('/"\x1b[2J\\', "-c", str(world.config))
    assert hostile["status"] == 400
    shown = world.trace("/a\x1b[2J", "-c", str(world.config))
    assert "\x1b" not in shown.stdout


def test_a_trace_writes_no_file_and_no_log(world: World, tmp_path: Path) -> None:
    config = tmp_path / "weir.conf"
    config.write_text(
        "[server]\nlisten = 127.0.0.1:1\naccess-log = access.log\nerror-log = error.log\n"
        f"pid-file = pid\n[site a]\nroot = {world.top}/site\n"
    )
    done = world.trace("/hello.txt", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["weir.conf"]


def test_a_live_trace_compares_with_the_running_server(world: World) -> None:
    for target, status in (("/hello.txt", 200), ("/.secret", 404), ("/big.bin", 200)):
        result = world.result("--live", target)
        assert result["status"] == result["live"]["status"] == status
        assert result["live"]["same"] is True
        assert result["live"]["pid"] == world.servers[0].popen.pid
        assert undated(result["live"]["head"]) == undated(result["head"])
    shown = world.trace("--live", "/hello.txt", "-H", "Range: bytes=0-1")
    assert f"Process {world.servers[0].popen.pid} at {world.servers[0].url}/" in shown.stdout
    assert "gives the same answer" in shown.stdout
    assert "\n+ " not in shown.stdout
    other = world.trace("--live", "/hello.txt", str(world.top / "errors"))
    assert other.returncode == 0
    assert "- HTTP/1.1 404 Not Found" in other.stdout
    assert "+ HTTP/1.1 200 OK" in other.stdout
    assert "  Server: weir" in other.stdout
    result = world.result("--live", "/hello.txt", str(world.top / "errors"))
    assert (result["status"], result["live"]["status"], result["live"]["same"]) == (404, 200, False)


def test_a_trace_over_http_2_gives_the_answer_of_http_1_1(world: World) -> None:
    """The status, the decisions and the fields are the same but for the connection's own."""
    sent = [
        ["/hello.txt"],
        ["/hello.txt", "-H", "Range: bytes=0-1"],
        ["/hello.txt", "-H", "If-None-Match: *"],
        ["/nothing"],
        ["/big.bin", "--method", "HEAD"],
        ["http://localhost/hello.txt?a=b"],
        ["/%2e%2e/%2e%2e/x"],
        ["/", "--method", "POST"],
    ]
    for words in sent:
        first = world.result(*words, "-c", str(world.config))
        second = world.result(*words, "-c", str(world.config), "--http-version", "2")
        assert (first["request"]["protocol"], second["request"]["protocol"]) == (
            "HTTP/1.1",
            "HTTP/2.0",
        )
        assert (first["status"], first["cause"]) == (second["status"], second["cause"]), words
        fields = {line.partition(":")[0].lower() for line in first["head"]} - {"connection"}
        assert fields == {line.partition(":")[0] for line in second["head"]}, words
        steps = [step for step in second["steps"] if step["about"] != "head"]
        assert steps == first["steps"] or words[0].startswith("http:")


def test_a_long_request_over_http_2_continues_in_further_frames(world: World) -> None:
    long = ["-H", f"Accept: {'a' * 7000}", "-H", f"Accept-Encoding: {'~' * 8000}"]
    result = world.result("/hello.txt", "-c", str(world.config), *long, "--http-version", "2")
    assert result["status"] == 200


def test_a_live_trace_over_http_2_names_the_protocol(world: World) -> None:
    off = world.trace("--live", "/hello.txt", "--http-version", "2")
    assert off.returncode == 1
    assert "`h2c` is off" in off.stderr
    second = world.start(str(world.top / "errors"), "--h2c", "on")
    try:
        pid = str(second.popen.pid)
        shown = world.trace("--live", "/404.html", pid, "--http-version", "2")
        assert "gives the same answer over HTTP/2:" in shown.stdout, shown.stderr
        assert (
            "gives the same answer over HTTP/1.1:" in world.trace("--live", "/404.html", pid).stdout
        )
        broken = world.trace("--live", "/404.html", pid, "-H", "A : b", "--http-version", "2")
        assert broken.returncode == 1
        assert "resets the stream of this request with the error PROTOCOL_ERROR" in broken.stderr
    finally:
        second.stop()


def test_a_live_trace_over_http_2_and_tls(world: World, tmp_path: Path) -> None:
    pair = make(tmp_path, "site", "localhost")
    field = ("--header", "X-Of-The-Site: yes", "--hsts", "1d")
    listen = ("--listen", "https://127.0.0.1:0")
    second = world.start(str(world.top / "errors"), *listen, *pair.flags(), *field)
    off = world.start(str(world.top / "errors"), *listen, *pair.flags(), "--http2", "off")
    try:
        words = ["--live", "/404.html", str(second.popen.pid), "--http-version", "2"]
        result = world.result(*words)
        assert (result["request"]["protocol"], result["status"]) == ("HTTP/2.0", 200)
        live = result["live"]
        assert (live["same"], live["status"], live["tls"]["protocol"]) == (True, 200, "TLSv1.3")
        assert any(line.startswith("strict-transport-security:") for line in live["head"])
        assert "gives the same answer over HTTP/2:" in world.trace(*words).stdout
        broken = world.trace(*words, "-H", "A : b")
        assert broken.returncode == 1
        assert "resets the stream of this request with the error PROTOCOL_ERROR" in broken.stderr
        without = world.trace("--live", "/404.html", str(off.popen.pid), "--http-version", "2")
        assert without.returncode == 1
        assert "the server offers no HTTP/2 there; its setting `http2` is off" in without.stderr
    finally:
        second.stop()
        off.stop()


def test_a_live_trace_of_a_server_that_hangs_says_so(world: World) -> None:
    stopped = world.start(str(world.top / "errors"), "--listen", f"unix:{world.place}/h")
    try:
        stopped.popen.send_signal(signal.SIGSTOP)
        done = world.trace("--live", "/404.html", str(stopped.popen.pid))
        assert done.returncode == 1
        assert f"process {stopped.popen.pid} does not answer at its control socket" in done.stderr
    finally:
        stopped.popen.send_signal(signal.SIGCONT)
        stopped.stop()


def test_a_live_trace_selects_one_of_several_servers(world: World) -> None:
    second = world.start(str(world.top / "errors"), "--listen", f"unix:{world.place}/s")
    try:
        done = world.trace("--live", "/404.html")
        assert done.returncode == 2
        assert "2 servers are running; name one by its process id" in done.stderr
        result = world.result("--live", "/404.html", str(second.popen.pid))
        assert result["status"] == result["live"]["status"] == 200
        control = world.place / f"{second.popen.pid}.sock"
        assert world.result("--live", "/404.html", "--control", str(control))["live"]["same"]
    finally:
        second.stop()


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        ([], 2, "nothing to trace; give a path"),
        (["hello.txt", "."], 2, "`hello.txt` is no path; it begins with a slash"),
        (["/", ".", "x"], 2, "`x` is one argument too many"),
        (["/", ".", "-H", "nonsense"], 2, "`nonsense` is no field; write it as -H 'Name: value'"),
        (["/", ".", "-H", "A: b\r\n\r\nGET /"], 2, "contains an end of line"),
        (["/\n", "."], 2, "contains an end of line"),
        (["/", ".", "-H"], 2, "-H needs a value"),
        (["/", ".", "--lve"], 2, "did you mean --live?"),
        (["/", ".", "--cache-size", "x"], 2, "--cache-size: `x` is not a size"),
        (["/" + "x" * 40000, "."], 2, "longer than the server reads"),
        (["/", ".", "--http-version", "3"], 2, "`3` is no version of HTTP for a trace; give 1.1"),
        (["/"], 2, "nothing to trace in; give a folder or a configuration"),
        (["/", "./nowhere"], 2, "there is no such folder"),
        (["/", "-c", "missing.conf"], 1, "missing.conf"),
        (["/", "-c", "wrong.conf"], 1, "wrong.conf:1: error"),
        (["--live", "/"], 1, "no server of this user has its socket in"),
        (["--live", "/", "1"], 1, "there is no such socket"),
    ],
)
def test_a_mistake_is_reported_in_one_line(
    tmp_path: Path, arguments: list[str], status: int, said: str
) -> None:
    (tmp_path / "wrong.conf").write_text("nonsense\n")
    place = tmp_path / "run"
    place.mkdir(mode=0o700)
    done = World(tmp_path, place).trace(*arguments)
    assert (done.returncode, done.stdout) == (status, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_manual_lists_every_option() -> None:
    text = (TOP / "docs/man/weir-trace.1").read_text()
    listed = re.findall(r"^\.It (?:Fl \w , )?Fl Fl ([\w-]+)", text, re.MULTILINE)
    own = ["config", "control", "request-header", "method", "host", "from", "http-version"]
    own += ["live", "json"]
    assert listed == own
