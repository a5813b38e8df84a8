# SPDX-License-Identifier: MIT
"""The statistics are exact: the counts of the clients, the log and the counters agree in every
model. `weir stats` reports what it cannot read.

WEIR_STATS_REQUESTS=1000000 makes the long run of the first test.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shutil
import signal
import socket
import stat
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.conftest import ServerFactory
from tests.e2e.crowd import Crowd
from tests.e2e.load import Load
from tests.e2e.running import TOP, WEIR, Process, Server, start
from tests.e2e.sharing import shared_memory_of_several
from tests.e2e.statistics import (
    Numbers,
    Seen,
    Talk,
    ask,
    in_threads,
    log_lines,
    read,
    segment,
    settled,
    wait_for,
    weir_stats,
)
from tests.e2e.wire import WireError, connect
from tests.waiting import LIMIT_S, wait_until

REQUESTS = int(os.environ.get("WEIR_STATS_REQUESTS", "8000"))
CLIENTS = 4
OK, WARNING, CRITICAL, UNKNOWN = range(4)  # the exit statuses of plugins for monitoring


# A batch of requests that is sent several times on one connection, and the number of its answers.
MIXED = ask("/hello.txt") * 4 + ask("/nothing") * 2 + ask("/index.html") + ask("/hello.txt")
MIXED_ANSWERS = 8


def etag(address: tuple[str, int]) -> str:
    with connect(address) as connection:
        return connection.get("/hello.txt").get("ETag") or ""


def mixed(running: Server, requests: int) -> Seen:
    """Clients with different requests, on connections that stay open and on others that do not."""
    same = ask("/hello.txt", f"If-None-Match: {etag(running.address)}")
    batch = MIXED + same * 2
    share = requests // CLIENTS

    def work(seen: Seen) -> None:
        while seen.answers < share:
            talk = Talk(running.address, seen)
            for _ in range(40):
                talk.exchange(batch, MIXED_ANSWERS + 2)
            talk.close()
            for path in ("/hello.txt", "/nothing"):
                talk = Talk(running.address, seen)
                talk.exchange(ask(path, "Connection: close"), 1)
                talk.close()
            talk = Talk(running.address, seen)
            talk.exchange(b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 1)
            talk.close()

    return in_threads(CLIENTS, work)


def aborted(running: Server, count: int) -> int:
    """Clients that close too early; returns how many lines they cause in the log."""
    for _ in range(count):
        Talk(running.address, Seen()).reset()
        talk = Talk(running.address, Seen())
        talk.connection.send(b"GET /hello.txt HT")
        talk.reset()
        talk = Talk(running.address, Seen())
        talk.connection.send(ask("/large.bin"))
        assert talk.connection.socket.recv(1)
        talk.reset()
    return count


def by_status(numbers: Numbers) -> dict[int, int]:
    return {int(code): count for code, count in numbers["answers_by_status"].items() if count}


def test_the_counts_of_clients_log_and_counters_agree(
    server: ServerFactory, site: Path, tmp_path: Path
) -> None:
    log = tmp_path / "access.log"
    (site / "large.bin").write_bytes(bytes(8 << 20))
    running = server("--access-log", str(log))
    seen = mixed(running, REQUESTS)
    seen.statuses[200] += 1  # the request for the entity tag
    numbers = settled(running)
    counters = numbers["counters"]
    lines = log_lines(log, seen.answers)
    assert counters["requests"] == len(lines) == seen.answers
    assert by_status(numbers) == dict(seen.statuses)
    assert counters["body_bytes"] == sum(size for _, size in lines)
    assert counters["connections_accepted"] == counters["connections_closed"]
    assert counters["connections_accepted"] == seen.connections + 1
    assert counters["requests_reusing"] == seen.answers - seen.connections - 1
    assert counters["received_bytes"] == seen.sent + len(ask("/hello.txt"))
    assert 0 < counters["sent_bytes"] - seen.received < 500  # the entity tag again
    assert counters["activities_begun"] == counters["activities_ended"]
    assert numbers["unreadable_by_status"]["400"] == seen.statuses[400]
    assert counters["cache_hits"] + counters["cache_misses"] == seen.answers - sum(
        seen.statuses[status] for status in (400, 404)
    )

    begun = aborted(running, 20)
    least = (
        counters["connections_accepted"] + begun
    )  # some connections close before they are accepted

    def all_ended(now: Numbers) -> bool:
        counted = now["counters"]
        accepted, closed = counted["connections_accepted"], counted["connections_closed"]
        return bool(counted["requests"] == seen.answers + begun and accepted == closed >= least)

    numbers = wait_for(running, all_ended)
    counters = numbers["counters"]
    lines = log_lines(log, seen.answers + begun)
    assert counters["requests"] == len(lines) == seen.answers + begun
    assert counters["body_bytes"] == sum(size for _, size in lines)
    assert numbers["durations"]["latency"]["count"] + counters["answers_cut"] == len(lines)
    assert counters["answers_cut"] > 0
    assert counters["connections_reset"] > 0
    assert counters["connections_lost"] == counters["durations_unrecorded"] == 0
    assert numbers["gauges"]["connections_active"] == numbers["gauges"]["queue_length"] == 0
    assert counters["queue_entered"] == counters["queue_left"]
    assert sum(each["requests"] for each in numbers["sites"]) == len(lines)
    assert sum(each["body_bytes"] for each in numbers["sites"]) == counters["body_bytes"]
    assert [each["name"] for each in numbers["sites"]] == ["", "default"]


def test_totals_never_decrease(server: ServerFactory) -> None:
    running = server()
    pid = running.master.pid
    before = read(pid)["counters"]
    with Load(running.address, "/hello.txt", b"hello\n", clients=4, keep=True) as load:
        for _ in range(20):
            load.wait_for(20)
            now = read(pid)["counters"]
            for name, count in before.items():
                assert now[name] >= count, name
            before = now
        answers = load.stop().answers
    assert settled(running)["counters"]["requests"] == answers


def test_a_killed_worker_loses_only_the_requests_in_flight(server: ServerFactory) -> None:
    running = server()
    hello = ("/hello.txt", b"hello\n")
    # A request to a worker that is killed may get no answer and no reset for a long time.
    with Load(running.address, *hello, clients=4, keep=False, patience_s=2) as load:
        for _ in range(3):
            load.wait_for(50)
            workers = running.workers()
            os.kill(workers[0].pid, signal.SIGKILL)
            wait_for_other(running, workers[0])
        load.wait_for(50)
        count = load.stop()
    numbers = settled(running)
    counters = numbers["counters"]
    assert count.answers <= counters["requests"] <= count.answers + count.failed + count.parted
    assert counters["worker_deaths"] == 3
    assert counters["connections_accepted"] == counters["connections_closed"]
    assert numbers["gauges"]["connections_active"] == 0
    load_again = Load(running.address, "/hello.txt", b"hello\n", clients=2, keep=True)
    with load_again as load:
        load.wait_for(50)
        more = load.stop().answers
    assert settled(running)["counters"]["requests"] == counters["requests"] + more


def wait_for_other(running: Server, victim: Process) -> None:
    wait_until(lambda: (now := running.workers()) and victim not in now, running.messages)


@pytest.mark.parametrize("model", ["fork"])
def test_the_connection_of_a_killed_child_is_counted_as_lost(server: ServerFactory) -> None:
    running = server()
    with connect(running.address) as connection:
        assert connection.get("/hello.txt").status == 200
        connection.send(b"GET /hel")
        wait_for(running, lambda now: now["gauges"]["connections_active"] == 1)
        (child,) = running.workers()[0].children()
        os.kill(child.pid, signal.SIGKILL)
        numbers = settled(running)
    assert numbers["counters"]["requests"] == 1
    assert numbers["counters"]["connections_lost"] == 1
    assert numbers["gauges"]["connections_active"] == 0


def test_the_counters_continue_after_a_reload(server: ServerFactory) -> None:
    running = server()
    pid = running.master.pid
    with connect(running.address) as connection:
        assert connection.get("/hello.txt").status == 200
    first = read(pid)["configuration"]
    assert (first["number"], first["model"]) == (1, first["model"])
    running.signal(signal.SIGHUP)
    numbers = wait_for(  # these are not written at the same time
        running,
        lambda now: (
            now["counters"]["reloads"] == 1
            and now["configuration"]["number"] == 2
            and "last_reload" in now
        ),
    )
    assert numbers["configuration"]["hash"] == first["hash"]
    assert numbers["last_reload"]["failed"] is False
    with connect(running.address) as connection:
        assert connection.get("/hello.txt").status == 200
    assert settled(running)["counters"]["requests"] == 2


def test_a_failed_reload_is_shown_with_its_reason(tmp_path: Path, site: Path) -> None:
    configuration = tmp_path / "weir.conf"
    good = f"[server]\nlisten = 127.0.0.1:0\n[site a]\nroot = {site}\n"
    configuration.write_text(good)
    running = start(["-c", str(configuration)], tmp_path / "stderr")
    try:
        configuration.write_text(good.replace("listen", "listne"))
        running.signal(signal.SIGHUP)
        numbers = wait_for(running, lambda now: now["counters"]["reloads_failed"] == 1)
        assert numbers["last_reload"]["failed"] is True
        assert "listne" in numbers["last_reload"]["error"]
        assert numbers["configuration"]["number"] == 1
        (verdict,) = numbers["verdicts"]
        assert (verdict["gravity"], verdict["rule"]) == ("warning", "reload-failed")
        assert "listne" in verdict["why"]
        human = weir_stats(str(running.master.pid)).stdout
        assert "listne" in human.split("Verdict")[1].split("Requests")[0]
        pid = str(running.master.pid)
        check = weir_stats("--check", pid)
        assert check.returncode == WARNING
        assert check.stdout.startswith("WEIR WARNING - the last reload failed")
        ignoring = weir_stats("--check", "--ignore-warnings", pid)
        assert (ignoring.returncode, ignoring.stdout.split()[:2]) == (OK, ["WEIR", "WARNING"])
    finally:
        running.stop()


def test_each_site_has_its_own_counters(tmp_path: Path, site: Path) -> None:
    configuration = tmp_path / "weir.conf"
    names = [f"site-{number}" for number in range(70)]
    sites = "".join(f"[site {name}]\nroot = {site}\nhost = {name}.example\n" for name in names)
    configuration.write_text(f"[server]\nlisten = 127.0.0.1:0\n{sites}")
    running = start(["-c", str(configuration), "--model", "epoll"], tmp_path / "stderr")
    try:
        with connect(running.address) as connection:
            pipelined = b"".join(
                f"GET /hello.txt HTTP/1.1\r\nHost: {name}.example\r\n\r\n".encode()
                for name in names
            )
            connection.send(pipelined)
            for _ in names:
                assert connection.read().status == 200
            assert connection.get("/", "elsewhere.example").status == 421
        numbers = settled(running)
    finally:
        running.stop()
    found = {each["name"]: each for each in numbers["sites"]}
    assert list(found) == ["", *names[:62], "(others)"]
    assert found["(others)"]["requests"] == found["(others)"]["latency"]["count"] == 8
    assert all(found[name]["2xx"] == 1 for name in names[:62])
    assert all(found[name]["latency"]["count"] == 1 for name in names[:62])
    assert found[""]["4xx"] == 1


def listen_overflows() -> int:
    """The connections that the kernel has dropped as a backlog was full."""
    rows = [line.split() for line in Path("/proc/net/netstat").read_text().splitlines()]
    names, values = (row for row in rows if row[0] == "TcpExt:")
    return int(values[names.index("ListenOverflows")])


@pytest.mark.parametrize("model", ["epoll"])
def test_an_overflow_of_the_accept_queue_is_counted(server: ServerFactory) -> None:
    before = listen_overflows()
    running = server()
    asked = min(int(Path("/proc/sys/net/core/somaxconn").read_text()), 4096) + 100
    with Crowd(running.address, 50) as crowd:
        assert len(crowd.ask_once()) == 50
    # The kernel counts for the whole machine, on which other servers run as well.
    counted = settled(running)["counters"]["accept_overflows"]
    assert counted <= listen_overflows() - before
    worker = running.workers()[0]
    os.kill(worker.pid, signal.SIGSTOP)
    waiting = []
    try:
        for _ in range(asked):
            made = socket.socket()
            made.setblocking(False)
            made.connect_ex(running.address)
            waiting.append(made)
        for made in waiting:
            with contextlib.suppress(OSError):  # a connection that is not accepted
                made.send(ask("/hello.txt"))
        numbers = wait_for(running, lambda now: now["counters"]["accept_overflows"] > counted)
    finally:
        os.kill(worker.pid, signal.SIGCONT)
        for made in waiting:
            made.close()
    rules = {verdict["rule"]: verdict for verdict in numbers["verdicts"]}
    assert rules["accept-queue-overflow"]["gravity"] == "wrong"
    assert "accept queue overflowed" in weir_stats(str(running.master.pid)).stdout


def test_the_last_minute_is_recorded(server: ServerFactory) -> None:
    running = server()
    with Load(running.address, "/hello.txt", b"hello\n", clients=2, keep=True) as load:
        numbers = wait_for(running, lambda now: any(m["latency"]["count"] for m in now["moments"]))
        answers = load.stop().answers
    numbers = wait_for(
        running,
        lambda now: bool(now["moments"][-1]["counters"]["requests"] == now["counters"]["requests"]),
    )
    last = numbers["moments"][-1]
    assert last["2xx"] == last["counters"]["requests"] == answers
    measured = sum(moment["latency"]["count"] for moment in numbers["moments"])
    assert 0 < measured <= answers
    ages = [moment["seconds_ago"] for moment in numbers["moments"]]
    assert ages == sorted(ages, reverse=True)
    for moment in numbers["moments"]:
        latency = moment["latency"]
        assert (latency["count"] > 0) == (latency["p50_seconds"] > 0)
        assert latency["p50_seconds"] <= latency["p90_seconds"] <= latency["p999_seconds"]
    processes = {each["pid"]: each for each in numbers["processes"]}
    assert [pid for pid, each in processes.items() if each["master"]] == [running.master.pid]
    assert {worker.pid for worker in running.workers()} <= set(processes)
    assert sum(each["requests"] for each in processes.values()) <= answers
    assert all(each["threads"] > 0 for each in processes.values())


def ask_for_files(running: Server, count: int, files: int) -> Numbers:
    """Sends a fixed sequence of requests. A few files receive many of them, most files few."""
    chooser = random.Random(4711)
    weights = [1 / (number + 1) for number in range(files)]
    chosen = chooser.choices(range(files), weights, k=count)
    seen = Seen()
    talk = Talk(running.address, seen)
    for at in range(0, count, 4):
        batch = chosen[at : at + 4]  # more at once would pin too much of the cache
        talk.exchange(b"".join(ask(f"/{number}.bin") for number in batch), len(batch))
    talk.close()
    assert seen.statuses == {200: count}
    return settled(running)


@pytest.mark.parametrize("model", ["epoll"])
@pytest.mark.parametrize("policy", ["sieve", "lru"])
def test_the_estimates_for_other_cache_sizes_are_right(
    server: ServerFactory, site: Path, policy: str
) -> None:
    for number in range(300):
        (site / f"{number}.bin").write_bytes(bytes(3000))
    by_size = {
        size: ask_for_files(
            server("--cache-size", f"{size}K", "--cache-policy", policy, "--stats", "on"), 6000, 300
        )
        for size in (128, 256, 512, 4096)
    }
    for size, numbers in by_size.items():
        counters = numbers["counters"]
        advice = numbers["cache_advice"]
        lookups = counters["cache_hits"] + counters["cache_misses"]
        assert lookups == 6000
        if size == 4096:
            assert counters["cache_evictions"] == 0
            assert advice == {"text": "no entry was ever evicted, so the size is enough"}
            continue
        assert advice["same"]["hit_ratio"] == pytest.approx(
            counters["cache_hits"] / lookups, abs=1e-4
        )
        for name, other in (("half", size // 2), ("double", size * 2), ("quadruple", size * 4)):
            assert advice[name]["cache_bytes"] == other * 1024
            if other in by_size and other != 4096:
                hits = by_size[other]["counters"]["cache_hits"]
                assert advice[name]["hit_ratio"] == pytest.approx(hits / lookups, abs=0.03)
        assert f"% with {size // 2}K" in advice["text"]
    running = server("--cache-size", "128K", "--cache-policy", policy)
    ask_for_files(running, 500, 300)
    pid = str(running.master.pid)
    numbers = read(running.master.pid)
    (warning,) = (each for each in numbers["verdicts"] if each["rule"] == "cache-too-small")
    assert numbers["cache_advice"]["text"] in warning["cure"]
    assert numbers["cache_advice"]["text"] in weir_stats(pid).stdout
    text = weir_stats("--prometheus", pid).stdout
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert [sample.labels["size"] for sample in families["weir_cache_hit_ratio"].samples] == [
        "0.5",
        "1",
        "2",
        "4",
    ]


# ---- the lifetime of the segment ----


@pytest.fixture
def epoll(tmp_path: Path, site: Path) -> Iterator[Server]:
    running = start([str(site), "--listen", "127.0.0.1:0", "--model", "epoll"], tmp_path / "stderr")
    yield running
    if running.popen.poll() is None:
        running.stop()


@pytest.mark.parametrize("model", ["epoll"])
def test_only_the_death_of_a_worker_counts_as_one(server: ServerFactory) -> None:
    """The program that started the server has left it a child."""
    running = server(wrapper=("sh", "-c", 'sleep 1000 & exec "$@"', "sh"), addresses=1)

    def sleeps() -> list[Process]:
        return [each for each in running.master.children() if each.comm == "sleep"]

    wait_until(sleeps, "the child has begun to sleep")
    (child,) = sleeps()
    os.kill(child.pid, signal.SIGKILL)
    wait_until(lambda: not Path(f"/proc/{child.pid}").exists(), "the master has waited for it")
    (worker, *_) = [each for each in running.workers() if each != child]
    os.kill(worker.pid, signal.SIGKILL)
    assert wait_for(running, lambda now: now["counters"]["worker_deaths"] > 0)
    assert read(running.popen.pid)["counters"]["worker_deaths"] == 1


def test_the_segment_is_private_and_is_removed_at_the_end(epoll: Server) -> None:
    pid = epoll.master.pid
    assert stat.S_IMODE(segment(pid).stat().st_mode) == 0o700
    files = [file.stat() for file in segment(pid).iterdir()]
    assert {stat.S_IMODE(status.st_mode) for status in files} == {0o600}
    assert sum(status.st_blocks * 512 for status in files) < 256 * 1024
    epoll.stop()
    assert not segment(pid).exists()
    done = weir_stats(str(pid))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1


def test_the_segment_is_readable_while_the_server_hangs(epoll: Server) -> None:
    worker = epoll.workers()[0]
    with connect(epoll.address) as connection:
        assert connection.get("/hello.txt").status == 200
    settled(epoll)
    for process in (epoll.master, worker):
        os.kill(process.pid, signal.SIGSTOP)
    try:
        numbers = read(epoll.master.pid)
        assert numbers["counters"]["requests"] == 1
        assert numbers["running"] is True
    finally:
        for process in (worker, epoll.master):
            os.kill(process.pid, signal.SIGCONT)


def test_a_dead_server_leaves_its_last_numbers(tmp_path: Path, site: Path) -> None:
    with shared_memory_of_several() as wrapper:

        def stats(*arguments: str) -> subprocess.CompletedProcess[str]:
            words = [*wrapper, str(WEIR), "stats", *arguments]
            return subprocess.run(words, capture_output=True, text=True, check=False)

        arguments = [str(site), "--listen", "127.0.0.1:0"]
        running = start(arguments, tmp_path / "stderr", wrapper=wrapper)
        pid = str(running.popen.pid)
        with connect(running.address) as connection:
            assert connection.get("/hello.txt").status == 200
        wait_until(
            lambda: json.loads(stats("--json", pid).stdout)["counters"]["connections_closed"] == 1,
            "the connection is closed",
        )
        running.kill()
        numbers = json.loads(stats("--json", pid).stdout)
        assert numbers["running"] is False
        assert numbers["counters"]["requests"] == 1
        assert "machine" not in numbers
        assert numbers["verdicts"][0]["rule"] == "not-running"
        assert "dead" in stats(pid).stdout.splitlines()[0]
        check = stats("--check", pid)
        assert (check.returncode, check.stderr) == (CRITICAL, "")
        assert check.stdout.startswith("WEIR CRITICAL - the server has died")
        died = (
            f"weir: process {pid} has died, and its numbers change no more; "
            f"`weir stats {pid}` prints them\n"
        )
        diff = stats("--diff", pid)
        assert (diff.returncode, diff.stdout, diff.stderr) == (1, "", died)
        watch = stats("--watch", "--json", pid)
        assert (watch.returncode, watch.stderr) == (1, died)
        assert json.loads(watch.stdout)["counters"]["requests"] == 1
        other = start(arguments, tmp_path / "stderr", wrapper=wrapper)
        try:
            assert stats(pid).returncode == 1
        finally:
            other.stop()


def test_the_counters_continue_after_an_upgrade(epoll: Server) -> None:
    old = epoll.master
    with connect(epoll.address) as connection:
        assert connection.get("/hello.txt").status == 200
    settled(epoll)
    epoll.signal(signal.SIGUSR2)
    assert epoll.wait() == 0
    (found,) = re.findall(r"SIGUSR2: started \S+ as process (\d+)", epoll.messages())
    pid = int(found)
    try:
        assert pid != old.pid
        with connect(epoll.address) as connection:
            assert connection.get("/hello.txt").status == 200
        wait_until(lambda: read(pid)["gauges"]["connections_open"] == 0, "all are closed")
        numbers = read(pid)
        assert numbers["counters"]["requests"] == 2
        assert numbers["pid"] == pid
        assert numbers["running"] is True
        assert numbers["configuration"]["number"] == 2
        assert not segment(old.pid).exists()
    finally:
        successor = Process.of(pid)
        os.kill(pid, signal.SIGTERM)
        wait_until(lambda: not (successor and successor.alive), "the new master has ended")
    assert not segment(pid).exists()


def test_statistics_can_be_turned_off(tmp_path: Path, site: Path) -> None:
    running = start([str(site), "--listen", "127.0.0.1:0", "--stats", "off"], tmp_path / "stderr")
    try:
        assert not segment(running.master.pid).exists()
        with connect(running.address) as connection:
            assert connection.get("/hello.txt").status == 200
        done = weir_stats(str(running.master.pid))
        assert done.returncode == 1
        assert "stats = off" in done.stderr
    finally:
        running.stop()


@pytest.mark.parametrize("room", [-16384, 16384, 65536])
def test_a_full_shared_memory_fails_no_request(server: ServerFactory, room: int) -> None:
    """`room` is the memory for arenas, in bytes. With a negative one, even the head lacks space."""
    usual = server()
    size = (segment(usual.master.pid) / "head").stat().st_blocks * 512 + room
    usual.stop()
    mount = f'mount -t tmpfs -o size={size} none /dev/shm && exec "$@"'
    wrapper = ("unshare", "--mount", "sh", "-c", mount, "sh")
    if subprocess.run([*wrapper, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no right to mount")
    running = server(wrapper=wrapper)
    for _ in range(60):
        with connect(running.address) as connection:
            assert connection.get("/hello.txt").body == b"hello\n"
    assert ("no shared memory" in running.messages()) == (room < 0)


# ---- what is printed ----


def test_every_format_has_the_same_numbers(epoll: Server) -> None:
    pid = str(epoll.master.pid)
    with connect(epoll.address) as connection:
        for path in ("/hello.txt", "/nothing", "/hello.txt"):
            connection.get(path)
    numbers = settled(epoll)
    text = weir_stats("--prometheus", pid).stdout
    families = {family.name: family for family in text_string_to_metric_families(text)}
    for name, count in numbers["counters"].items():
        assert families[f"weir_{name}"].type == "counter"
        assert [sample.value for sample in families[f"weir_{name}"].samples] == [count], name
    for name, value in numbers["gauges"].items():
        assert families[f"weir_{name}"].type == "gauge"
        assert [sample.value for sample in families[f"weir_{name}"].samples] == [value], name
    answers = {
        sample.labels["status"]: int(sample.value) for sample in families["weir_answers"].samples
    }
    assert answers == numbers["answers_by_status"]
    latency = families["weir_latency_seconds"]
    assert latency.type == "histogram"
    buckets = [s.value for s in latency.samples if s.name.endswith("_bucket")]
    assert buckets == sorted(buckets)
    assert buckets[-1] == 3
    human = weir_stats("--explain", pid).stdout
    assert re.search(r"^  requests +3 requests$", human, re.MULTILINE)
    assert re.search(r"^  404 +1$", human, re.MULTILINE)
    assert "the access log has as many lines." in human
    assert "the access log has as many lines." not in weir_stats(pid).stdout
    assert numbers["verdicts"] == []
    assert "Verdict\n  nothing is wrong\n" in human
    machine = numbers["machine"]
    assert machine["processes"] == 2
    assert 0 < machine["descriptors_fullest"] < machine["descriptors_fullest_limit"]
    assert machine["resident_bytes"] > 0
    assert set(numbers) <= documented()


def test_refused_requests_are_counted_by_cause(epoll: Server) -> None:
    wrong = {
        b"GET /\r\n\r\n": "target_bytes",
        b"GET / HTTP/1.1\r\n\r\n": "host_missing",
        ask("/a%zz"): "escape",
        ask("/a%2fb"): "encoded_slash",
        ask("/", "Content-Length: 1", "Transfer-Encoding: chunked"): "body_twice",
    }
    for request in wrong:
        with connect(epoll.address) as connection:
            connection.send(request)
            assert connection.read().status in (400, 404)
    numbers = settled(epoll)
    counted = {cause: count for cause, count in numbers["refused_by_cause"].items() if count > 0}
    assert counted == dict.fromkeys(wrong.values(), 1)
    pid = str(epoll.master.pid)
    families = text_string_to_metric_families(weir_stats("--prometheus", pid).stdout)
    samples = next(family.samples for family in families if family.name == "weir_refused")
    printed = {sample.labels["cause"]: sample.value for sample in samples}
    assert printed == numbers["refused_by_cause"]
    human = weir_stats("--explain", pid).stdout
    assert re.search(r"^  host missing +1\n +there is no Host field", human, re.MULTILINE)


def documented() -> set[str]:
    text = (TOP / "docs/stats-json.md").read_text()
    return set(re.findall(r"`([a-z0-9_]+)`", text))


def table() -> list[tuple[str, str]]:
    text = (TOP / "src/stats/counters.def").read_text()
    return re.findall(r'^STATS_\w+\((\w+),[^"]*"([^"]+)"\)', text, re.MULTILINE)


def test_the_document_lists_every_rule() -> None:
    lines = (TOP / "src/view/verdicts.def").read_text()
    rules = re.findall(r'^VERDICT\("([\w-]+)"', lines, re.M)
    text = (TOP / "docs/statistics.md").read_text()
    assert len(rules) > 10
    assert re.findall(r"^\| `([\w]+-[\w-]+)` \|", text, re.M) == rules


def test_the_document_lists_every_counter_with_its_sentence() -> None:
    text = (TOP / "docs/statistics.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \|$", text, re.MULTILINE)
    assert sorted(rows) == sorted(table())


def test_the_document_names_every_metric_for_prometheus(epoll: Server) -> None:
    """Those of the tables follow a rule. The document lists the others, with their labels."""
    text = weir_stats("--prometheus", str(epoll.master.pid)).stdout
    known = {f"weir_{name}{end}" for name, _ in table() for end in ("", "_seconds")}
    # Without a certificate and before the first eviction, these are missing.
    exposed = {"weir_certificate_end_seconds": {"name", "key"}, "weir_cache_hit_ratio": {"size"}}
    for family in text_string_to_metric_families(text):
        if family.name not in known:
            labels = {label for sample in family.samples for label in sample.labels}
            end = "_total" if family.type == "counter" else ""
            exposed[family.name + end] = labels - {"le"}
    assert len(exposed) > 15
    page = (TOP / "docs/statistics.md").read_text()
    section = page.partition("### Names for Prometheus\n")[2].partition("\n## ")[0]
    listed = {}
    for row in re.findall(r"^\|.*\|$", section, re.MULTILINE):
        for name, labels in re.findall(r"`(weir_\w+)(?:{([\w, ]+)})?`", row):
            listed[name] = set(labels.split(", ")) - {""}
    assert listed == exposed


def test_a_process_that_is_no_server_is_an_error() -> None:
    for arguments, status in (
        (["4194304"], 1),
        (["0"], 2),
        (["soon"], 2),
        (["--json", "--prometheus"], 2),
    ):
        done = weir_stats(*arguments)
        assert done.returncode == status, arguments
        assert done.stderr.startswith("weir: ")
        assert done.stderr.count("\n") == 1
        assert done.stdout == ""


def test_with_several_servers_a_process_id_is_required(
    epoll: Server, tmp_path: Path, site: Path
) -> None:
    other = start([str(site), "--listen", "127.0.0.1:0"], tmp_path / "stderr-2")
    try:
        done = weir_stats()
        assert done.returncode == 2
        said = r"weir: \d+ servers run; choose one by its process id: weir stats PID\n"
        assert re.match(said, done.stderr)
        listed = weir_stats("--list")
        assert listed.returncode == 0
        for text in (done.stderr, listed.stdout):  # other servers may run beside these
            for running in (epoll, other):
                row = rf"^ *{running.master.pid}  \w+ +http://127\.0\.0\.1:{running.address[1]}/$"
                assert re.search(row, text, re.M)
        assert weir_stats("--check").returncode == UNKNOWN
    finally:
        other.stop()


@pytest.fixture
def stranger() -> Iterator[int]:
    """A living process that is no server. Segments of dead processes are removed by any server."""
    sleeping = subprocess.Popen(["sleep", "60"])
    yield sleeping.pid
    sleeping.kill()
    sleeping.wait()


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (lambda _: b"", "truncated"),
        (lambda data: data[:100], "truncated"),
        (lambda data: data[: len(data) // 2], "truncated"),
        (lambda _: bytes(1 << 20), "not a statistics segment"),
        (lambda data: b"#!/bin/sh" + data[9:], "not a statistics segment"),
        (lambda data: data[:8] + b"\x63" + data[9:], "another version"),
        (lambda data: data[:16] + b"\x63" * 8 + data[24:], "another version"),
        (
            lambda data: data[:8] + b"\x63" + data[9:].replace(b"0.1.0\0", b"0\x1b\n.0\0"),
            ", 0??.0;",
        ),
    ],
)
def test_an_invalid_segment_is_reported_in_one_line(
    epoll: Server, stranger: int, spoil: object, expected: str
) -> None:
    data = (segment(epoll.master.pid) / "head").read_bytes()
    assert callable(spoil)
    false = segment(stranger)
    false.mkdir()
    try:
        (false / "head").write_bytes(spoil(data))
        done = weir_stats(str(stranger))
    finally:
        shutil.rmtree(false)
    assert done.returncode == 1
    assert expected in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


@pytest.mark.parametrize("how", ["--json", "--explain"])
def test_a_terminal_obeys_nothing_in_a_segment(epoll: Server, stranger: int, how: str) -> None:
    """Any user can make a segment, and root reads those of all users."""
    data = (segment(epoll.master.pid) / "head").read_bytes()
    false = segment(stranger)
    false.mkdir()
    try:
        (false / "head").write_bytes(
            data.replace(b"0.1.0\0", b"0.\x1b\n0\0").replace(b"epoll\0", b"ep\x1b\nl\0")
        )
        done = weir_stats(str(stranger), how)
    finally:
        shutil.rmtree(false)
    assert done.returncode == 0
    assert "0.??0" in done.stdout
    assert "ep??l" in done.stdout
    assert not re.search(r"[^\n -~]", done.stdout)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_learns_who_may_read(epoll: Server, public_folder: Path) -> None:
    program = shutil.copy(WEIR, public_folder / "weir")
    done = subprocess.run(
        [program, "stats", str(epoll.master.pid)],
        user=65534,
        group=65534,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 1
    assert "may only be read by the user that the server runs as, and root" in done.stderr


def test_readers_disturb_no_client_and_no_other_reader(epoll: Server) -> None:
    """Two programs read ten times each while clients send requests, and every reading succeeds."""
    failures: list[str] = []

    def poll() -> None:
        for _ in range(10):
            done = weir_stats("--json", str(epoll.master.pid))
            if done.returncode != 0:
                failures.append(done.stderr)
            else:
                json.loads(done.stdout)

    with Load(epoll.address, "/hello.txt", b"hello\n", clients=2, keep=False) as load:
        readers = [threading.Thread(target=poll) for _ in range(2)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        load.stop()
    assert failures == []


def test_a_silent_client_is_counted_under_its_timeout(tmp_path: Path, site: Path) -> None:
    running = start(
        [str(site), "--listen", "127.0.0.1:0", "--header-timeout", "100ms"], tmp_path / "stderr"
    )
    try:
        with connect(running.address) as connection:
            connection.send(b"GET /hel")
            assert connection.read().status == 408
        with connect(running.address), contextlib.suppress(WireError):
            pass
        numbers = wait_for(running, lambda now: now["durations"]["latency"]["count"] == 1)
        assert numbers["counters"]["timeouts_head"] == 1
        assert numbers["unreadable_by_status"]["408"] == 1
        assert numbers["durations"]["latency"]["max_seconds"] > 0
    finally:
        running.stop()


@pytest.mark.parametrize("model", ["epoll", "thread", "percore"])
def test_files_that_have_gone_are_not_counted_in_the_cache(
    server: ServerFactory, site: Path
) -> None:
    names = [f"{number}.txt" for number in range(20)]
    for name in names:
        (site / name).write_text(name)
    running = server("--access-log=off", "--workers=1")
    with connect(running.address) as connection:
        assert [connection.get(f"/{name}").status for name in names] == [200] * 20
        assert read(running.popen.pid)["gauges"]["cache_entries"] == 20
        for name in names:
            (site / name).unlink()
        wait_until(
            lambda: all(connection.get(f"/{name}").status == 404 for name in names),
            "the server sees that the files have gone",
        )
        assert read(running.popen.pid)["gauges"]["cache_entries"] == 0


@pytest.mark.parametrize("model", ["epoll", "thread", "percore"])
@pytest.mark.parametrize(
    ("method", "path", "page"),
    [("POST", "/", "405.html"), ("GET", "/old", "410.html")],
)
def test_pages_that_have_gone_are_not_counted_in_the_cache(
    server: ServerFactory, site: Path, tmp_path: Path, method: str, path: str, page: str
) -> None:
    (site / page).write_text(page)
    conf = tmp_path / "weir.conf"
    conf.write_text(
        "[server]\nlisten = 127.0.0.1:0\nworkers = 1\naccess-log = off\n"
        f"[site a]\nroot = {site}\nerror-pages = {site}\n"
        "[path /old]\nstatus = 410\n"
    )
    running = server("-c", str(conf), folder=None, listen=())
    with connect(running.address) as connection:

        def is_page() -> bool:
            connection.send(f"{method} {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
            return connection.read().body == page.encode()

        assert is_page()
        assert read(running.popen.pid)["gauges"]["cache_entries"] == 1
        (site / page).unlink()
        wait_until(lambda: not is_page(), f"the server sees that {page} has gone")
        assert read(running.popen.pid)["gauges"]["cache_entries"] == 0
