# SPDX-License-Identifier: MIT
"""Clients that others wrote: curl, nghttp, h2load, httpx, Node, Go and Chromium.

Go's client runs where Go is installed. The project does not install it: its package is larger than
all others together.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import httpx
import playwright
import pytest
from playwright.sync_api import Browser

from tests.e2e.certificates import Pair, trusting
from tests.e2e.conftest import ServerFactory
from tests.e2e.running import Server
from tests.e2e.statistics import settled
from tests.waiting import LIMIT_S

BIG = os.urandom(3_000_000)
IMAGES = 200
BUILD_S = 10 * LIMIT_S  # Go builds its whole library first
NODE = Path(playwright.__file__).parent / "driver/node"

NODE_CLIENT = """
const http2 = require('http2'), fs = require('fs');
const [url, ca] = process.argv.slice(1);
const session = http2.connect(url, ca ? { ca: fs.readFileSync(ca) } : {});
const paths = Array(50).fill('/hello.txt').concat(['/big.bin', '/nothing']);
const get = path => new Promise((done, fail) => {
  const stream = session.request({ ':path': path });
  let status = 0, bytes = 0;
  stream.on('response', headers => { status = headers[':status']; });
  stream.on('data', data => { bytes += data.length; });
  stream.on('end', () => done([path, status, bytes]));
  stream.on('error', fail);
});
Promise.all(paths.map(get)).then(all => {
  console.log(JSON.stringify(all));
  session.close();
}).catch(error => { console.error(error); process.exit(1); });
"""


@pytest.fixture
def running(server: ServerFactory, site: Path, pair: Pair) -> Server:
    """A server with both kinds of address."""
    (site / "big.bin").write_bytes(BIG)
    both = ("127.0.0.1:0", "https://127.0.0.1:0")
    return server(*pair.flags(), "--h2c", "on", "--http2", "on", listen=both)


def urls(running: Server) -> list[str]:
    """The address of each listener, with the name that the certificate has."""
    return [url.rstrip("/").replace("127.0.0.1", "localhost") for url in running.urls]


def run(*command: str | Path, limit_s: float = LIMIT_S) -> str:
    done = subprocess.run(command, capture_output=True, check=False, timeout=limit_s)
    assert done.returncode == 0, done.stderr.decode(errors="replace")[-2000:]
    return done.stdout.decode(errors="replace")


def needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not shutil.which(program), reason=f"{program} is not installed")


@needs("curl")
def test_curl_gets_files(running: Server, pair: Pair, tmp_path: Path) -> None:
    plain, secure = urls(running)
    out = tmp_path / "out"
    form = "%{http_version} %{response_code} %{num_connects}\n"
    command = ["curl", "-sS", "-w", form, "--cacert", str(pair.certificate), "-o", str(out)]
    # curl 7.88 cannot use a connection of prior knowledge again.
    assert run(*command, "--http2-prior-knowledge", f"{plain}/big.bin") == "2 200 1\n"
    assert out.read_bytes() == BIG
    more = ["-o", os.devnull, f"{secure}/nothing", "-o", os.devnull, f"{secure}/hello.txt"]
    shown = run(*command, "--http2", f"{secure}/big.bin", *more)
    assert shown == "2 200 1\n2 404 0\n2 200 0\n"
    assert out.read_bytes() == BIG
    ranged = run("curl", "-sS", "--http2-prior-knowledge", "-r", "1-3", f"{plain}/hello.txt")
    assert ranged == "ell"
    # A body that is larger than the window.
    out.write_bytes(BIG[:900_000])
    sent = run(
        *("curl", "-sS", "--http2-prior-knowledge", "-o", os.devnull, "-w", "%{response_code}"),
        *("--data-binary", f"@{tmp_path / 'out'}", f"{plain}/hello.txt"),
    )
    assert sent == "405"


@needs("curl")
@pytest.mark.parametrize("announced", [True, False])
def test_curl_shows_the_answer_to_a_body_that_is_too_long(
    running: Server, pair: Pair, tmp_path: Path, *, announced: bool
) -> None:
    """curl 7.88 reports an error in place of the answer when a reset of the stream arrives with
    it."""
    body = tmp_path / "body"
    body.write_bytes(bytes(3_000_000))
    plain, secure = urls(running)
    form = ("-o", os.devnull, "-w", "%{http_version} %{response_code}")
    sent = ("--data-binary", f"@{body}") if announced else ("-X", "POST", "-T", "-")
    for way in (("--http2-prior-knowledge", plain), ("--cacert", str(pair.certificate), secure)):
        for _ in range(3):
            with body.open("rb") as read:
                done = subprocess.run(
                    ("curl", "-sS", *form, *sent, *way),
                    stdin=read,
                    capture_output=True,
                    text=True,
                    check=False,
                    timeout=LIMIT_S,
                )
            assert (done.stdout, done.stderr) == ("2 413", "")


@needs("nghttp")
def test_nghttp_gets_files(running: Server) -> None:
    for url in urls(running):
        shown = run("nghttp", "-nv", "-m", "30", f"{url}/hello.txt", f"{url}/nothing")
        assert len(re.findall(r":status: 200", shown)) == 30
        assert len(re.findall(r":status: 404", shown)) == 30
        assert "ERROR" not in shown.replace("NO_ERROR", "")


@needs("h2load")
def test_h2load_gets_every_answer(running: Server) -> None:
    for url in urls(running):
        shown = run("h2load", "-n", "2000", "-c", "8", "-m", "25", f"{url}/hello.txt", f"{url}/x")
        found = re.search(r"requests: (\d+) total, .* (\d+) done, (\d+) succ.*, (\d+) fail", shown)
        assert found, shown
        codes = re.search(r"status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx", shown)
        assert codes, shown
        assert (found[2], codes[1], codes[3]) == ("2000", "1000", "1000"), shown
    counters = settled(running)["counters"]
    assert counters["http2_streams_opened"] == counters["requests"] == 4000


def test_httpx_gets_files(running: Server, pair: Pair) -> None:
    with httpx.Client(http2=True, verify=trusting(pair), trust_env=False) as client:
        for path, content in (("/hello.txt", b"hello\n"), ("/big.bin", BIG)):
            answer = client.get(urls(running)[1] + path)
            assert (answer.http_version, answer.status_code) == ("HTTP/2", 200)
            assert answer.content == content
        assert client.get(urls(running)[1] + "/nothing").status_code == 404


@pytest.mark.skipif(not NODE.is_file(), reason=f"there is no {NODE}")
def test_node_gets_files(running: Server, pair: Pair) -> None:
    plain, secure = urls(running)
    for words in ([plain], [secure, str(pair.certificate)]):
        got = json.loads(run(NODE, "-e", NODE_CLIENT, *words))
        assert got[:50] == [["/hello.txt", 200, 6]] * 50
        assert got[50] == ["/big.bin", 200, len(BIG)]
        assert got[51][1] == 404


@pytest.fixture(scope="module")
def go_client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Go's client, compiled. It needs nothing but Go's own library."""
    go = shutil.which("go") or "/usr/local/go/bin/go"
    if not Path(go).exists():
        pytest.skip("go is not installed")
    built = tmp_path_factory.mktemp("go") / "client"
    source = Path(__file__).parent / "http2_client.go"
    settings = ("env", "GO111MODULE=off", "GOTOOLCHAIN=local")
    run(*settings, go, "build", "-o", built, source, limit_s=BUILD_S)
    return built


