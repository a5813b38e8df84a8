# SPDX-License-Identifier: MIT
"""A disk that answers late, or not at all, delays only the clients that ask for its files.

The disk is a file system of ours (bench/slowdisk.py), which holds what the test
holds. No test waits for a time.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench.slowdisk import SlowDisk, SlowDiskError
from tests.e2e.certificates import Pair, secure, trusting
from tests.e2e.conftest import ServerFactory
from tests.e2e.http2 import Client, connect2
from tests.e2e.running import Process, Server, played, start
from tests.e2e.statistics import read, settled, weir_stats
from tests.e2e.test_reload import reload
from tests.e2e.test_upgrade import started, upgrade, wait_for_end
from tests.e2e.wire import Connection, connect
from tests.waiting import wait_until

COLD = b"a small file\n"
MIB = 1 << 20
LARGE = b"".join(number.to_bytes(4, "big") for number in range(5 * MIB // 4)) + b"the end"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SlowDisk]:
    source, mountpoint = tmp_path / "source", tmp_path / "disk"
    source.mkdir()
    mountpoint.mkdir()
    for number in range(4):
        (source / f"cold-{number}.txt").write_bytes(COLD)
        (source / f"large-{number}.bin").write_bytes(LARGE)
    try:
        mounted = SlowDisk.mount(source, mountpoint)
    except SlowDiskError as reason:
        pytest.skip(str(reason))
    yield mounted
    mounted.end()


@pytest.fixture
def on_disk(
    disk: SlowDisk, site: Path, server: ServerFactory, tmp_path: Path, pair: Pair
) -> Server:
    """A server with two sites: `localhost` on the slow disk, every other name on a fast one. It
    speaks plain HTTP at its first address, and TLS at the second one."""
    settings = settings_of(disk, site, tmp_path, pair, "drain-timeout = 500ms\nkill-timeout = 4s")
    listen = ("127.0.0.1:0", "https://127.0.0.1:0")
    return server("-c", str(settings), folder=None, wrapper=disk.inside, listen=listen)


def settings_of(disk: SlowDisk, site: Path, tmp_path: Path, pair: Pair, more: str) -> Path:
    settings = tmp_path / "weir.conf"
    settings.write_text(
        f"[server]\nh2c = on\n{more}\n"
        f"[site fast]\nroot = {site}\n{pair.settings()}\n"
        f"[site slow]\nroot = {disk.root}\nhost = localhost\nlisting = on\n{pair.settings()}"
    )
    return settings


# ---- a client of each protocol ----

Get = Callable[[str, str], bytes]


class Asker:
    """A connection of any protocol, on which a request is sent, and its body is read later."""

    def __init__(self, send: Callable[[str], None], read: Callable[[], bytes]) -> None:
        self.send, self.read = send, read


@contextlib.contextmanager
def plain(running: Server, _: Pair) -> Iterator[Asker]:
    with connect(running.address) as to:
        yield Asker(lambda path: to.send(head(path)), lambda: to.read().body)


@contextlib.contextmanager
def over_tls(running: Server, pair: Pair) -> Iterator[Asker]:
    with secure(tls_address(running), trusting(pair)) as to:
        yield Asker(lambda path: to.send(head(path)), lambda: to.read().body)


@contextlib.contextmanager
def over_http2(running: Server, _: Pair) -> Iterator[Asker]:
    with connect2(running.address) as client:
        yield streams_of(client)


@contextlib.contextmanager
def over_http2_and_tls(running: Server, pair: Pair) -> Iterator[Asker]:
    context = trusting(pair)
    context.set_alpn_protocols(["h2"])
    with secure(tls_address(running), context) as to:
        yield streams_of(Client(to))


def head(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


def tls_address(running: Server) -> tuple[str, int]:
    (url,) = [each for each in running.urls if each.startswith("https:")]
    return "127.0.0.1", int(url.rstrip("/").rpartition(":")[2])


def streams_of(client: Client) -> Asker:
    sent: list[int] = []
    return Asker(
        lambda path: sent.append(client.ask(path, authority=b"localhost")),
        lambda: client.answer(sent.pop(0)).body,
    )


PROTOCOLS = {
    "http1": plain,
    "tls": over_tls,
    "http2": over_http2,
    "http2-tls": over_http2_and_tls,
}
every_protocol = pytest.mark.parametrize("protocol", PROTOCOLS)


@pytest.fixture
def closed(disk: SlowDisk, site: Path, server: ServerFactory, tmp_path: Path) -> Server:
    """A server that answers 503 below /closed. The page for it is on the slow disk."""
    (tmp_path / "source/503.html").write_bytes(b"closed until noon")
    settings = tmp_path / "weir.conf"
    settings.write_text(
        f"[site a]\nroot = {site}\nerror-pages = {disk.root}\n[path /closed/**]\nstatus = 503\n"
        f"[site plain]\nroot = {site}\nhost = plain\n"
    )
    return server("-c", str(settings), folder=None, wrapper=disk.inside)


def test_the_page_of_a_rule_for_503_is_fetched(disk: SlowDisk, closed: Server) -> None:
    disk.hold()
    with connect(closed.address) as waiting, connect(closed.address) as other:
        waiting.send(head("/closed/a"))
        disk.wait_held("LOOKUP", "503.html")
        assert other.get("/hello.txt").body == b"hello\n"
        disk.release()
        answer = waiting.read()
    assert (answer.status, answer.body) == (503, b"closed until noon")


def test_a_refused_request_that_waits_for_its_page_is_counted_once(
    disk: SlowDisk, closed: Server, tmp_path: Path
) -> None:
    (tmp_path / "source/404.html").write_bytes(b"not here")
    disk.hold()
    with connect(closed.address) as waiting, connect(closed.address) as other:
        waiting.send(head("/a%2Fb"))
        disk.wait_held("LOOKUP", "404.html")
        assert other.get("/nothing", "plain").status == 404
        disk.release()
        answer = waiting.read()
    assert (answer.status, answer.body) == (404, b"not here")
    numbers = settled(closed)
    assert numbers["refused_by_cause"]["encoded_slash"] == 1
    assert numbers["counters"]["requests"] == 2
    causes = {each["request"]: each["cause"] for each in numbers["recent"]}
    assert "%2F" in causes["GET /a%2Fb"]
    assert "%2F" not in causes["GET /nothing"]


def test_a_file_whose_answer_waits_for_an_error_page_is_looked_up_once(
    disk: SlowDisk, closed: Server, tmp_path: Path
) -> None:
    (tmp_path / "source/412.html").write_bytes(b"another version")
    disk.hold()
    with connect(closed.address) as waiting:
        waiting.send(head("/hello.txt").replace(b"\r\n\r\n", b'\r\nIf-Match: "x"\r\n\r\n'))
        disk.wait_held("LOOKUP", "412.html")
        disk.release()
        answer = waiting.read()
    assert (answer.status, answer.body) == (412, b"another version")
    counters = settled(closed)["counters"]
    assert (counters["cache_hits"], counters["cache_misses"]) == (0, 1)


# ---- a file that is not known ----


@every_protocol
def test_other_clients_are_served_while_the_disk_hangs(
    protocol: str, disk: SlowDisk, on_disk: Server, pair: Pair
) -> None:
    disk.hold()
    with PROTOCOLS[protocol](on_disk, pair) as waiting, connect(on_disk.address) as other:
        waiting.send("/cold-0.txt")
        disk.wait_held("LOOKUP", "cold-0.txt")
        for _ in range(3):
            assert other.get("/hello.txt").body == b"hello\n"
        disk.release()
        assert waiting.read() == COLD


# ---- many wait ----


@pytest.mark.parametrize("model", ["epoll", "uring"])
def test_no_other_disk_waits_when_more_requests_wait_than_are_allowed(
    disk: SlowDisk, site: Path, server: ServerFactory, tmp_path: Path, pair: Pair
) -> None:
    settings = settings_of(disk, site, tmp_path, pair, "workers = 1")
    listen = ("127.0.0.1:0", "https://127.0.0.1:0")
    running = server("-c", str(settings), folder=None, wrapper=disk.inside, listen=listen)
    disk.hold()
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(connect2(running.address)) for _ in range(4)]
        asked = [
            (client, client.ask(f"/none-{number}-{n}", authority=b"localhost"))
            for number, client in enumerate(clients)
            for n in range(100)
        ]
        refused = wait_until(
            lambda: read(running.master.pid)["counters"]["fetches_refused"], "a request is refused"
        )
        with connect(running.address) as other:
            assert other.get("/hello.txt").body == b"hello\n"  # for the first time
        disk.release()
        statuses = [client.answer(stream).status for client, stream in asked]
    assert set(statuses) == {404, 503}
    assert statuses.count(503) >= refused
    assert statuses.count(503) == settled(running)["counters"]["fetches_refused"]


# ---- the pages of a large file ----


@every_protocol
def test_other_clients_are_served_while_pages_of_a_large_file_are_read(
    protocol: str, disk: SlowDisk, on_disk: Server, pair: Pair
) -> None:
    with connect(on_disk.address) as first:
        first.send(b"HEAD /large-0.bin HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert first.read(bodiless=True).status == 200
    disk.hold()
    with PROTOCOLS[protocol](on_disk, pair) as waiting, connect(on_disk.address) as other:
        waiting.send("/large-0.bin")
        disk.wait_held("READ", "large-0.bin")
        for _ in range(3):
            assert other.get("/hello.txt").body == b"hello\n"
        disk.release()
        assert waiting.read() == LARGE


@pytest.mark.parametrize("model", ["epoll", "percore", "uring"])
def test_other_clients_are_served_while_an_open_file_is_compared(
    disk: SlowDisk, on_disk: Server
) -> None:
    """Between two questions to the other machine, the attributes that the kernel knows count."""
    with connect(on_disk.address) as waiting:
        waiting.send(b"HEAD /large-0.bin HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert waiting.read(bodiless=True).status == 200
        disk.silence()
        waiting.send(b"HEAD /large-0.bin HTTP/1.1\r\nHost: localhost\r\n\r\n")
        for _ in range(8):  # several loops
            with connect(on_disk.address) as other:
                assert other.get("/hello.txt").body == b"hello\n"
        disk.release()
        assert waiting.read(bodiless=True).status == 200


# ---- the listing of a folder ----


def know_folder(running: Server) -> None:
    """The kernel then knows the folder, and that it has no index file."""
    with connect(running.address) as first:
        first.send(b"HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert first.read(bodiless=True).status == 200


@every_protocol
def test_other_clients_are_served_while_a_folder_is_read(
    protocol: str, disk: SlowDisk, on_disk: Server, pair: Pair
) -> None:
    know_folder(on_disk)
    disk.hold()
    with PROTOCOLS[protocol](on_disk, pair) as waiting, connect(on_disk.address) as other:
        waiting.send("/")
        disk.wait_held("READDIR", "")
        for _ in range(3):
            assert other.get("/hello.txt").body == b"hello\n"
        disk.release()
        assert b"cold-0.txt" in waiting.read()


@pytest.mark.parametrize("model", ["epoll", "percore", "uring"])
def test_other_clients_are_served_while_each_name_of_a_large_folder_is_read(
    site: Path, server: ServerFactory, tmp_path: Path
) -> None:
    source, mountpoint = tmp_path / "many", tmp_path / "disk"
    source.mkdir()
    mountpoint.mkdir()
    for number in range(20_000):
        (source / f"file-{number:05}.txt").touch()
    try:
        disk = SlowDisk.mount(source, mountpoint)
    except SlowDiskError as reason:
        pytest.skip(str(reason))
    settings = tmp_path / "weir.conf"
    settings.write_text(
        f"[site fast]\nroot = {site}\n"
        f"[site slow]\nroot = {disk.root}\nhost = localhost\nlisting = on\n"
    )
    with disk:
        running = server("-c", str(settings), folder=None, wrapper=disk.inside)
        know_folder(running)
        disk.hold()
        with connect(running.address) as waiting, connect(running.address) as other:
            waiting.send(head("/"))
            disk.wait_held("READDIR", "")
            assert other.get("/hello.txt").body == b"hello\n"
            disk.release("READDIR")
            disk.wait_held("LOOKUP", "file-00000.txt")
            assert other.get("/hello.txt").body == b"hello\n"
            disk.release()
            assert b"10000 more names are not shown" in waiting.read().body
        running.stop()


@pytest.mark.parametrize("model", ["thread", "pool"])
def test_a_folder_of_another_disk_is_listed_while_a_folder_is_read(
    model: str, disk: SlowDisk, site: Path, server: ServerFactory, tmp_path: Path
) -> None:
    """Both folders have the same path. A thread of each connection reads them."""
    settings = tmp_path / "weir.conf"
    sticky = "[server]\npool-policy = sticky\n" if model == "pool" else ""
    settings.write_text(
        f"{sticky}[site fast]\nroot = {site}\nlisting = on\nindex = none.html\n"
        f"[site slow]\nroot = {disk.root}\nhost = localhost\nlisting = on\n"
    )
    running = server("-c", str(settings), folder=None, wrapper=disk.inside)
    know_folder(running)
    disk.hold()
    with connect(running.address) as waiting, connect(running.address) as other:
        waiting.send(head("/"))
        disk.wait_held("READDIR", "")
        assert b"hello.txt" in other.get("/").body
        disk.release()
        assert b"cold-0.txt" in waiting.read().body


def test_a_stop_ends_while_a_folder_is_read(disk: SlowDisk, on_disk: Server) -> None:
    know_folder(on_disk)
    disk.hold()
    with connect(on_disk.address) as waiting:
        waiting.send(head("/"))
        disk.wait_held("READDIR", "")
        on_disk.stop()
    disk.release()


# ---- how long an answer has waited ----


@pytest.mark.parametrize("model", ["epoll", "percore", "uring"])
def test_the_log_and_the_statistics_have_the_time_that_an_answer_waited(
    disk: SlowDisk, site: Path, server: ServerFactory, tmp_path: Path
) -> None:
    log, settings = tmp_path / "access.log", tmp_path / "weir.conf"
    settings.write_text(
        f"[server]\nstats-slow = 1us\naccess-log = {log}\nlog-format = $uri $disk_us\n"
        f"[site fast]\nroot = {site}\n"
        f"[site slow]\nroot = {disk.root}\nhost = localhost\nlisting = on\n"
    )
    running = server("-c", str(settings), folder=None, wrapper=disk.inside)
    know_folder(running)
    held = {"/cold-0.txt": "LOOKUP cold-0.txt", "/large-0.bin": "READ large-0.bin", "/": "READDIR "}
    for path, what in held.items():
        disk.hold()
        with connect(running.address) as waiting:
            waiting.send(head(path))
            if what.startswith("READ "):
                disk.wait_held("LOOKUP", path[1:])
                disk.release("LOOKUP")
            disk.wait_held(*what.split(" "))
            disk.release()
            assert waiting.read().status == 200
    numbers = settled(running)
    waited = {one["request"]: one["disk_wait_seconds"] for one in numbers["recent"]}
    assert all(waited[f"GET {path}"] > 0 for path in held)
    assert numbers["gauges"]["fetch_waits"] == 0
    assert numbers["counters"]["fetch_waits_us"] > 0
    running.stop()
    lines = [line.split(" ") for line in log.read_text().splitlines()]
    times = {path: int(time_us) for path, time_us in lines}
    assert all(times[path] > 0 for path in held)


# ---- the operator's work ----


@contextlib.contextmanager
def hanging(disk: SlowDisk, running: Server) -> Iterator[Connection]:
    """A connection whose answer waits for a page that the disk does not return."""
    with connect(running.address) as first:
        first.send(b"HEAD /large-1.bin HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert first.read(bodiless=True).status == 200
    disk.hold()
    with connect(running.address) as waiting:
        waiting.send(head("/large-1.bin"))
        disk.wait_held("READ", "large-1.bin")
        yield waiting


def test_a_stop_ends_while_the_disk_hangs(disk: SlowDisk, on_disk: Server) -> None:
    with hanging(disk, on_disk):
        on_disk.stop()
    disk.release()


def test_statistics_are_read_while_the_disk_hangs(disk: SlowDisk, on_disk: Server) -> None:
    with hanging(disk, on_disk) as waiting:
        assert weir_stats("--json", str(on_disk.popen.pid)).returncode == 0
        disk.release()
        assert waiting.read().body == LARGE


def test_a_client_that_stops_sending_gets_its_file(disk: SlowDisk, on_disk: Server) -> None:
    disk.hold()
    with connect(on_disk.address) as one, connect2(on_disk.address) as two:
        one.send(head("/cold-0.txt"))
        stream = two.ask("/cold-1.txt", authority=b"localhost")
        for name in ("cold-0.txt", "cold-1.txt"):
            disk.wait_held("LOOKUP", name)
        two.acknowledge = two.refund = False
        one.end_sending()
        two.connection.end_sending()
        disk.release()
        assert one.read().body == COLD
        assert two.answer(stream).body == COLD


def test_a_reload_serves_while_the_disk_hangs(disk: SlowDisk, on_disk: Server) -> None:
    with hanging(disk, on_disk):
        good, text = reload(on_disk)
        assert good, text
        with connect(on_disk.address) as other:
            assert other.get("/hello.txt").body == b"hello\n"
        disk.release()


def test_an_upgrade_serves_while_the_disk_hangs(disk: SlowDisk, on_disk: Server) -> None:
    with hanging(disk, on_disk):
        master = upgrade(on_disk)
        try:
            with connect(on_disk.address) as other:
                assert other.get("/hello.txt").body == b"hello\n"
        finally:
            seen = [master, *master.descendants()]
            os.kill(master.pid, signal.SIGTERM)
            wait_for_end(seen)


# ---- a worker that cannot be killed ----


@pytest.fixture
def impatient(
    model: str, disk: SlowDisk, site: Path, tmp_path: Path, pair: Pair
) -> Iterator[Server]:
    """The same server, which kills its workers soon. Its end and its exit status are the test's."""
    more = "workers = 1\ndrain-timeout = 200ms\nkill-timeout = 200ms"
    settings = settings_of(disk, site, tmp_path, pair, more)
    words = ["-c", str(settings), "--listen", "127.0.0.1:0", "--model", model]
    running = start(words, tmp_path / "impatient", wrapper=disk.inside)
    yield running
    disk.release()
    if running.popen.poll() is None:
        running.signal(signal.SIGTERM)
        running.wait()


