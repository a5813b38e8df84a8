# SPDX-License-Identifier: MIT
"""The example of docs/add-a-model.md: a file and a line add a model, which serves like the others.

The build makes a second program from the example, beside the tests. No other test uses it.
"""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.running import WEIR, Server, start
from tests.e2e.wire import connect

EXAMPLE = WEIR.parent / "tests" / "weir-serial"

pytestmark = pytest.mark.skipif(not EXAMPLE.exists(), reason="this build has no tests")


@pytest.fixture
def serial(site: Path, tmp_path: Path) -> Iterator[Server]:
    arguments = [str(site), "--listen", "127.0.0.1:0", "--model", "serial"]
    running = start(arguments, tmp_path / "stderr", weir=EXAMPLE)
    yield running
    running.stop()


def test_the_program_lists_the_example() -> None:
    listed = subprocess.run([EXAMPLE, "models"], capture_output=True, text=True, check=True)
    assert "serial   one connection at a time" in listed.stdout.split("\n\n")[0].splitlines()[-1]


def test_connections_are_served_one_after_the_other(serial: Server) -> None:
    with connect(serial.address) as first, connect(serial.address) as second:
        assert first.get("/hello.txt").body == b"hello\n"
        assert first.get("/missing").status == 404
        first.close()
        assert second.get("/hello.txt").body == b"hello\n"


def test_a_drain_ends_an_idle_connection(serial: Server) -> None:
    with connect(serial.address) as client:
        assert client.get("/hello.txt").status == 200
        serial.signal(signal.SIGTERM)
        assert serial.wait() == 0


def test_the_statistics_say_what_the_model_means(serial: Server) -> None:
    with connect(serial.address) as client:
        assert client.get("/hello.txt").status == 200
    command = [str(EXAMPLE), "stats", "--json", str(serial.popen.pid)]
    read = subprocess.run(command, capture_output=True, text=True, check=True)
    configuration = json.loads(read.stdout)["configuration"]
    assert configuration["model"] == "serial"
    assert (configuration["accepts"], configuration["serves"]) == ("one", "thread")