def test_go_gets_files(running: Server, pair: Pair, go_client: Path) -> None:
    lines = run(go_client, urls(running)[1], pair.certificate).splitlines()
    assert lines[:50] == ["/hello.txt HTTP/2.0 200 6"] * 50
    assert lines[50] == f"/big.bin HTTP/2.0 200 {len(BIG)}"
    assert lines[51].startswith("/nothing HTTP/2.0 404 ")
    # The answer arrives before the body is sent.
    assert {line.rpartition(" ")[0] for line in lines[52:]} == {"/ HTTP/2.0 413"}
    assert len(lines) == 55


def image(number: int) -> str:
    """A picture of 100,000 bytes."""
    colour = f"#{number * 70_001 % 2**24:06x}"
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9">'
        f'<rect width="9" height="9" fill="{colour}"/><!--{" " * 100_000}--></svg>'
    )


@pytest.mark.parametrize("model", ["percore"])
def test_a_browser_shows_a_page_of_many_images(
    server: ServerFactory, browser: Browser, site: Path, pair: Pair
) -> None:
    """The style comes behind the images in the page. It is more urgent, so it arrives first."""
    names = [f"{number}.svg" for number in range(IMAGES)]
    for number, name in enumerate(names):
        (site / name).write_text(image(number))
    (site / "late.css").write_text("img { border: 3px solid red }\n" + "/* */\n" * 100_000)
    page_text = "".join(f'<img src="{name}">' for name in names)
    (site / "index.html").write_text(
        f'<!doctype html><title>page</title>{page_text}<link rel="stylesheet" href="late.css">'
    )
    running = server(*pair.flags(), "--http2", "on", listen=("https://127.0.0.1:0",))
    context = browser.new_context(ignore_https_errors=True)
    page = context.new_page()
    page.set_default_timeout(LIMIT_S * 1000)
    troubles: list[str] = []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("requestfailed", lambda failed: troubles.append(f"{failed.failure}: {failed.url}"))
    page.goto(f"{urls(running)[0]}/", wait_until="load")
    shown = page.evaluate("[...document.images].filter(each => each.naturalWidth == 9).length")
    entries = page.evaluate(
        "performance.getEntriesByType('resource')"
        ".map(each => [each.name, each.nextHopProtocol, each.responseEnd])"
    )
    context.close()
    assert shown == IMAGES
    assert troubles == []
    loaded = [entry for entry in entries if entry[0].endswith((".svg", ".css"))]
    assert len(loaded) == IMAGES + 1
    assert {protocol for _, protocol, _ in loaded} == {"h2"}
    order = [name.rpartition("/")[2] for name, _, _ in sorted(loaded, key=lambda each: each[2])]
    assert order[-1] != "late.css"
    counters = settled(running)["counters"]
    assert counters["http2_streams_opened"] == counters["http2_streams_closed"] > IMAGES