@pytest.fixture
def stuck(disk: SlowDisk, impatient: Server) -> Iterator[Process]:
    """A worker with a thread that waits for a name. No signal ends it until the disk answers."""
    disk.hang()
    with connect(impatient.address) as waiting:
        waiting.send(head("/cold-0.txt"))
        disk.wait_held("LOOKUP", "cold-0.txt")
        (worker,) = impatient.workers()
        yield worker
    disk.release()
    wait_until(lambda: not waits_in_kernel(worker), "the worker ends when the disk answers")


def waits_in_kernel(worker: Process) -> bool:
    """Whether a thread is in a wait that no signal ends. The process itself may be a zombie."""
    return any(stat.rpartition(") ")[2].startswith("D") for stat in worker.of_threads("stat"))


# With `fork`, a process of the connection waits, and the master does not wait for it.
with_threads = pytest.mark.parametrize(
    "model", [each for each in played() if each != "fork"], scope="session"
)


@with_threads
def test_a_stop_gives_up_a_worker_that_cannot_be_killed(impatient: Server, stuck: Process) -> None:
    impatient.signal(signal.SIGTERM)
    assert impatient.wait() == 1
    (said,) = [each for each in impatient.messages().splitlines() if "does not end" in each]
    assert re.search(rf"worker {stuck.pid} was killed .* its thread \d+ waits in the kernel", said)
    assert waits_in_kernel(stuck)
    assert weir_stats(str(impatient.popen.pid)).returncode != 0
    with pytest.raises(ConnectionRefusedError):
        Connection.to(impatient.address)


