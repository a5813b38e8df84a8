# SPDX-License-Identifier: MIT
"""What the end-to-end tests share: a server to test, once for each model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.running import WEIR, Server, models, start

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ServerFactory = Callable[..., Server]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that takes `model` runs once for each model there is, or for those it names."""
    named = any(mark.args[0] == "model" for mark in metafunc.definition.iter_markers("parametrize"))
    if "model" in metafunc.fixturenames and not named:
        if not WEIR.is_file():
            raise pytest.UsageError(f"no server at {WEIR}: `make build` first, or set WEIR")
        metafunc.parametrize("model", models(), scope="session")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder to serve, with a little in it."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "index.html").write_text("<!doctype html><title>site</title>\n")
    (folder / "hello.txt").write_text("hello\n")
    return folder


@pytest.fixture
def server(model: str, site: Path, tmp_path: Path) -> Iterator[ServerFactory]:
    """Starts servers; each is stopped at the end of the test, and must have gone well.

    The first argument is what to serve (None: what a configuration says), the
    others are those of `weir serve`. Without --listen it is a free port here.
    """
    started: list[Server] = []

    def make(
        *arguments: str,
        folder: Path | None = site,
        listen: tuple[str, ...] = ("127.0.0.1:0",),
        wrapper: tuple[str, ...] = (),
        stdout: Path | None = None,
        environment: Mapping[str, str] | None = None,
        descriptors: tuple[int, ...] = (),
        weir: Path = WEIR,
    ) -> Server:
        words = [str(folder)] if folder else []
        for address in listen:
            words += ["--listen", address]
        words += ["--model", model, *arguments]
        stderr = tmp_path / f"stderr-{len(started)}"
        started.append(
            start(
                words,
                stderr,
                wrapper=wrapper,
                stdout=stdout,
                environment=environment,
                descriptors=descriptors,
                weir=weir,
            )
        )
        return started[-1]

    yield make
    for each in started:
        each.stop()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from tests.e2e.browsing import CHROMIUM, chromium  # of these, only some tests have need

    if not CHROMIUM.exists():
        pytest.skip(f"there is no browser at {CHROMIUM}")
    with chromium() as started:
        yield started
