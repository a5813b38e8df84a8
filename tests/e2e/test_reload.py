# SPDX-License-Identifier: MIT
"""Reloading: a valid configuration takes effect, an invalid one changes nothing, and no request
fails."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import signal
import socket
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import Port, ServerFactory
from tests.e2e.load import Load
from tests.e2e.running import WEIR, Process, Server, models, start
from tests.e2e.sockets import tcp_sockets
from tests.e2e.test_stopping import BIG, begin_download, wait_until_refused
from tests.e2e.wire import connect
from tests.waiting import wait_until

FINISHED = re.compile(r"^\S+ \S+ \[\d+\] (reloaded: |the reload failed, )(.*)$", re.MULTILINE)

BROKEN = [
    "listen = 127.0.0.1:0\nno-such-setting = 1",
    "listen = 127.0.0.1:0\naccess-log = /nonexistent/access.log",
]


def write(path: Path, root: Path, server: str = "listen = 127.0.0.1:0", site: str = "") -> Path:
    """Writes a configuration in one step."""
    fresh = path.with_suffix(".new")
    fresh.write_text(f"[server]\n{server}\n[site a]\nroot = {root}\n{site}\n")
    fresh.rename(path)
    return path


def outcomes(running: Server) -> list[tuple[bool, str]]:
    """Of each reload: whether it succeeded, and its message."""
    return [
        (found[1].startswith("reloaded"), found[2])
        for found in FINISHED.finditer(running.messages())
    ]


def reload(running: Server) -> tuple[bool, str]:
    """Requests a reload and waits for its outcome."""
    before = len(outcomes(running))
    running.signal(signal.SIGHUP)
    wait_until(lambda: len(outcomes(running)) > before, running.messages)
    return outcomes(running)[before]


def wait_until_only(running: Server, workers: int) -> list[Process]:
    """Waits until the earlier generations have ended; returns the workers that are left."""
    left: list[Process] = []

    def only() -> bool:
        left[:] = running.workers()
        return len(left) == workers

    wait_until(only, lambda: f"{workers} workers, now {len(left)}: {running.messages()}")
    return left


ARENA = re.compile(r"/dev/shm/weir-\d+-\d+/\d+")


def descriptors(process: Process) -> list[str]:
    """What a process has open, without the numbers of sockets and pipes.

    The arenas of the statistics are left out: the master keeps those of ended workers, for the
    next ones.
    """
    links = [link for link in process.descriptors().values() if not ARENA.fullmatch(link)]
    return sorted(re.sub(r"\[\d+\]", "", link) for link in links)


def arenas(process: Process) -> int:
    return len({link for link in process.descriptors().values() if ARENA.fullmatch(link)})


def wait_until_holding(running: Server, held: list[str]) -> None:
    """Waits until the master has closed what it kept open for earlier generations.

    It may hold less than before: a connection that it was passing when `held` was read is gone.
    """
    wait_until(
        lambda: Counter(descriptors(running.master)) <= Counter(held),
        lambda: f"the descriptors {held}, now {descriptors(running.master)}",
    )


def resident_kib(process: Process) -> int:
    status = Path(f"/proc/{process.pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+)", status)
    assert found
    return int(found[1])


@pytest.fixture
def conf(tmp_path: Path, site: Path) -> Path:
    return write(tmp_path / "weir.conf", site)


@pytest.fixture
def bare() -> Iterator[list[Server]]:
    """A list for servers whose configuration sets the model. Each is stopped at the end."""
    servers: list[Server] = []
    yield servers
    for each in servers:
        each.stop()


def configured(server: ServerFactory, conf: Path, *arguments: str) -> Server:
    return server("-c", str(conf), *arguments, folder=None, listen=())


# ---- what changes ----


def test_a_valid_configuration_takes_effect(
    server: ServerFactory, conf: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "hello.txt").write_text("other\n")
    running = configured(server, conf)
    with connect(running.address) as connection:
        assert connection.get("/hello.txt").body == b"hello\n"
    workers = wait_until_only(running, len(running.workers()))

    write(conf, other, site="header = X-New: yes")
    good, text = reload(running)
    assert good
    assert text.startswith("model ")
    assert not set(wait_until_only(running, len(workers))) & set(workers)
    with connect(running.address) as connection:
        answer = connection.get("/hello.txt")
        assert (answer.body, answer.get("X-New")) == (b"other\n", "yes")


def test_a_server_without_a_configuration_file_reloads_too(server: ServerFactory) -> None:
    running = server()
    assert reload(running)[0]
    with connect(running.address) as connection:
        assert connection.get("/hello.txt").body == b"hello\n"


def listener() -> tuple[socket.socket, str]:
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    taken.listen()
    return taken, f"127.0.0.1:{taken.getsockname()[1]}"


def test_the_arenas_of_ended_workers_are_used_again(
    server: ServerFactory, conf: Path, site: Path
) -> None:
    running = configured(server, conf)
    workers = len(running.workers())
    for turn in range(8):
        if turn % 2:
            write(conf, site, "listen = 127.0.0.1:0, 127.0.0.1:0\nuser = no-such-user")
        else:
            write(conf, site)
        assert reload(running)[0] == (turn % 2 == 0)
        wait_until_only(running, workers)
    # One for each process that there was at a time: two generations, one that has ended without
    # having been reaped, the master and the page.
    assert arenas(running.master) <= 3 * workers + 3


@pytest.mark.parametrize("how", ["syntax", "fifo", "root", "log", "address", "worker"])
def test_an_invalid_configuration_changes_nothing(
    server: ServerFactory, conf: Path, site: Path, how: str, tmp_path: Path
) -> None:
    running = configured(server, conf)
    workers, held = running.workers(), descriptors(running.master)
    taken, address = listener()
    with contextlib.closing(taken), connect(running.address) as connection:
        assert connection.get("/hello.txt").status == 200
        match how:
            case "syntax":
                write(conf, site, "listen = 127.0.0.1:0\nno-such-setting = 1")
                expected = f"{conf}:3: error: unknown setting `no-such-setting`"
            case "fifo":  # it would wait for another writer
                conf.unlink()
                os.mkfifo(conf)
                expected = f"{conf}: error: cannot be read: it is no regular file, and is"
            case "root":
                write(conf, tmp_path / "nowhere")
                expected = f"{conf}:4: error: root: `{tmp_path}/nowhere` cannot be served"
            case "log":
                write(conf, site, "listen = 127.0.0.1:0\naccess-log = /proc/no")
                expected = f"weir: {conf}:3: access-log: cannot open the access log /proc/no: "
            case "address":
                write(conf, site, f"listen = 127.0.0.1:0, 127.0.0.1:0, {address}", "[path /a]")
                expected = f"weir: {conf}:2: listen: cannot listen on {address}: Address already"
            case _:
                write(conf, site, "listen = 127.0.0.1:0, 127.0.0.1:0\nuser = no-such-user")
                expected = f"{conf}:3: error: user: there is no user `no-such-user`"
        good, text = reload(running)
        assert not good
        assert expected in text
        assert "\\x" not in text, "the lines of the reason are not joined"
        assert "warning" not in text, "a warning is no reason"
        assert connection.get("/hello.txt").status == 200, "the connection is not served"
    wait_until_only(running, len(workers))
    assert running.workers() == workers
    wait_until_holding(running, held)

    write(conf, site)
    assert reload(running)[0]


def test_a_configuration_that_needs_too_much_memory_changes_nothing(
    server: ServerFactory, site: Path, conf: Path
) -> None:
    """The process that reads it first dies, and the master does not."""
    running = configured(server, conf)
    status = Path(f"/proc/{running.popen.pid}/status").read_text()
    found = re.search(r"^VmSize:\s+(\d+) kB$", status, re.MULTILINE)
    assert found
    most = (int(found[1]) + 64) * 1024
    if most > 1 << 40:
        pytest.skip("a sanitizer has reserved memory for all that it will need")
    before = resource.prlimit(running.popen.pid, resource.RLIMIT_AS)
    resource.prlimit(running.popen.pid, resource.RLIMIT_AS, (most, before[1]))
    hosts = "".join(f"host = {number}.example.org\n" for number in range(20000))
    write(conf, site, site=hosts)
    good, message = reload(running)
    assert not good
    assert "a process that read the configuration first was killed by signal 6" in message
    resource.prlimit(running.popen.pid, resource.RLIMIT_AS, before)
    with connect(running.address) as connection:
        assert connection.get("/hello.txt").status == 200
    assert reload(running)[0]


def test_addresses_can_be_added_and_removed(
    server: ServerFactory, conf: Path, site: Path, port: Port
) -> None:
    added = ("127.0.0.1", port())
    running = configured(server, conf)
    write(conf, site, f"listen = 127.0.0.1:0, 127.0.0.1:{added[1]}")
    assert reload(running)[0]
    for each in [running.address, added]:
        with connect(each) as connection:
            assert connection.get("/hello.txt").status == 200

    write(conf, site)
    assert reload(running)[0]
    wait_until_refused(added)
    with connect(running.address) as connection:
        assert connection.get("/hello.txt").status == 200


def listening(port: int) -> int:
    """How many sockets listen on this port."""
    return sum(each.listens for each in tcp_sockets(port))


@pytest.mark.parametrize("model", ["percore"])
def test_a_reload_that_cannot_listen_leaves_no_further_sockets(
    server: ServerFactory, conf: Path, site: Path, port: Port
) -> None:
    """The kernel would give them connections that no worker accepts.

    Of the two new addresses, another program listens at the second.
    """
    kept, fresh = port(), port()
    taken, address = listener()
    write(conf, site, f"listen = 127.0.0.1:{kept}\nthreads = 1")
    running = configured(server, conf)
    assert listening(kept) == 1
    listen = f"127.0.0.1:{kept}, 127.0.0.1:{fresh}, {address}"
    write(conf, site, f"listen = {listen}\nthreads = 2")
    with contextlib.closing(taken):
        good, text = reload(running)
    assert not good
    assert "cannot listen on" in text
    assert listening(kept) == 1
    wait_until(lambda: listening(fresh) == 0, "the workers of the failed generation have ended")
    write(conf, site, f"listen = 127.0.0.1:{kept}, 127.0.0.1:{fresh}\nthreads = 2")
    assert reload(running)[0]
    assert listening(kept) == listening(fresh) == 2
    with connect(("127.0.0.1", fresh)) as connection:
        assert connection.get("/hello.txt").status == 200


def test_an_address_can_be_widened(
    server: ServerFactory, conf: Path, site: Path, port: Port
) -> None:
    number = port()
    write(conf, site, f"listen = 127.0.0.1:{number}")
    running = configured(server, conf)
    for listen in [f"0.0.0.0:{number}", f"127.0.0.1:{number}"]:
        with Load(running.address, "/hello.txt", b"hello\n", clients=2, keep=False) as load:
            load.wait_for(20)
            write(conf, site, f"listen = {listen}")
            assert reload(running) == (True, reload_text(running))
            load.wait_for(20)
            assert load.stop().wrong == []
    with connect(running.address) as connection:
        assert connection.get("/hello.txt").status == 200


def reload_text(running: Server) -> str:
    return outcomes(running)[-1][1]


def test_a_unix_socket_keeps_its_file(
    server: ServerFactory, conf: Path, site: Path, tmp_path: Path
) -> None:
    path = tmp_path / "weir.sock"
    write(conf, site, f"listen = unix:{path}, 127.0.0.1:0")
    running = configured(server, conf)
    inode = path.stat().st_ino
    assert reload(running)[0]
    assert path.stat().st_ino == inode
    with connect(str(path)) as connection:
        assert connection.get("/hello.txt").status == 200
    write(conf, site)
    assert reload(running)[0]
    assert not path.exists()


def test_a_reload_makes_a_unix_socket_whose_file_was_removed(
    server: ServerFactory, conf: Path, site: Path, tmp_path: Path
) -> None:
    path = tmp_path / "weir.sock"
    write(conf, site, f"listen = unix:{path}, 127.0.0.1:0")
    running = configured(server, conf)
    path.unlink()
    assert reload(running)[0]
    inode = path.stat().st_ino
    with connect(str(path)) as connection:
        assert connection.get("/hello.txt").status == 200
    assert reload(running)[0]
    assert path.stat().st_ino == inode
    running.stop()
    assert not path.exists()


def test_the_pid_file_moves_with_its_setting(
    server: ServerFactory, conf: Path, site: Path, tmp_path: Path
) -> None:
    first, second = tmp_path / "first.pid", tmp_path / "second.pid"
    write(conf, site, f"listen = 127.0.0.1:0\npid-file = {first}")
    running = configured(server, conf)
    pid = f"{running.popen.pid}\n"
    assert reload(running)[0]
    assert first.read_text() == pid
    write(conf, site, f"listen = 127.0.0.1:0\npid-file = {second}")
    assert reload(running)[0]
    assert second.read_text() == pid
    assert not first.exists()

    other = server("--pid-file", str(first))
    write(conf, site, f"listen = 127.0.0.1:0\npid-file = {first}")
    good, text = reload(running)
    assert not good
    assert f"belongs to process {other.popen.pid}" in text
    assert second.read_text() == pid
    write(conf, site)
    assert reload(running)[0]
    assert not second.exists()


# ---- under load ----


def test_the_model_can_change_under_load(
    conf: Path, site: Path, tmp_path: Path, bare: list[Server]
) -> None:
    write(conf, site, "listen = 127.0.0.1:0\nmodel = epoll")
    running = start(["-c", str(conf)], tmp_path / "stderr")
    bare.append(running)
    shapes = [f"model = {model}" for model in models()] + [
        "model = percore\nthreads = 4",
        "model = percore\nthreads = 2",
        "model = epoll\nworkers = 3",
        "model = epoll",
        "model = percore\nthreads = 3\nworkers = 2",
    ]
    fast = Load(running.address, "/hello.txt", b"hello\n", clients=3, keep=False)
    kept = Load(running.address, "/hello.txt", b"hello\n", clients=3, keep=True)
    with fast, kept:
        for shape in shapes:
            write(conf, site, f"listen = 127.0.0.1:0\n{shape}")
            good, text = reload(running)
            assert good, text
            assert text.startswith(shape.split("\n")[0].replace(" = ", " "))
            fast.wait_for(30)
            kept.wait_for(30)
        assert fast.stop().failed == 0, fast.count()
        assert kept.stop().failed == 0, kept.count()


def test_reloads_under_load_fail_no_request(
    server: ServerFactory, model: str, conf: Path, site: Path
) -> None:
    rounds = 50 if model == "epoll" else 5
    running = configured(server, conf, "--drain-idle", "20ms")
    workers = len(running.workers())
    held, resident = descriptors(running.master), 0
    fast = Load(running.address, "/hello.txt", b"hello\n", clients=3, keep=False)
    kept = Load(running.address, "/hello.txt", b"hello\n", clients=3, keep=True)
    with fast, kept:
        for i in range(rounds):
            write(conf, site, BROKEN[i % len(BROKEN)])
            assert not reload(running)[0]
            write(conf, site, f"listen = 127.0.0.1:0\nidle-timeout = {60 + i}s")
            assert reload(running)[0]
            fast.wait_for(2)
            kept.wait_for(2)
            if i == rounds // 2:
                resident = resident_kib(running.master)
        fast_count, kept_count = fast.stop(), kept.stop()
    assert fast_count.failed == 0, fast_count
    assert fast_count.parted == 0
    assert kept_count.failed == 0, kept_count
    wait_until_only(running, workers)
    wait_until_holding(running, held)
    if rounds >= 50 and b"__asan_init" not in WEIR.read_bytes():  # which keeps what is freed
        assert resident_kib(running.master) < resident + 1500, "reloads leave memory behind"


# ---- generations ----


def test_several_generations_drain_at_the_same_time(
    server: ServerFactory, conf: Path, site: Path
) -> None:
    running = configured(server, conf)
    workers = len(running.workers())
    begin_download(running, site).close()
    held = descriptors(running.master)
    downloads = []
    for i in range(3):
        downloads.append(begin_download(running, site, f"big-{i}.bin"))
        assert reload(running)[0]
    try:
        assert len(running.workers()) >= workers + len(downloads)
        for download in downloads:
            assert len(download.read().body) == BIG
    finally:
        for download in downloads:
            download.close()
    wait_until_only(running, workers)
    wait_until_holding(running, held)


def test_a_download_of_an_old_generation_ends_with_the_drain_timeout(
    server: ServerFactory, conf: Path, site: Path
) -> None:
    running = configured(server, conf, "--drain-timeout", "300ms")
    workers = len(running.workers())
    download = begin_download(running, site)
    try:
        assert reload(running)[0]
        wait_until_only(running, workers)
    finally:
        download.close()


def test_a_worker_that_does_not_end_is_killed(server: ServerFactory, conf: Path) -> None:
    running = configured(server, conf, "--drain-timeout", "50ms", "--kill-timeout", "50ms")
    workers = running.workers()
    for worker in workers:
        os.kill(worker.pid, signal.SIGSTOP)
    assert reload(running)[0]
    wait_until_only(running, len(workers))
    wait_until(lambda: "killed by signal 9" in running.messages(), running.messages)


def test_of_reloads_in_quick_succession_the_last_takes_effect(
    server: ServerFactory, conf: Path, site: Path
) -> None:
    running = configured(server, conf)
    workers = len(running.workers())
    for i in range(20):
        write(conf, site, site=f"header = X-Number: {i}")
        running.signal(signal.SIGHUP)

    def number() -> str | None:
        with connect(running.address) as connection:
            return connection.get("/hello.txt").get("X-Number")

    wait_until(lambda: number() == "19", running.messages)
    wait_until_only(running, workers)
    assert 1 <= len(outcomes(running)) <= 20
    assert all(good for good, _ in outcomes(running))


def test_a_stop_during_a_reload_ends_the_server(server: ServerFactory, conf: Path) -> None:
    running = configured(server, conf)
    running.seen.update(running.workers())
    running.signal(signal.SIGHUP)
    running.signal(signal.SIGTERM)
    assert running.wait() == 0


def test_a_second_server_cannot_listen_on_the_same_port(server: ServerFactory, conf: Path) -> None:
    running = configured(server, conf)
    host, port = running.address
    with pytest.raises(AssertionError, match="another process listens there"):
        server(listen=(f"{host}:{port}",))