@with_threads
def test_a_worker_that_dies_and_does_not_end_is_replaced(impatient: Server, stuck: Process) -> None:
    os.kill(stuck.pid, signal.SIGKILL)  # as the kernel does when memory runs out
    wait_until(lambda: "serves in place of" in impatient.messages(), impatient.messages)
    assert "does not end" in impatient.messages()
    with connect(impatient.address) as other:
        assert other.get("/hello.txt").body == b"hello\n"
    good, text = reload(impatient)
    assert good, text
    with connect(impatient.address) as other:
        assert other.get("/hello.txt").body == b"hello\n"
    assert waits_in_kernel(stuck)


@with_threads
def test_reloads_continue_beside_a_worker_that_cannot_be_killed(
    impatient: Server, stuck: Process
) -> None:
    good, text = reload(impatient)
    assert good, text
    wait_until(lambda: "does not end" in impatient.messages(), impatient.messages)
    good, text = reload(impatient)
    assert good, text
    with connect(impatient.address) as other:
        assert other.get("/hello.txt").body == b"hello\n"
    assert waits_in_kernel(stuck)


@with_threads
def test_an_upgrade_ends_beside_a_worker_that_cannot_be_killed(
    impatient: Server, stuck: Process
) -> None:
    impatient.signal(signal.SIGUSR2)
    master = started(impatient, 1)
    try:
        assert impatient.wait() == 1
        assert "does not end" in impatient.messages()
        with connect(impatient.address) as other:
            assert other.get("/hello.txt").body == b"hello\n"
        assert waits_in_kernel(stuck)
    finally:
        seen = [master, *master.descendants()]
        os.kill(master.pid, signal.SIGTERM)
        wait_for_end(seen)


