# SPDX-License-Identifier: MIT
"""A real site of about a thousand files is served byte for byte."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.e2e.conftest import ServerFactory
from tests.e2e.spelling import Library, getting
from tests.e2e.wire import Answer, connect, parse_answer
from tests.waiting import LIMIT_S

DOCS = max(
    Path("/usr/share/doc").glob("python3.*[0-9]/html"), default=Path("/usr/share/doc/python3")
)
CONNECTIONS = 200
CONNECTIONS_2 = 4  # of HTTP/2
ROUNDS = 2
PART = "c-api"  # a folder of pages that link to each other

needs_docs = pytest.mark.skipif(not DOCS.is_dir(), reason=f"{DOCS} is not installed")


def files_of(root: Path) -> dict[str, bytes]:
    """The files that the server may serve: path below the root -> bytes.

    Links out of the root and names that begin with a dot are left out.
    """
    found = {}
    for folder, _, names in os.walk(root):
        for name in names:
            path = Path(folder, name)
            shown = path.relative_to(root)
            hidden = any(part.startswith(".") for part in shown.parts)
            if not hidden and path.resolve().is_relative_to(root.resolve()) and path.is_file():
                found[str(shown)] = path.read_bytes()
    return found


def links_out_of(root: Path) -> list[str]:
    return [
        str(path.relative_to(root))
        for path in root.rglob("*")
        if path.is_symlink() and not path.resolve().is_relative_to(root.resolve())
    ]


async def read_answer(reader: asyncio.StreamReader) -> Answer:
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
    parsed = parse_answer(head + await reader.readexactly(length))
    assert parsed
    return parsed[0]


async def fetch(address: tuple[str, int], paths: list[str]) -> list[Answer]:
    """Requests the paths one after the other over one connection."""
    reader, writer = await asyncio.open_connection(*address)
    answers = []
    try:
        for path in paths:
            writer.write(f"GET /{quote(path)} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
            answers.append(await read_answer(reader))
    finally:
        writer.close()
        await writer.wait_closed()
    return answers


async def fetch_all(address: tuple[str, int], work: list[list[str]]) -> list[list[Answer]]:
    async with asyncio.timeout(2 * LIMIT_S):
        return await asyncio.gather(*(fetch(address, paths) for paths in work))


@needs_docs
def test_many_connections_receive_every_file_unchanged(server: ServerFactory) -> None:
    mirror(server, "1M")  # a cache that evicts


@needs_docs
@pytest.mark.parametrize("cache", ["64M", "0"])
@pytest.mark.parametrize("model", ["fork", "percore", "uring"])
def test_the_size_of_the_cache_changes_no_file(server: ServerFactory, cache: str) -> None:
    mirror(server, cache)


def mirror(server: ServerFactory, cache: str) -> None:
    """Requests every file several times over many connections, and compares the bodies."""
    running = server("--cache-size", cache, folder=DOCS)
    files = files_of(DOCS)
    assert len(files) > 500
    paths = list(files) * ROUNDS
    random.Random(1).shuffle(paths)
    work = [paths[first::CONNECTIONS] for first in range(CONNECTIONS)]
    fetched = asyncio.run(fetch_all(running.address, work))
    for asked, answers in zip(work, fetched, strict=True):
        for path, answer in zip(asked, answers, strict=True):
            assert answer.status == 200, path
            assert answer.body == files[path], path


@needs_docs
@pytest.mark.parametrize("model", ["percore", "pool", "uring"])
def test_streams_of_few_connections_receive_every_file_unchanged(server: ServerFactory) -> None:
    """HTTP/2, with as many streams as the server permits at the same time."""
    running = server("--h2c", "on", "--cache-size", "1M", folder=DOCS)
    files = files_of(DOCS)

    def fetch_streams(first: int) -> None:
        paths = list(files)[first::CONNECTIONS_2]
        random.Random(first).shuffle(paths)
        with connect(running.address) as connection:
            library = Library(connection)
            outcomes = library.play([getting(f"/{quote(path)}") for path in paths])
        assert library.most_open == min(100, len(paths))
        for path, outcome in zip(paths, outcomes, strict=True):
            assert outcome.status == 200, path
            assert outcome.body == files[path], path

    with ThreadPoolExecutor(CONNECTIONS_2) as pool:
        list(pool.map(fetch_streams, range(CONNECTIONS_2)))


@needs_docs
def test_links_out_of_the_site_are_refused(server: ServerFactory) -> None:
    links = links_out_of(DOCS)
    if not links:
        pytest.skip("this version of the documentation has no such links")
    running = server(folder=DOCS)
    answers = asyncio.run(fetch(running.address, links))
    assert [answer.status for answer in answers] == [403] * len(links)


@needs_docs
@pytest.mark.skipif(not shutil.which("wget"), reason="wget is not installed")
@pytest.mark.parametrize("model", ["percore", "uring"])  # they send in different ways
def test_wget_mirrors_a_part_of_the_site(server: ServerFactory, tmp_path: Path) -> None:
    running = server(folder=DOCS)
    into = tmp_path / "mirror"
    host, port = running.address
    command = ["wget", "--mirror", "--no-verbose", "--tries=1", f"--timeout={LIMIT_S}"]
    command += ["--no-proxy", "--execute", "robots=off", f"--directory-prefix={into}"]
    command += ["--no-parent", f"{running.url}/{PART}/"]
    mirrored = subprocess.run(command, capture_output=True, check=False)
    # Status 8 means that some answers were errors: some links of the pages are dead.
    assert mirrored.returncode in (0, 8), mirrored.stderr.decode(errors="replace")[-2000:]
    top = into / f"{host}:{port}"
    fetched = [path for path in top.rglob("*") if path.is_file()]
    pages = [path for path in fetched if path.suffix == ".html"]
    assert len(pages) >= 0.9 * len(list((DOCS / PART).rglob("*.html")))
    for path in fetched:
        name = str(path.relative_to(top)).partition("?")[0]
        assert path.read_bytes() == (DOCS / name).read_bytes(), name
