# SPDX-License-Identifier: MIT
"""Listings of large folders, which cost much to render, on every model."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.conftest import ServerFactory
from tests.e2e.statistics import settled
from tests.e2e.wire import connect

FILES = 5000
TOGETHER = 8


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("many")
    made.chmod(0o755)
    for index in range(FILES):
        (made / f"file-{index}.txt").touch()
    return made


def test_a_large_folder_is_sorted_within_the_sandbox(server: ServerFactory, folder: Path) -> None:
    running = server("--listing", "on", folder=folder)
    with connect(running.address) as connection:
        for sort in ("name", "size", "time"):
            assert connection.get(f"/?sort={sort}&order=desc").status == 200
    assert settled(running)["counters"]["calls_refused"] == 0
    assert "refused" not in running.messages()


@pytest.mark.parametrize("model", ["thread", "pool", "prefork", "percore", "uring"])
def test_a_listing_is_rendered_once_for_all_that_ask_at_the_same_time(
    server: ServerFactory, folder: Path
) -> None:
    running = server("--listing", "on", "--workers", "1", folder=folder)
    with ExitStack() as held:
        connections = [held.enter_context(connect(running.address)) for _ in range(TOGETHER)]
        for connection in connections:
            connection.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answers = [connection.read() for connection in connections]
    assert {answer.status for answer in answers} == {200}
    assert len({answer.body for answer in answers}) == 1
    assert settled(running)["counters"]["listings_rendered"] == 1