def test_a_client_may_leave_while_the_disk_hangs(disk: SlowDisk, on_disk: Server) -> None:
    with hanging(disk, on_disk):
        pass
    disk.release()
    with connect(on_disk.address) as other:
        other.send(head("/large-1.bin"))
        assert other.read().body == LARGE


# ---- the master looks at the names of a disk that does not answer ----


@pytest.fixture
def followed(
    disk: SlowDisk, site: Path, server: ServerFactory, tmp_path: Path, pair: Pair
) -> Server:
    """A server with rules on the slow disk."""
    (tmp_path / "source/_headers").write_text("/*\n  X-Rules: old\n")
    settings = settings_of(disk, site, tmp_path, pair, "drain-timeout = 2s\nkill-timeout = 10s")
    settings.write_text(f"{settings.read_text()}\nsite-rules = on\n")
    return server("-c", str(settings), folder=None, wrapper=disk.inside)


def rules_of(running: Server) -> str | None:
    with connect(running.address) as to:
        to.send(head("/cold-0.txt"))
        return to.read().get("X-Rules")


master_alone = pytest.mark.parametrize("model", ["epoll"])


@master_alone
def test_the_master_works_while_a_disk_says_nothing(disk: SlowDisk, followed: Server) -> None:
    disk.silence()
    disk.wait_held("GETATTR", "_headers")
    assert weir_stats("--json", str(followed.popen.pid)).returncode == 0
    good, text = reload(followed)
    assert not good
    assert "does not answer" in text
    with connect(followed.address) as other:
        assert other.get("/hello.txt").body == b"hello\n"
    wait_until(lambda: "_headers does not answer" in followed.messages(), followed.messages)
    disk.release()
    wait_until(lambda: "_headers answers again" in followed.messages(), followed.messages)
    wait_until(lambda: reload(followed)[0], followed.messages)  # its process may still wait


