# SPDX-License-Identifier: MIT
"""Several workers log to a disk that is full from time to time: each line is whole or counted."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

from tests.disk import full
from tests.e2e.conftest import ServerFactory
from tests.e2e.running import Server
from tests.e2e.statistics import read
from tests.e2e.test_container import after, needs_mounts
from tests.e2e.test_logs import COMBINED
from tests.e2e.wire import connect
from tests.waiting import wait_until

CYCLES = 4
OVER = re.compile(r"the access log is written again; (\d+) lines? (?:was|were) lost\n")
AT_ONCE = 10  # clients, so that each worker gets some


def dropped(running: Server) -> int:
    return int(read(running.master.pid)["counters"]["log_lines_dropped"])


def ask(running: Server) -> int:
    """Makes one request over each of some connections. Returns their number."""
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(connect(running.address)) for _ in range(AT_ONCE)]
        for client in clients:
            assert client.get("/hello.txt").status == 200
    return len(clients)


def content(log: int) -> bytes:
    return os.pread(log, os.fstat(log).st_size, 0)


def whole_lines(log: int) -> int:
    return sum(bool(COMBINED.fullmatch(line)) for line in content(log).splitlines())


@needs_mounts
def test_a_torn_line_takes_no_line_of_another_worker_with_it(
    server: ServerFactory, tmp_path: Path
) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    running = server(
        *("--access-log", str(folder / "access.log"), "--workers", "3"),
        wrapper=after(f"mount -t tmpfs -o size=4m none {folder}"),
    )
    disk = Path(f"/proc/{running.master.pid}/root{folder}")
    log = os.open(disk / "access.log", os.O_RDONLY)  # it keeps the file after the server's end
    requests = 0

    def state() -> tuple[int, int, int]:
        counted = int(read(running.master.pid)["counters"]["requests"])
        return counted, requests, whole_lines(log) + dropped(running)

    try:
        for _ in range(CYCLES):
            before = dropped(running)
            with full(disk):
                # The last page of the log takes some lines, and then a part of one.
                while dropped(running) == before:
                    requests += ask(running)
            requests += ask(running)
            wait_until(
                lambda: len(set(state())) == 1,
                lambda: (
                    f"requests, requests of the clients, lines with the dropped ones: {state()}"
                ),
            )
        lost = dropped(running)

        def reported() -> int:
            """The lost lines of which the error log says that the loss is over."""
            nonlocal requests
            requests += ask(running)  # the next lines that are written end the loss
            return sum(map(int, OVER.findall(running.messages())))

        wait_until(lambda: reported() == lost, running.messages)
        running.stop()
        assert whole_lines(log) + lost == requests
        assert content(log).endswith(b"\n")
    finally:
        os.close(log)


@needs_mounts
def test_a_pid_file_that_cannot_be_written_is_reported_beside_a_log_on_the_same_disk(
    server: ServerFactory, tmp_path: Path
) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    fill = f"head -c 65536 /dev/zero > {folder}/filler 2>/dev/null || true"
    running = server(
        *("--pid-file", str(folder / "pid"), "--error-log", str(folder / "error.log")),
        wrapper=after(f"mount -t tmpfs -o size=64k none {folder}; {fill}"),
    )
    message = f"weir: cannot write the pid file {folder}/pid: No space left on device; "
    wait_until(lambda: message in running.messages(), running.messages)
    with connect(running.address) as connection:
        assert connection.get("/hello.txt").status == 200
