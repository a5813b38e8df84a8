# SPDX-License-Identifier: MIT
"""Compression dictionaries (RFC 9842): a client that has a version gets the difference."""

from __future__ import annotations

import base64
import hashlib
import random
import shutil
import subprocess
from functools import partial
from pathlib import Path

import pytest

from tests.e2e.browsing import new_page, trusting_chromium
from tests.e2e.certificates import Pair
from tests.e2e.conftest import ServerFactory
from tests.e2e.running import WEIR, Server
from tests.e2e.statistics import read
from tests.e2e.test_auth import ALICE, Way, field, ways
from tests.e2e.test_compression import every, explained
from tests.e2e.wire import Answer
from tests.waiting import LIMIT_S, wait_until

MATCH = 'match="/assets/app.*.js"'
ACCEPT = "Accept-Encoding: gzip, br, zstd, dcb, dcz"
VARY = "Accept-Encoding, Available-Dictionary"
ONE_MODEL = pytest.mark.parametrize("model", ["percore"])


def bundle(version: int, size: int = 60_000) -> bytes:
    """A script. Versions differ in a few places."""
    words = random.Random(1)
    lines = [f"f({words.randrange(10**9)});" for _ in range(size // 13)]
    for at in range(0, len(lines), 1000):
        lines[at] = f"f(0); // version {version}"
    return "\n".join(["window.sum = 0; function f(x) { sum += x }", *lines]).encode()


@pytest.fixture
def assets(site: Path) -> Path:
    """A folder with the first version of a bundle."""
    folder = site / "assets"
    folder.mkdir()
    (folder / "app.1.js").write_bytes(bundle(1))
    if "zstd" not in explained(site, "--model", "epoll").partition(";")[0]:
        pytest.skip("this build lacks zstd")
    return folder


def configure(path: Path, assets: Path, pair: Pair, more: str = "", server: str = "") -> Path:
    # On a busy machine the compressor is slow, and connections wait for other ones meanwhile.
    path.write_text(
        f"[server]\nlisten = 127.0.0.1:0, https://127.0.0.1:0\nh2c = on\n{server}"
        "header-timeout = 10m\nidle-timeout = 10m\n"
        f"[site a]\nroot = {assets.parent}\n{pair.settings()}\n"
        "[path /assets/**]\ncache-control = public, max-age=31536000\n"
        f"[path /assets/app.*.js]\ndictionary = on\n{more}"
    )
    return path


def serve(server: ServerFactory, tmp_path: Path, assets: Path, pair: Pair) -> Server:
    conf = configure(tmp_path / "weir.conf", assets, pair)
    return server("-c", str(conf), folder=None, listen=())


def available(content: bytes) -> str:
    digest = base64.b64encode(hashlib.sha256(content).digest()).decode()
    return f"Available-Dictionary: :{digest}:"


def decoded(delta: bytes, dictionary: bytes, folder: Path) -> bytes:
    """What the program zstd makes of a difference."""
    if not shutil.which("zstd"):
        pytest.skip("zstd is not installed")
    (folder / "dictionary").write_bytes(dictionary)
    command = ["zstd", "-dc", f"--patch-from={folder / 'dictionary'}"]
    done = subprocess.run(command, input=delta, capture_output=True, check=True, timeout=LIMIT_S)
    return done.stdout


def difference(way: Way, path: str, have: bytes) -> Answer:
    """The answer once it is a difference. Until then each answer is another form, at once."""
    answers: list[Answer] = []

    def is_difference() -> bool:
        answers.append(way.get(path, ACCEPT, available(have)))
        assert answers[-1].status == 200
        assert answers[-1].get("Vary") == VARY
        assert answers[-1].get("Use-As-Dictionary") == MATCH
        return answers[-1].get("Content-Encoding") == "dcz"

    wait_until(is_difference, f"{path} as a difference over {way.name}")
    return answers[-1]


def counter(running: Server, name: str) -> int:
    return int(read(running.master.pid)["counters"][name])


@every
def test_a_client_gets_the_difference_from_what_it_has(
    server: ServerFactory, tmp_path: Path, assets: Path, pair: Pair
) -> None:
    running = serve(server, tmp_path, assets, pair)
    old, new = bundle(1), bundle(2)
    with ways(running, pair) as made:
        secure = [way for way in made if way.name.endswith("https")]
        first = secure[0].get("/assets/app.1.js")
        assert (first.body, first.get("Use-As-Dictionary")) == (old, MATCH)
        (assets / "app.2.js").write_bytes(new)
        tags = {secure[0].get("/assets/app.2.js").get("ETag")}
        for way in secure:
            answer = difference(way, "/assets/app.2.js", old)
            assert len(answer.body) < len(new) // 20
            digest = hashlib.sha256(old).digest()
            assert answer.body[:40] == b"\x5e\x2a\x4d\x18\x20\0\0\0" + digest
            assert decoded(answer.body, old, tmp_path) == new
            assert answer.get("Content-Type") == "text/javascript; charset=utf-8"
            assert answer.get("Cache-Control") == "public, max-age=31536000"
            assert answer.get("Accept-Ranges") is None
            tags.add(answer.get("ETag"))
        assert len(tags) == 2
        assert None not in tags
    assert counter(running, "deltas_made") >= 1
    assert counter(running, "delta_answers") >= 2


@every
def test_the_version_before_a_change_is_a_dictionary(
    server: ServerFactory, tmp_path: Path, assets: Path, pair: Pair
) -> None:
    """With one worker, for another worker may not have seen the version."""
    conf = configure(tmp_path / "weir.conf", assets, pair, server="workers = 1\n")
    running = server("-c", str(conf), folder=None, listen=())
    old, new = bundle(1), bundle(2)
    with ways(running, pair) as made:
        way = made[-1]
        assert way.get("/assets/app.1.js").body == old
        difference(way, "/assets/app.1.js", old)  # so the version is known
        (assets / "new").write_bytes(new)
        (assets / "new").rename(assets / "app.1.js")

        def is_new() -> bool:
            answer = way.get("/assets/app.1.js", ACCEPT, available(old))
            is_difference = answer.get("Content-Encoding") == "dcz"
            return is_difference and decoded(answer.body, old, tmp_path) == new

        wait_until(is_new, "the difference to the new version")


@ONE_MODEL
def test_other_requests_get_other_forms(
    server: ServerFactory, tmp_path: Path, assets: Path, pair: Pair
) -> None:
    running = serve(server, tmp_path, assets, pair)
    old, new = bundle(1), bundle(2)
    (assets / "app.2.js").write_bytes(new)
    (assets / "other.js").write_bytes(new)
    path = "/assets/app.2.js"
    with ways(running, pair) as made:
        plain = [way for way in made if way.name.endswith("http")]
        secure = [way for way in made if way.name.endswith("https")]
        answer = difference(secure[0], path, old)
        for way in plain:
            answer = way.get(path, ACCEPT, available(old))
            assert answer.get("Content-Encoding") != "dcz"
            assert answer.get("Use-As-Dictionary") is None
            assert answer.get("Vary") == VARY
        for way in secure:
            for fields in (
                [ACCEPT],
                ["Accept-Encoding: gzip, br", available(old)],
                ["Accept-Encoding: br, dcz;q=0.5", available(old)],
                ["Accept-Encoding: br, dcz;q=0", available(old)],
                ["Accept-Encoding: *", available(old)],
                [ACCEPT, "Available-Dictionary: :AAAA:"],
                [ACCEPT, available(b"no version of it")],
                [ACCEPT, available(old), "Cache-Control: no-transform"],
            ):
                answer = way.get(path, *fields)
                assert (answer.status, answer.get("Vary")) == (200, VARY)
                assert answer.get("Content-Encoding") != "dcz", fields
            answer = way.get(path, ACCEPT, available(old), "Range: bytes=0-9")
            assert (answer.status, answer.body) == (206, new[:10])
            assert answer.get("Use-As-Dictionary") is None
            answer = way.get("/assets/other.js", ACCEPT, available(old))
            assert answer.get("Use-As-Dictionary") is None
            assert answer.get("Vary") == "Accept-Encoding"
            answer = way.get("/assets/app.3.js", ACCEPT, available(old))
            assert (answer.status, answer.get("Use-As-Dictionary")) == (404, None)
            tag = difference(way, path, old).get("ETag")
            wait_until(partial(is_unchanged, way, path, old, tag), "a 304")
    wait_until(
        lambda: counter(running, "dictionaries_unknown") >= 1, "an unknown dictionary counts"
    )


def is_unchanged(way: Way, path: str, have: bytes, tag: str | None) -> bool:
    """Whether the difference is still what the client has. A request that takes a variant of the
    file from the compressor gets another form."""
    answer = way.get(path, ACCEPT, available(have), f"If-None-Match: {tag}")
    assert answer.status == 200 or (answer.status, answer.get("ETag")) == (304, tag)
    return answer.status == 304


@ONE_MODEL
def test_a_client_that_has_the_file_gets_304(
    server: ServerFactory, tmp_path: Path, assets: Path, pair: Pair
) -> None:
    """A browser that asks for the bundle again has it as a dictionary, too."""
    conf = configure(tmp_path / "weir.conf", assets, pair, server="workers = 1\n")
    running = server("-c", str(conf), folder=None, listen=())
    path, have = "/assets/app.1.js", bundle(1)
    (assets / "app.2.js").write_bytes(bundle(2))
    with ways(running, pair) as made:
        for way in [way for way in made if way.name.endswith("https")]:

            def is_compressed(way: Way = way) -> bool:
                return way.get(path, ACCEPT).get("Content-Encoding") is not None

            wait_until(is_compressed, f"{path} compressed over {way.name}")
            tag = way.get(path, ACCEPT).get("ETag")
            for _ in range(2):  # the first request could have a difference made for the second
                answer = way.get(path, ACCEPT, available(have), f"If-None-Match: {tag}")
                assert (answer.status, answer.get("ETag")) == (304, tag)
                difference(way, "/assets/app.2.js", have)  # which is made after all earlier ones
    assert counter(running, "deltas_made") == 1


def guards(users: Path) -> dict[int, str]:
    """What keeps a version of the bundle from some clients or from all."""
    return {
        10: f"auth = {users}",
        11: "deny = all",
        12: "status = 410",
        13: "redirect = 302 /assets/app.1.js",
        14: "rewrite = /assets/app.1.js",
        15: "dictionary = off",
    }


@every
def test_no_byte_of_a_guarded_file_is_in_a_difference(
    server: ServerFactory, tmp_path: Path, assets: Path, pair: Pair
) -> None:
    users = tmp_path / "users"
    users.write_text(ALICE)
    rules = guards(users)
    more = "".join(f"[path /assets/app.{version}.js]\n{rule}\n" for version, rule in rules.items())
    for version in (2, *rules):
        (assets / f"app.{version}.js").write_bytes(bundle(version))
    conf = configure(tmp_path / "weir.conf", assets, pair, more)
    running = server("-c", str(conf), folder=None, listen=())
    with ways(running, pair) as made:
        secure = [way for way in made if way.name.endswith("https")]
        for way in secure:
            answer = way.get("/assets/app.10.js", ACCEPT, field("alice"))
            assert (answer.status, answer.get("Use-As-Dictionary")) == (200, None)
            assert answer.get("Vary") == "Accept-Encoding"
        for have in [bundle(version) for version in rules]:
            wait_until_unknown(running, secure[0], available(have))
            for way in secure:
                for path in ("/assets/app.2.js", "/assets/app.10.js"):
                    answer = way.get(path, ACCEPT, field("alice"), available(have))
                    assert answer.status == 200
                    assert answer.get("Content-Encoding") != "dcz"
        assert counter(running, "deltas_made") == 0
        for way in secure:
            difference(way, "/assets/app.2.js", bundle(1))


def wait_until_unknown(running: Server, way: Way, dictionary: str) -> None:
    """The server has looked for the dictionary, and has not found it."""
    before = counter(running, "dictionaries_unknown")

    def is_unknown() -> bool:
        answer = way.get("/assets/app.2.js", ACCEPT, dictionary)
        assert answer.status == 200
        assert answer.get("Content-Encoding") != "dcz"
        return counter(running, "dictionaries_unknown") > before

    wait_until(is_unknown, f"{dictionary} is unknown over {way.name}")


@ONE_MODEL
def test_files_that_are_kept_open_have_differences(
    server: ServerFactory, tmp_path: Path, assets: Path, pair: Pair
) -> None:
    conf = configure(tmp_path / "weir.conf", assets, pair)
    conf.write_text(conf.read_text().replace("[server]", "[server]\ncache-file-max = 4K"))
    running = server("-c", str(conf), folder=None, listen=())
    old, new = bundle(1, 300_000), bundle(2, 300_000)
    (assets / "app.1.js").write_bytes(old)
    (assets / "app.2.js").write_bytes(new)
    with ways(running, pair) as made:
        answer = difference(made[-1], "/assets/app.2.js", old)
        assert decoded(answer.body, old, tmp_path) == new


@ONE_MODEL
def test_a_browser_fetches_a_changed_bundle_as_a_small_difference(
    server: ServerFactory, tmp_path: Path, assets: Path, pair: Pair
) -> None:
    page_text = "<!doctype html><title>page</title><script src='/assets/app.{}.js'></script>"
    for version in (1, 2):
        (assets.parent / f"{version}.html").write_text(page_text.format(version))
    new = bundle(2)
    (assets / "app.2.js").write_bytes(new)
    running = serve(server, tmp_path, assets, pair)
    with ways(running, pair) as made:
        for path in ("/assets/app.1.js", "/assets/app.2.js"):
            difference(made[-1], path, bundle(1))
    url = running.urls[1].rstrip("/").replace("127.0.0.1", "localhost")
    with trusting_chromium(pair) as browser:
        page = new_page(browser)
        page.goto(f"{url}/1.html")
        first = page.evaluate("sum")
        tries = 0

        def has_dictionary() -> bool:
            """The browser keeps a dictionary some time after its answer has ended."""
            nonlocal tries
            tries += 1
            coding = page.evaluate(
                "path => fetch(path).then(got => got.text().then(() => got.headers))"
                ".then(headers => headers.get('content-encoding'))",
                f"/assets/app.1.js?{tries}",
            )
            return bool(coding == "dcz")

        wait_until(has_dictionary, "the browser uses its dictionary")
        page.goto(f"{url}/2.html")
        entries = page.evaluate(
            "performance.getEntriesByType('resource').map(each =>"
            " [new URL(each.name).pathname, each.encodedBodySize, each.decodedBodySize])"
            ".filter(each => each[0].endsWith('.js'))"
        )
        second = page.evaluate("sum")
    ((path, sent, size),) = entries
    assert (path, size) == ("/assets/app.2.js", len(new))
    assert sent < size // 20
    assert second == first > 0


# ---- weir check ----


def check(conf: Path) -> str:
    done = subprocess.run(
        [WEIR, "check", "-c", str(conf)],
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    return done.stdout + done.stderr


def test_check_refuses_patterns_that_browsers_read_in_another_way(
    tmp_path: Path, assets: Path, pair: Pair
) -> None:
    conf = configure(tmp_path / "weir.conf", assets, pair, "[path /a:b/*]\ndictionary = on\n")
    assert f"{conf}:16: error: dictionary: browsers read a character of the pattern" in check(conf)
    configure(conf, assets, pair, "[path /a:b/*]\ndictionary = off\n")
    assert "error" not in check(conf)


def test_check_warns_of_dictionaries_that_some_clients_may_not_have(
    tmp_path: Path, assets: Path, pair: Pair
) -> None:
    for more in ("deny = 10.0.0.0/8", "status = 410", "redirect = 302 /"):
        conf = configure(
            tmp_path / "weir.conf", assets, pair, f"[path /a/*]\ndictionary = on\n{more}\n"
        )
        assert f"{conf}:16: warning: dictionary: this has no effect in a section with" in check(
            conf
        )


def test_check_warns_of_dictionaries_without_https(
    tmp_path: Path, assets: Path, pair: Pair
) -> None:
    conf = configure(tmp_path / "weir.conf", assets, pair)
    conf.write_text(conf.read_text().replace(", https://127.0.0.1:0", ""))
    assert "dictionary: this has no effect: no address of `listen` begins with" in check(conf)