@master_alone
def test_a_site_can_be_removed_while_its_disk_says_nothing(
    disk: SlowDisk, followed: Server, site: Path, tmp_path: Path
) -> None:
    disk.silence()
    disk.wait_held("GETATTR", "_headers")
    assert not reload(followed)[0]
    (tmp_path / "weir.conf").write_text(f"[site fast]\nroot = {site}\n")
    good, text = reload(followed)
    assert good, text
    with connect(followed.address) as other:
        assert other.get("/hello.txt").body == b"hello\n"
    disk.release()


@master_alone
def test_a_server_stops_while_a_disk_says_nothing(disk: SlowDisk, followed: Server) -> None:
    disk.silence()
    disk.wait_held("GETATTR", "_headers")
    processes = followed.master.descendants()
    followed.signal(signal.SIGTERM)
    assert followed.wait() == 0  # although a process of it still waits
    disk.release()
    wait_until(lambda: not any(process.alive for process in processes), followed.messages)


@master_alone
def test_rules_on_another_machine_are_followed(
    disk: SlowDisk, followed: Server, tmp_path: Path
) -> None:
    assert rules_of(followed) == "old"
    (tmp_path / "source/_headers").write_text("/*\n  X-Rules: newer\n")
    disk.silence()  # the kernel drops the attributes that it knows
    disk.release()
    wait_until(lambda: rules_of(followed) == "newer", followed.messages)


