# SPDX-License-Identifier: MIT
"""Compressed variants that the server makes of files: on every model, over HTTP/1.1 and HTTP/2."""

from __future__ import annotations

import contextlib
import os
import random
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import ServerFactory
from tests.e2e.http2 import connect2
from tests.e2e.running import WEIR, Server, played
from tests.e2e.statistics import Numbers, wait_for
from tests.e2e.wire import Answer, connect
from tests.waiting import wait_until

Get = Callable[..., Answer]

DECODERS = {"br": ["brotli", "-dc"], "zstd": ["zstd", "-dc"], "gzip": ["gzip", "-dc"]}
PROTOCOLS = ["HTTP/1.1", "HTTP/2"]
CACHING = [model for model in ([] if not WEIR.is_file() else played()) if model != "fork"]

every = pytest.mark.parametrize("model", CACHING)
over = pytest.mark.parametrize("protocol", PROTOCOLS)


def text_of(size: int, seed: int = 1) -> bytes:
    """Bytes that become about a third as large."""
    words = random.Random(seed)
    return b" ".join(b"%x" % words.randrange(5000) for _ in range(size // 3))[:size]


def explained(folder: Path, *arguments: str) -> str:
    """The line about compression of `weir check --explain`."""
    command = [str(WEIR), "check", "--explain", str(folder), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = re.search(r"^compression: (.*)$", done.stdout, re.MULTILINE)
    assert found, done.stdout
    return found[1]


@pytest.fixture
def codings(site: Path) -> list[str]:
    """The content codings of this build. The tools to decode them may be missing."""
    listed = explained(site, "--model", "epoll").partition(", in ")[0].split(", ")
    assert listed[-1] == "gzip"
    return listed


def decoded(coding: str, body: bytes) -> bytes:
    try:
        return subprocess.run(DECODERS[coding], input=body, capture_output=True, check=True).stdout
    except FileNotFoundError:
        pytest.skip(f"there is no {DECODERS[coding][0]}")


@contextlib.contextmanager
def client(protocol: str, running: Server) -> Iterator[Get]:
    """A connection: get(path, field line...), or with head=True a HEAD."""
    if protocol == "HTTP/1.1":
        with connect(running.address) as plain:

            def get(path: str, *fields: str, head: bool = False) -> Answer:
                lines = [f"{'HEAD' if head else 'GET'} {path} HTTP/1.1", "Host: a", *fields]
                plain.send("\r\n".join([*lines, "", ""]).encode())
                return plain.read(bodiless=head)

            yield get
        return
    with connect2(running.address) as framed:

        def get2(path: str, *fields: str, head: bool = False) -> Answer:
            pairs = [field.split(": ", 1) for field in fields]
            encoded = [(name.lower().encode(), value.encode()) for name, value in pairs]
            return framed.answer(framed.ask(path, *encoded, method="HEAD" if head else "GET"))

        yield get2


def accept(coding: str) -> str:
    return f"Accept-Encoding: {coding}"


def compressed(get: Get, path: str, coding: str, *fields: str) -> Answer:
    """The answer once there is a variant. Until then each answer is the plain file, at once."""
    answers = []

    def is_compressed() -> bool:
        answers.append(get(path, accept(coding), *fields))
        assert answers[-1].status == 200
        assert answers[-1].get("Vary") == "Accept-Encoding"
        return answers[-1].get("Content-Encoding") == coding

    wait_until(is_compressed, f"{path} in {coding}")
    return answers[-1]


@every
@over
def test_the_second_client_gets_bytes_that_decode_to_the_file(
    server: ServerFactory, site: Path, protocol: str, codings: list[str]
) -> None:
    small, large = text_of(3000), text_of(200_000)
    (site / "small.css").write_bytes(small)
    (site / "large.js").write_bytes(large)
    running = server("--h2c", "on")
    with client(protocol, running) as get:
        for path, content in (("/small.css", small), ("/large.js", large)):
            first = get(path, accept("br, zstd, gzip"))
            assert (first.status, first.body) == (200, content)
            assert first.get("Content-Encoding") is None
            assert first.get("Vary") == "Accept-Encoding"
            tags = [first.get("ETag")]
            for coding in codings:
                answer = compressed(get, path, coding)
                assert len(answer.body) < len(content) * 3 // 4
                assert answer.get("Content-Type") == first.get("Content-Type")
                assert answer.get("Last-Modified") == first.get("Last-Modified")
                assert answer.get("Accept-Ranges") is None
                tags.append(answer.get("ETag"))
                assert decoded(coding, answer.body) == content
            assert None not in tags
            assert len(set(tags)) == len(tags)
            assert get(path).body == content


@every
@over
def test_each_variant_has_conditions_and_a_head_of_its_own(
    server: ServerFactory, site: Path, protocol: str
) -> None:
    (site / "a.txt").write_bytes(text_of(20_000))
    running = server("--h2c", "on")
    with client(protocol, running) as get:
        gzip = compressed(get, "/a.txt", "gzip")
        tag, plain = gzip.get("ETag"), get("/a.txt")
        head = get("/a.txt", accept("gzip"), head=True)
        assert head.status == 200
        for name in ("ETag", "Content-Length", "Content-Encoding", "Vary"):
            assert head.get(name) == gzip.get(name), name
        same = get("/a.txt", accept("gzip"), f"If-None-Match: {tag}")
        assert (same.status, same.get("ETag")) == (304, tag)
        assert same.get("Vary") == "Accept-Encoding"
        other = get("/a.txt", accept("gzip"), f"If-None-Match: {plain.get('ETag')}")
        assert (other.status, other.get("Content-Encoding")) == (200, "gzip")
        assert get("/a.txt", f"If-None-Match: {plain.get('ETag')}").status == 304


@every
@over
def test_ranges_are_of_the_plain_file(server: ServerFactory, site: Path, protocol: str) -> None:
    content = text_of(20_000)
    (site / "a.txt").write_bytes(content)
    running = server("--h2c", "on")
    with client(protocol, running) as get:
        gzip = compressed(get, "/a.txt", "gzip")
        part = get("/a.txt", accept("gzip"), "Range: bytes=100-199")
        assert (part.status, part.body) == (206, content[100:200])
        assert part.get("Content-Encoding") is None
        assert part.get("Content-Range") == "bytes 100-199/20000"
        assert part.get("Vary") == "Accept-Encoding"
        again = get(
            "/a.txt", accept("gzip"), "Range: bytes=0-1", f"If-Range: {gzip.get('ETag')}"
        )  # that variant has no ranges, so the client gets a whole file
        assert (again.status, again.body) == (200, content)
        whole = get("/a.txt", accept("gzip"), "Range: bytes=0-1", head=True)
        assert whole.get("Content-Encoding") == "gzip"  # HEAD has no ranges


@every
@over
def test_weights_and_no_transform_decide(
    server: ServerFactory, site: Path, protocol: str, codings: list[str]
) -> None:
    content = text_of(20_000)
    (site / "a.txt").write_bytes(content)
    running = server("--h2c", "on")
    with client(protocol, running) as get:
        sizes = {coding: len(compressed(get, "/a.txt", coding).body) for coding in codings}
        smallest = min(sizes, key=lambda coding: sizes[coding])
        chosen = {
            "gzip, deflate, br, zstd": smallest,
            "gzip;q=1.0, br;q=0.5": "gzip",
            "br;q=0, zstd;q=0, *": "gzip",
            "identity": None,
            "identity, gzip;q=0.5": None,
            "gzip;q=0": None,
            "identity;q=0, gzip": "gzip",
            "x-gzip": "gzip",
            "": None,
        }
        for field, coding in chosen.items():
            assert get("/a.txt", accept(field)).get("Content-Encoding") == coding, field
        fields = ("Cache-Control: max-age=0, No-Transform", accept("gzip"))
        assert get("/a.txt", *fields).body == content
        fields = ("Cache-Control: no-cache", accept("gzip"))
        assert get("/a.txt", *fields).get("Content-Encoding") == "gzip"


@every
@over
def test_a_changed_file_drops_its_variants(
    server: ServerFactory, site: Path, protocol: str
) -> None:
    (site / "a.txt").write_bytes(text_of(20_000, seed=1))
    running = server("--h2c", "on")
    with client(protocol, running) as get:
        old = compressed(get, "/a.txt", "gzip")
        for change in range(3):
            content = text_of(20_000 + change, seed=2 + change)
            (site / "next").write_bytes(content)
            (site / "next").rename(site / "a.txt")

            def is_new(content: bytes = content) -> bool:
                answer = get("/a.txt", accept("gzip"))
                if answer.get("Content-Encoding") is None:
                    return answer.body == content
                assert answer.get("Content-Encoding") == "gzip"
                return decoded("gzip", answer.body) == content

            wait_until(is_new, "the changed file")
            new = compressed(get, "/a.txt", "gzip")
            assert decoded("gzip", new.body) == content
            assert new.get("ETag") != old.get("ETag")


@every
def test_a_stored_sibling_is_sent_instead(server: ServerFactory, site: Path) -> None:
    (site / "a.txt").write_bytes(text_of(20_000))
    (site / "a.txt.gz").write_bytes(b"stored")
    (site / "b.txt").write_bytes(text_of(20_000))
    running = server()
    with client("HTTP/1.1", running) as get:
        compressed(get, "/b.txt", "gzip")
        for _ in range(3):
            assert get("/a.txt", accept("gzip, br")).body == b"stored"
            assert get("/a.txt", accept("br")).get("Content-Encoding") is None


@every
def test_small_binary_and_compressed_files_are_left_alone(
    server: ServerFactory, site: Path
) -> None:
    names = {
        "small.txt": text_of(1023),
        "picture.png": text_of(5000),
        "font.woff2": text_of(5000),
        "archive.zip": text_of(5000),
        "unknown": text_of(5000),
        "noise.txt": os.urandom(5000),
    }
    for name, content in names.items():
        (site / name).write_bytes(content)
    (site / "text.txt").write_bytes(text_of(5000))
    running = server()
    with client("HTTP/1.1", running) as get:
        for name in names:
            get(f"/{name}", accept("gzip"))
        compressed(get, "/text.txt", "gzip")

        def is_rejected(now: Numbers) -> bool:
            get("/noise.txt", accept("gzip"))  # again, until its last change is long enough ago
            return bool(now["counters"]["compress_useless"] > 0)

        wait_for(running, is_rejected)
        for name, content in names.items():
            answer = get(f"/{name}", accept("gzip"))
            assert (answer.status, answer.body) == (200, content)
            assert answer.get("Content-Encoding") is None
            vary = "Accept-Encoding" if name == "noise.txt" else None
            assert answer.get("Vary") == vary, name


@every
def test_the_counters_say_what_was_made(server: ServerFactory, site: Path) -> None:
    content = text_of(20_000)
    (site / "a.txt").write_bytes(content)
    running = server("--workers", "1")
    with client("HTTP/1.1", running) as get:
        answer = compressed(get, "/a.txt", "gzip")
    counters = wait_for(running, lambda now: now["counters"]["compressed_variants"] > 0)["counters"]
    assert counters["compressed_variants"] == 1
    assert counters["compressed_from_bytes"] == len(content)
    assert counters["compressed_to_bytes"] == len(answer.body)
    assert counters["compress_cpu_us"] > 0


@pytest.mark.parametrize("model", ["epoll"])
@pytest.mark.parametrize(
    ("setting", "header"),
    [
        ("compress = off", ""),
        ("", "header = Cache-Control: max-age=60, no-transform"),
        ("compress-cpu = 0", ""),
        ("cache-size = 0", ""),
    ],
)
def test_a_site_can_be_without_it(
    server: ServerFactory, site: Path, tmp_path: Path, setting: str, header: str
) -> None:
    (site / "a.txt").write_bytes(text_of(20_000))
    of_server = "" if setting == "compress = off" else setting
    of_site = setting if setting == "compress = off" else header
    file = tmp_path / "weir.conf"
    file.write_text(
        f"[server]\nlisten = 127.0.0.1:0\n{of_server}\n[site a]\nroot = {site}\n{of_site}\n"
    )
    running = server("-c", str(file), folder=None, listen=())
    with client("HTTP/1.1", running) as get:
        for _ in range(3):
            answer = get("/a.txt", accept("gzip, br"))
            assert answer.get("Content-Encoding") is None
            assert answer.get("Vary") is None


@every
def test_a_rule_decides_for_its_paths(server: ServerFactory, site: Path, tmp_path: Path) -> None:
    content = text_of(20_000)
    (site / "raw").mkdir()
    for name in ("a.txt", "raw/a.txt"):
        (site / name).write_bytes(content)
    file = tmp_path / "weir.conf"
    file.write_text(
        f"[server]\nlisten = 127.0.0.1:0\n[site a]\nroot = {site}\n"
        "[path /**]\nheader = X-Rule: yes\n"
        "[path /raw/**]\nheader = Cache-Control: no-transform\n"
    )
    running = server("-c", str(file), folder=None, listen=())
    with client("HTTP/1.1", running) as get:
        get("/raw/a.txt", accept("gzip"))
        answer = compressed(get, "/a.txt", "gzip")
        assert decoded("gzip", answer.body) == content
        assert answer.get("X-Rule") == "yes"
        for _ in range(3):
            answer = get("/raw/a.txt", accept("gzip"))
            assert (answer.body, answer.get("X-Rule")) == (content, "yes")
    command = [str(WEIR), "trace", "/raw/a.txt", "-c", str(file), "-H", accept("gzip")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "the Cache-Control of a rule says no-transform" in done.stdout


@pytest.mark.parametrize("model", ["fork"])
def test_fork_sends_stored_forms_alone(server: ServerFactory, site: Path) -> None:
    (site / "a.txt").write_bytes(text_of(20_000))
    (site / "b.txt").write_bytes(text_of(20_000))
    (site / "b.txt.gz").write_bytes(b"stored")
    running = server()
    with client("HTTP/1.1", running) as get:
        for _ in range(3):
            answer = get("/a.txt", accept("gzip, br"))
            assert answer.get("Content-Encoding") is None
            assert answer.get("Vary") is None
            assert get("/b.txt", accept("gzip, br")).body == b"stored"


def test_check_says_what_is_compressed(site: Path) -> None:
    assert "gzip, in 1 of 1 site, with at most 25 % of a CPU" in explained(site)
    assert "at most 7 % of a CPU" in explained(site, "--compress-cpu", "7")
    assert explained(site, "--compress", "off") == "none, because the site has `compress = off`"
    assert "no cache outlives a connection" in explained(site, "--model", "fork")
    check = [str(WEIR), "check", str(site), "--model", "fork"]
    done = subprocess.run(check, capture_output=True, text=True, check=True)
    assert "compression: none, because with model fork" in done.stdout


@pytest.mark.parametrize(
    ("name", "size", "fields", "said"),
    [
        ("a.txt", 2000, ["Accept-Encoding: gzip"], "with gzip, once in each worker"),
        ("a.txt", 2000, [], "but this request takes the plain file"),
        ("a.txt", 2000, ["Accept-Encoding: gzip", "Range: bytes=0-9"], "takes the plain file"),
        ("a.txt", 1023, ["Accept-Encoding: gzip"], "the file has 1023 bytes"),
        ("a.png", 2000, ["Accept-Encoding: gzip"], "files of this type hardly become smaller"),
        ("b.txt", 2000, ["Accept-Encoding: gzip"], "the file has a stored form"),
    ],
)
def test_trace_says_which_variant_is_made_and_why(
    site: Path, name: str, size: int, fields: list[str], said: str
) -> None:
    (site / name).write_bytes(text_of(size))
    (site / "b.txt.gz").write_bytes(b"stored")
    os.utime(site / name, (10**9, 10**9))

    def line() -> str:
        command = [str(WEIR), "trace", f"/{name}", str(site), "--model", "epoll"]
        command += [word for field in fields for word in ("-H", field)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found = re.search(r"^compress +(.*)$", done.stdout, re.MULTILINE)
        assert found, done.stdout
        return found[1]

    wait_until(lambda: said in line(), line)  # a file that has just changed is not compressed


@pytest.mark.parametrize("model", CACHING[:1])
def test_requests_meanwhile_have_no_other_variant_made(
    server: ServerFactory, site: Path, codings: list[str]
) -> None:
    (site / "large.js").write_bytes(text_of(800_000))
    (site / "next.js").write_bytes(text_of(3000))
    every_coding = ", ".join(codings)
    running = server()
    with client("HTTP/1.1", running) as get:
        for _ in range(10):
            assert get("/large.js", accept(every_coding)).status == 200
        compressed_in = codings[0]
        wait_until(
            lambda: get("/large.js", accept(every_coding)).get("Content-Encoding") == compressed_in,
            f"large.js in {compressed_in}",
        )
        compressed(get, "/next.js", "gzip")  # the queue is empty
    counters = wait_for(running, lambda now: now["counters"]["compressed_variants"] > 1)["counters"]
    assert counters["compressed_variants"] == 2
    assert counters["compress_broken"] == 0
