# SPDX-License-Identifier: MIT
"""Fixtures of the end-to-end tests: a folder to serve, and a server for each model."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.certificates import HERE, Pair, make
from tests.e2e.ports import reserved_port
from tests.e2e.running import WEIR, Server, models, played, playing, start

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# These are about processes that start, end and follow each other. Each model has its own, so all
# models play them, also where PLAYED_MODELS names fewer.
OF_PROCESSES = {
    f"test_{name}"
    for name in ("control", "passing", "reload", "stopping", "supervision", "systemd", "upgrade")
}

# On a busy machine a client may get no CPU for longer than the timeouts of a server usually are.
# Tests of timeouts, and of configurations, name their own.
PATIENT = tuple(
    word for kind in ("header", "body", "idle", "send") for word in (f"--{kind}-timeout", "1h")
)

ServerFactory = Callable[..., Server]
Port = Callable[[], int]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs a test that takes `model` on each model that plays it, or on those that it names."""
    named = any(mark.args[0] == "model" for mark in metafunc.definition.iter_markers("parametrize"))
    if "model" in metafunc.fixturenames and not named:
        if not WEIR.is_file():
            raise pytest.UsageError(f"no server at {WEIR}: `make build` first, or set WEIR")
        every = Path(metafunc.module.__file__).stem in OF_PROCESSES
        chosen = playing(metafunc.function.__name__, models() if every else played())
        metafunc.parametrize("model", chosen, scope="session")


@pytest.fixture
def tmp_path(tmp_path: Path) -> Path:
    """A temporary folder that may be a site: root serves it as another user."""
    tmp_path.chmod(0o755)
    return tmp_path


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder to serve, with two small files."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "index.html").write_text("<!doctype html><title>site</title>\n")
    (folder / "hello.txt").write_text("hello\n")
    return folder


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    """A self-signed certificate for this machine."""
    return make(tmp_path, "own", *HERE)


@pytest.fixture
def authority(tmp_path: Path) -> Pair:
    """The authority that signs `good`."""
    return make(tmp_path, "authority", "authority.example")


@pytest.fixture
def good(authority: Pair, tmp_path: Path) -> Pair:
    """A certificate for this machine that the authority has signed."""
    return make(tmp_path, "good", *HERE, issuer=authority)


@pytest.fixture
def trust(authority: Pair) -> list[str]:
    """The words by which a load trusts the authority."""
    return ["--cacert", str(authority.certificate)]


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that other users can read, unlike the temporary folders of pytest."""
    folder = Path(tempfile.mkdtemp(prefix="weir-test-"))
    folder.chmod(0o755)
    (folder / "hello.txt").write_text("hello\n")
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def port() -> Iterator[Callable[[], int]]:
    """Gives ports that stay reserved for this test."""
    with ExitStack() as held:
        yield lambda: held.enter_context(reserved_port())


@pytest.fixture
def server(model: str, site: Path, tmp_path: Path) -> Iterator[ServerFactory]:
    """Starts servers. Each is stopped at the end of the test, and must exit with status 0.

    `folder` is what to serve; with None, the configuration says what. The positional
    arguments are those of `weir serve`. By default the server listens on a free port. Without a
    configuration it waits long for clients.
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
        addresses: int | None = None,
    ) -> Server:
        words = [str(folder)] if folder else []
        for address in listen:
            words += ["--listen", address]
        words += ["--model", model, *(PATIENT if "-c" not in arguments else ()), *arguments]
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
                addresses=addresses,
            )
        )
        return started[-1]

    yield make
    for each in started:
        each.stop()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from tests.e2e.browsing import CHROMIUM, chromium  # few tests use a browser

    if not CHROMIUM.exists():
        pytest.skip(f"there is no browser at {CHROMIUM}")
    with chromium() as started:
        yield started