@master_alone
def test_a_server_stops_while_its_successor_waits_for_a_disk(
    disk: SlowDisk, followed: Server, tmp_path: Path
) -> None:
    """No signal ends the successor, which waits for the name of its root."""
    (tmp_path / "source/new").mkdir()
    (tmp_path / "weir.conf").write_text(f"[site slow]\nroot = {disk.root}/new\n")
    disk.hang()
    followed.signal(signal.SIGUSR2)
    successor = started(followed, 1)
    disk.wait_held("LOOKUP", "new")
    followed.signal(signal.SIGTERM)
    assert followed.wait() == 0
    assert successor.alive
    disk.release()
    wait_until(lambda: not successor.alive, "the successor ends when the disk answers")


@master_alone
def test_a_stop_refuses_a_reload_that_waits_for_another_generation(
    disk: SlowDisk, site: Path, server: ServerFactory, tmp_path: Path
) -> None:
    """The generation for changed rules waits for the disk, and the reload for that generation."""
    settings, rules = tmp_path / "weir.conf", site / "_headers"
    for each in (rules, tmp_path / "source/_headers"):
        each.write_text("/*\n  X-Rules: old\n")
    settings.write_text(
        f"[server]\ndrain-timeout = 10m\n[site fast]\nroot = {site}\nsite-rules = on\n"
        f"[site slow]\nroot = {disk.root}\nhost = localhost\nsite-rules = on\n"
    )
    running = server("-c", str(settings), folder=None, wrapper=disk.inside)
    with connect(running.address) as unfinished:
        unfinished.send(b"GET /hello.txt HTTP/1.1\r\n")
        disk.silence()
        rules.write_text("/*\n  X-Rules: newer\n")
        wait_until(lambda: f"{rules} has changed" in running.messages(), running.messages)
        running.signal(signal.SIGHUP)
        running.signal(signal.SIGTERM)
        wait_until(lambda: "the server is stopping" in running.messages(), running.messages)
        unfinished.send(b"Host: fast\r\n\r\n")
        assert unfinished.read().status == 200
    disk.release()
    assert running.wait() == 0
