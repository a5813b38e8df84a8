# SPDX-License-Identifier: MIT
"""A reload moves addresses between the sites and the statistics page."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import Port
from tests.e2e.running import Server, start
from tests.e2e.test_page import ANY_ADDRESS
from tests.e2e.test_reload import reload, write
from tests.e2e.test_upgrade import upgrade
from tests.e2e.wire import connect
from tests.waiting import wait_until

pytestmark = pytest.mark.parametrize("model", ["epoll", "percore", "prefork"])

HELLO = b"hello\n"
Address = tuple[str, int] | str


def answers(address: Address) -> str:
    """Which of the two serves at that address: `page` or `site`."""
    with connect(address) as connection:
        page = connection.get("/healthz", "localhost").body == b"serving\n"
    with connect(address) as connection:
        site = connection.get("/hello.txt", "localhost").body == HELLO
    return f"{'page' if page else ''}{'site' if site else ''}"


def wait_for(address: Address, what: str) -> None:
    """Waits until the page or the site serves there. During the change either may answer."""
    wait_until(lambda: answers(address) == what, f"the {what} serves at {address}")


@pytest.fixture
def serving(tmp_path: Path, site: Path, model: str) -> Iterator[Callable[[str], Server]]:
    started: list[Server] = []

    def make(lines: str) -> Server:
        config = write(tmp_path / "weir.conf", site, lines)
        if not started:
            arguments = ["-c", str(config), "--model", model]
            started.append(start(arguments, tmp_path / "stderr", environment=ANY_ADDRESS))
        return started[0]

    yield make
    if started and started[0].popen.poll() is None:
        started[0].stop()


def test_two_ports_are_exchanged(serving: Callable[[str], Server], port: Port) -> None:
    a, b = port(), port()
    ways = [f"listen = 127.0.0.1:{x}\nstats-listen = 127.0.0.1:{y}" for x, y in ((a, b), (b, a))]
    running = serving(ways[0])
    for turn in range(1, 6):
        sites, page = ((a, b), (b, a))[turn % 2]
        serving(ways[turn % 2])
        assert reload(running)[0], running.messages()
        wait_for(("127.0.0.1", sites), "site")
        wait_for(("127.0.0.1", page), "page")


def test_a_port_moves_from_the_page_to_the_site_and_back(
    serving: Callable[[str], Server], port: Port
) -> None:
    a, b = port(), port()
    running = serving(f"listen = 127.0.0.1:{a}\nstats-listen = 127.0.0.1:{b}")
    serving(f"listen = 127.0.0.1:{a}, 127.0.0.1:{b}\nstats-listen = off")
    assert reload(running)[0], running.messages()
    for each in (a, b):
        wait_for(("127.0.0.1", each), "site")
    serving(f"listen = 127.0.0.1:{a}\nstats-listen = 127.0.0.1:{b}")
    assert reload(running)[0], running.messages()
    wait_for(("127.0.0.1", b), "page")
    assert answers(("127.0.0.1", a)) == "site"
    running.stop()
    for each in (a, b):
        with pytest.raises(ConnectionRefusedError):
            answers(("127.0.0.1", each))


def test_no_connection_is_refused_during_the_exchange(
    serving: Callable[[str], Server], port: Port
) -> None:
    a, b = port(), port()
    running = serving(f"listen = 127.0.0.1:{a}\nstats-listen = 127.0.0.1:{b}")
    done = threading.Event()
    wrong: list[object] = []

    def ask() -> None:
        while not done.is_set():
            try:
                with connect(("127.0.0.1", b)) as connection:
                    status = connection.get("/", "localhost").status
                    if status != 200:
                        wrong.append(status)
            except OSError as error:
                wrong.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        for x, y in ((b, a), (a, b), (b, a)):
            serving(f"listen = 127.0.0.1:{x}\nstats-listen = 127.0.0.1:{y}")
            assert reload(running)[0], running.messages()
            wait_for(("127.0.0.1", x), "site")
    finally:
        done.set()
        thread.join()
    assert wrong == []


def test_a_reload_that_fails_moves_nothing(
    serving: Callable[[str], Server], port: Port, tmp_path: Path
) -> None:
    a, b = port(), port()
    paths = tmp_path / "a", tmp_path / "b"
    here = f"listen = 127.0.0.1:{a}, unix:{paths[0]}\nstats-listen = 127.0.0.1:{b}, unix:{paths[1]}"
    there = f"127.0.0.1:{b}, unix:{paths[1]}\nstats-listen = 127.0.0.1:{a}, unix:{paths[0]}"
    running = serving(here)
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        for order in (f"{there}, 127.0.0.1:{taken}", f"127.0.0.1:{taken}, {there}"):
            serving(f"listen = {order}")
            good, why = reload(running)
            assert not good
            assert f"cannot listen on 127.0.0.1:{taken}" in why
            for address in (("127.0.0.1", a), str(paths[0])):
                assert answers(address) == "site"
            for address in (("127.0.0.1", b), str(paths[1])):
                assert answers(address) == "page"
    serving(f"listen = {there}")
    assert reload(running)[0], running.messages()
    for address in (("127.0.0.1", a), str(paths[0])):
        wait_for(address, "page")
    for address in (("127.0.0.1", b), str(paths[1])):
        wait_for(address, "site")
    running.stop()
    assert not any(path.exists() for path in paths)


def test_a_port_that_the_kernel_chose_cannot_be_moved(serving: Callable[[str], Server]) -> None:
    running = serving("listen = 127.0.0.1:0\nstats-listen = 127.0.0.1:0")
    page = int(running.messages().split("statistics: http://127.0.0.1:")[1].split("/")[0])
    serving(f"listen = 127.0.0.1:{page}\nstats-listen = 127.0.0.1:0")
    good, why = reload(running)
    assert not good
    assert "already" in why
    assert (answers(running.address), answers(("127.0.0.1", page))) == ("site", "page")


def test_an_upgrade_can_exchange_them_too(serving: Callable[[str], Server], port: Port) -> None:
    a, b = port(), port()
    running = serving(f"listen = 127.0.0.1:{a}\nstats-listen = 127.0.0.1:{b}")
    serving(f"listen = 127.0.0.1:{b}\nstats-listen = 127.0.0.1:{a}")
    new = upgrade(running)
    children = new.descendants()
    try:
        wait_for(("127.0.0.1", b), "site")
        wait_for(("127.0.0.1", a), "page")
    finally:
        os.kill(new.pid, signal.SIGTERM)
    wait_until(lambda: not any(each.alive for each in [new, *children]), "all processes have ended")
