# SPDX-License-Identifier: MIT
"""Load from several machines: clocks, and a cluster whose hosts are network namespaces.

Where those may not be made, the hosts are addresses of loopback.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st

from weir_lab.analysis import clocks
from weir_lab.analysis.clocks import Beginning, ClockError, Exchange, Offset
from weir_lab.capacity import records as points
from weir_lab.commands import spread
from weir_lab.commands.spread import Part
from weir_lab.rim import runs
from weir_lab.rim.errors import LabError
from weir_lab.rim.fleet import Host, Place, Wish, at_once, choose, unlike

TOP = Path(__file__).resolve().parent.parent.parent
WEIR = Path(os.environ.get("WEIR", TOP / "build/weir")).resolve()
LAB = Path(sys.executable).with_name("weir-lab")
DASK = Path(sys.executable).with_name("dask")
NAMES = ("anna", "bert", "cleo")
WAIT_S = 60

needs_weir = pytest.mark.skipif(not WEIR.exists(), reason="weir is not built")

# ---- clocks ----

MS = 1_000_000
NOW = 1_795_000_000_000_000_000


@st.composite
def conversations(draw: st.DrawFn) -> tuple[int, list[Exchange]]:
    """A true offset, and exchanges whose ways take any time in either direction."""
    true_ns = draw(st.integers(-(10**15), 10**15))
    exchanges = []
    ours_ns = NOW
    for _ in range(draw(st.integers(1, 20))):
        there, back, pause = (draw(st.integers(0, 50 * MS)) for _ in range(3))
        exchanges.append(
            Exchange(
                asked_ns=ours_ns,
                there_ns=ours_ns + there + true_ns,
                answered_ns=ours_ns + there + back,
            )
        )
        ours_ns += there + back + pause
    return true_ns, exchanges


@given(conversations())
def test_the_true_offset_is_never_out_of_bounds(told: tuple[int, list[Exchange]]) -> None:
    true_ns, exchanges = told
    found = clocks.offset(exchanges)
    assert found.low_ns <= true_ns <= found.high_ns
    assert abs(found.value_ns - true_ns) <= found.error_ns
    quickest = min(e.answered_ns - e.asked_ns for e in exchanges)
    whole = exchanges[-1].answered_ns - exchanges[0].asked_ns
    assert found.error_ns <= quickest / 2 + clocks.DRIFT_MAX * whole + 2


@given(conversations(), st.floats(-clocks.DRIFT_MAX, clocks.DRIFT_MAX), st.integers(0, 10**10))
def test_a_clock_that_drifts_stays_within_bounds(
    told: tuple[int, list[Exchange]], drift: float, later_ns: int
) -> None:
    true_ns, exchanges = told

    def drifted(ns: int) -> int:
        return round((ns - NOW) * drift)

    drifting = [
        Exchange(
            asked_ns=e.asked_ns,
            there_ns=e.there_ns + drifted(e.there_ns - true_ns),
            answered_ns=e.answered_ns,
        )
        for e in exchanges
    ]
    at_ns = exchanges[-1].answered_ns + later_ns
    found = clocks.offset(drifting).at(at_ns)
    assert found.low_ns - 2 <= true_ns + drifted(at_ns) <= found.high_ns + 2


@given(conversations(), st.sampled_from([-1, 1]))
def test_a_clock_that_was_set_is_found_out(
    told: tuple[int, list[Exchange]], direction: int
) -> None:
    before = clocks.offset(told[1])
    step_ns = direction * (2 * before.error_ns + 2 * MS)
    after = Offset(
        low_ns=before.low_ns + step_ns, high_ns=before.high_ns + step_ns, at_ns=before.at_ns + MS
    )
    with pytest.raises(ClockError):
        before.also(after)


offsets = st.integers(-(10**12), 10**12)


@given(st.lists(st.tuples(offsets, st.integers(0, 20 * MS), st.integers(0, MS)), min_size=2))
def test_hosts_that_begin_together_by_unlike_clocks_have_no_skew(
    hosts: list[tuple[int, int, int]],
) -> None:
    began = [
        Beginning(
            began_ns=NOW + late + off,
            lasted_ns=1000 * MS,
            offset=Offset(low_ns=off - error, high_ns=off + error, at_ns=NOW),
        )
        for off, late, error in hosts
    ]
    lates = [late for _, late, _ in hosts]
    found = clocks.skew(began)
    assert found.likely_ns == max(lates) - min(lates)
    errors = sorted((error for _, _, error in hosts), reverse=True)
    assert found.likely_ns <= found.most_ns <= found.likely_ns + errors[0] + errors[1]
    share = 1000 / (1000 + found.likely_ns / MS)
    assert clocks.overlap(began) == pytest.approx(2 * share - 1)


def test_one_host_alone_is_together_with_itself() -> None:
    alone = Beginning(began_ns=NOW, lasted_ns=MS, offset=Offset(low_ns=-MS, high_ns=MS, at_ns=NOW))
    assert clocks.skew([alone]).most_ns == 0
    assert clocks.overlap([alone]) == 1


# ---- who is chosen, and what they are told ----


def workers(*hosts: str, **more: object) -> dict[str, dict[str, Any]]:
    return {
        f"tcp://{host}:{number}": {"host": host, "name": f"tcp://{host}:{number}", **more}
        for number, host in enumerate(hosts, 4000)
    }


def test_of_several_workers_on_a_host_one_is_used_and_it_is_said() -> None:
    chosen = choose(workers("10.0.0.2", "10.0.0.1", "10.0.0.2"), Wish())
    assert [p.label for p in chosen.places] == ["10.0.0.1", "10.0.0.2"]
    assert chosen.notes == ["10.0.0.2 has 2 workers; one of them is used (--workers-per-host)"]
    both = choose(workers("10.0.0.2", "10.0.0.2"), Wish(per_host=2))
    assert [p.label for p in both.places] == ["10.0.0.2", "10.0.0.2 #2"]
    assert both.notes == []


def test_workers_that_are_marked_are_preferred() -> None:
    all_of_them = workers("10.0.0.1") | workers("10.0.0.2", resources={"LOADGEN": 1})
    assert [p.host for p in choose(all_of_them, Wish()).places] == ["10.0.0.2"]


def test_the_worker_beside_the_server_generates_nothing() -> None:
    all_of_them = workers("10.0.0.1") | workers("10.0.0.9", name="www")
    chosen = choose(all_of_them, Wish(server_host="www"))
    assert chosen.server is not None
    assert chosen.server.host == "10.0.0.9"
    assert [p.host for p in chosen.places] == ["10.0.0.1"]


def test_another_python_is_named() -> None:
    ours = {"python": "3.11", "dask": "2026.8.0"}
    assert unlike("anna", ours, dict(ours)) == ""
    said = unlike("anna", {"python": "3.12", "dask": "2026.8.0"}, ours)
    assert said.startswith("anna has Python 3.12 and Dask 2026.8.0, here are Python 3.11")


def test_a_host_that_does_not_answer_holds_nobody_up() -> None:
    with pytest.raises(LabError, match="slow did not answer"):
        at_once({"quick": lambda: None, "slow": lambda: time.sleep(30)}, 0.1)


def test_a_host_is_told_its_part_by_its_own_clock() -> None:
    asked = spread.Question(words=("http://h/", "--think", "40ms"), duration="2s")
    argv = asked.command("30", 1, 3, NOW)
    assert argv[:5] == ["weir", "load", "http://h/", "--think", "40ms"]
    assert " ".join(argv[5:]) == f"--users 30 --duration 2s --shard 1/3 --start-at {NOW} --json"
    paced = spread.Question(rates="500,2000.5", users=9, requests=100)
    assert paced.levels == ("500", "2000.5")
    assert "--rate 500 --users 9 --requests 100 --shard 0/1" in " ".join(
        paced.command("500", 0, 1, NOW)
    )


@pytest.mark.parametrize(
    ("words", "local", "said"),
    [
        ("http://h/", 0, "say where the scheduler is"),
        ("tcp://h:8786 http://h/", 2, "say where the scheduler is"),
        ("tcp://h:8786 http://h/ --shard=0/2", 0, "--shard is not for here"),
    ],
)
def test_words_that_make_no_sense(words: str, local: int, said: str) -> None:
    with pytest.raises(LabError, match=said):
        spread.split(words.split(), local=local)


def test_times_are_weirs() -> None:
    found = [spread.seconds("-", t) for t in ("0", "5us", "1.5s", "2m")]
    assert found == pytest.approx([0, 5e-6, 1.5, 120])
    with pytest.raises(LabError, match="is no time"):
        spread.seconds("--wait", "10")


def part(
    label: str, began_ms: float, ahead_ms: float, *, set_ms: float = 0, doubt: str = ""
) -> Part:
    """A host that began so late, its clock so far ahead, and perhaps set in between."""

    def known(ms: float, at_ns: int) -> Offset:
        return Offset(
            low_ns=round((ms - 0.1) * MS), high_ns=round((ms + 0.1) * MS), at_ns=NOW + at_ns
        )

    step = {
        "began_unix_ns": NOW + round((began_ms + ahead_ms) * MS),
        "measured_ns": 1000 * MS,
        "doubts": [{"name": doubt, "makes_invalid": True, "reason": f"About {doubt}."}]
        if doubt
        else [],
    }
    return Part(
        host=Host(place=Place(address="tcp://h:1", host="h", label=label), facts={}),
        command=(),
        result={"steps": [step]},
        before=known(ahead_ms, -1000 * MS),
        after=known(ahead_ms + set_ms, 2000 * MS),
    )


def doubted(*parts: Part, said: str = "") -> list[str]:
    whole = {"doubts": [{"name": said, "makes_invalid": True}]}
    return spread.doubts(parts, whole, NOW, 0.05, timed=True)


def test_clocks_that_are_hours_apart_do_no_harm() -> None:
    far = part("anna", 0, 7_200_000)
    assert doubted(far, part("bert", 2, -86_400_000)) == []
    assert abs(far.by_our_clock()["steps"][0]["began_unix_ns"] - NOW) < MS


def test_what_voids_a_step_is_said() -> None:
    good = part("anna", 0, 5)
    assert (
        "may have begun 50.7 ms apart"
        in doubted(good, part("bert", 40, 9), part("cleo", 49.5, 0))[0]
    )
    assert doubted(good, part("bert", 0, 9, set_ms=80)) == ["bert: a clock was set meanwhile"]
    late = doubted(part("anna", 300, 5), part("bert", 301, 9))
    assert late == ["the common time had passed by 301.0 ms when the last began"]
    assert "all hosts were at it for 74%" in doubted(good, part("bert", 150, 9))[2]
    lame = part("bert", 0, 9, doubt="generator_cpu")
    assert doubted(good, lame) == ["bert: About generator_cpu."]
    assert doubted(good, lame, said="generator_cpu") == []


# ---- a cluster ----


@dataclass(kw_only=True)
class Lan:
    """A server's machine and three others, each a network namespace or an address of loopback."""

    prefixes: Mapping[str, list[str]]  # what a command on that machine begins with
    addresses: Mapping[str, str]
    folder: Path
    url: str = ""
    server: int = 0  # its pid
    workers: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, machine: str, *words: object, **more: Any) -> subprocess.Popen[bytes]:  # noqa: ANN401
        command = [*self.prefixes[machine], *map(str, words)]
        with (self.folder / f"{machine}.log").open("ab") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, **more)
        self.started.append(process)
        return process

    def end(self) -> None:
        for process in reversed(self.started):
            end(process)

    def start_worker(self, name: str) -> None:
        self.workers[name] = self.start(
            *(name, DASK, "worker", "--scheduler-file", self.folder / "scheduler.json"),
            *("--host", self.addresses[name], "--name", name, "--nthreads", "1", "--no-nanny"),
            *("--no-dashboard", "--local-directory", self.folder),
        )

    @property
    def scheduler(self) -> str:
        found: str = json.loads((self.folder / "scheduler.json").read_text())["address"]
        return found

    def command(self, out: Path, *words: str) -> list[str]:
        return [
            *(*self.prefixes["server"], str(LAB), "spread", self.scheduler, self.url, *words),
            *("--weir", str(WEIR), "--build", str(WEIR.parent), "--out", str(out)),
        ]

    def requests(self) -> int:
        count = runs.counted(WEIR, self.server)
        assert count is not None
        return count.requests


def wait_for(condition: Callable[[], object], what: str) -> None:
    end = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.1)


def end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def namespace(stack: contextlib.ExitStack) -> str:
    """A network namespace that lasts as long as the process that holds it."""
    holder = subprocess.Popen(
        ["unshare", "--net", "sh", "-c", "ip link set lo up && echo up && exec cat >&2"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    stack.enter_context(holder)
    stack.callback(holder.kill)
    assert holder.stdout
    if holder.stdout.readline() != b"up\n":
        raise OSError("no namespace")
    return f"/proc/{holder.pid}/ns/net"


def bridged(stack: contextlib.ExitStack, machines: Mapping[str, str]) -> dict[str, list[str]]:
    """Machines of their own on one wire: how to get a command onto each."""
    lan = namespace(stack)
    prefixes = {}
    script = "ip link add br0 type bridge && ip link set br0 up"
    for name in machines:
        place = namespace(stack)
        prefixes[name] = ["nsenter", f"--net={place}"]
        script += f" && ip link add {name} type veth peer name eth0 netns {place.split('/')[2]}"
        script += f" && ip link set {name} master br0 up"
    subprocess.run(["nsenter", f"--net={lan}", "sh", "-c", script], check=True)
    for name, address in machines.items():
        script = f"ip addr add {address}/24 dev eth0 && ip link set eth0 up"
        subprocess.run([*prefixes[name], "sh", "-c", script], check=True)
    return prefixes


@pytest.fixture(scope="module")
def lan(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lan]:
    if not WEIR.exists():
        pytest.skip("weir is not built")
    folder = tmp_path_factory.mktemp("lan")
    machines = ("server", *NAMES)
    with contextlib.ExitStack() as stack:
        addresses = {name: f"10.77.0.{n}" for n, name in enumerate(machines, 1)}
        try:
            prefixes = bridged(stack, addresses)
        except (OSError, subprocess.CalledProcessError):
            prefixes = {name: [] for name in machines}
            addresses = {name: f"127.0.77.{n}" for n, name in enumerate(machines, 1)}
        made = Lan(prefixes=prefixes, addresses=addresses, folder=folder)
        stack.callback(made.end)
        (folder / "www").mkdir()
        (folder / "www/a.txt").write_text("a" * 308)
        read, write = os.pipe()
        weir = made.start(
            *("server", WEIR, "serve", folder / "www", "--listen", f"{addresses['server']}:0"),
            *("--stats-listen", "off", "--ready-fd", write, "--quiet"),
            pass_fds=[write],
        )
        os.close(write)
        made.start(
            *("server", DASK, "scheduler", "--host", addresses["server"], "--port", "0"),
            *("--no-dashboard", "--scheduler-file", folder / "scheduler.json"),
        )
        with os.fdopen(read) as ready:
            made.url = f"{ready.readline().strip().rstrip('/')}/a.txt"
        made.server = weir.pid
        wait_for((folder / "scheduler.json").exists, "a scheduler")
        for name in NAMES:
            made.start_worker(name)
        yield made


def results(folder: Path) -> list[dict[str, Any]]:
    file = folder / "results.jsonl"
    text = file.read_text() if file.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True)[1:] if line[-1] == "\n"]


def generators(mark: str) -> list[int]:
    """The processes of weir load that ask for it."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if mark in (words := path.read_text().split("\0")) and "--shard" in words:
                found.append(int(path.parent.name))
    return found


def test_what_hosts_counted_is_what_the_server_counted(lan: Lan, tmp_path: Path) -> None:
    before = lan.requests()
    words = "--steps 2,9 --requests 3001 --hosts 3 --wait 60s --repeats 1 --slo p50<10s".split()
    words += ["--server-pid", str(lan.server)]
    done = subprocess.run(
        lan.command(tmp_path, *words), capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, spread.INVALID), done.stderr
    found = results(tmp_path)
    assert [r["key"] for r in found] == ["2 users/0", "9 users/0"]
    assert lan.requests() - before == 2 * 3001
    for record, names in zip(found, (NAMES[:2], NAMES), strict=True):
        assert record["load"]["requests"] == 3001
        assert record["load"]["failed"] == 0
        assert [h["host"] for h in record["hosts"]] == list(names)
        assert len({h["address"] for h in record["hosts"]}) == len(names)
        assert sum(h["answers"] for h in record["hosts"]) == 3001
        assert sum(h["share"] for h in record["hosts"]) == pytest.approx(1)
        assert sum(h["users"] for h in record["hosts"]) == record["users"] == record["level"]
        whole = HdrHistogram.decode(record["load"]["histogram"])
        assert whole.get_total_count() == 3001
        assert record["server_cpu_s"] > 0
        assert record["slos_met"] is True
        assert abs(record["hosts"][0]["clock_s"]) <= record["hosts"][0]["clock_error_s"]
        assert record["start"]["skew_s"] <= record["start"]["skew_most_s"]
    check_that_parts_merge_again(tmp_path / "shards/9-users-0", found[1])
    swept = points.sweep(found, server_cores=1, generator_cores=3)
    assert swept.levels == [2, 9]
    assert swept.has_demand()
    page = (tmp_path / "report.html").read_text()
    assert all(name in page for name in NAMES)
    assert "began each step within" in page


def check_that_parts_merge_again(folder: Path, record: Mapping[str, Any]) -> None:
    """The hosts' own results, kept beside, give the same to whoever merges them."""
    parts = sorted(folder.glob("*.json"))
    assert len(parts) == len(record["hosts"])
    merged = subprocess.run(
        [WEIR, "load", "merge", "--json", *parts], capture_output=True, text=True, check=False
    )
    again = json.loads(merged.stdout)["steps"][0]
    assert again["response"] == record["result"]["steps"][0]["response"]


def test_a_worker_that_dies_voids_its_step_and_no_other(lan: Lan, tmp_path: Path) -> None:
    words = "--steps 3,4,5 --duration 1s --warmup 0 --think 5ms --wait 1s".split()
    mark = f"X-Mark: {tmp_path.name}"
    command = [*lan.command(tmp_path, *words), "--header", mark]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        wait_for(lambda: len(results(tmp_path)) == 1, "the first step")
        wait_for(lambda: len(generators(mark)) == 3, "generators of the second step")
        end(lan.workers["bert"])
        wait_for(lambda: len(generators(mark)) == 0, "an end of all generators of the step")
        _, said = running.communicate()
    assert running.returncode == spread.INVALID
    assert "bert is lost" in " ".join(said.split())
    first, second, third = results(tmp_path)
    assert [h["host"] for h in first["hosts"]] == list(NAMES)
    assert "bert is lost" in second["error"]
    assert [h["host"] for h in third["hosts"]] == ["anna", "cleo"]
    assert third["users"] == 5
    assert (
        "bert was lost; steps after that are from anna, cleo"
        in (tmp_path / "report.html").read_text()
    )

    lan.start_worker("bert")
    words += ["--hosts", "3", "--wait", "60s"]
    again = [*lan.command(tmp_path, *words), "--header", mark]
    done = subprocess.run(again, capture_output=True, text=True, check=False)
    assert "2 of 3 points are there already" in " ".join(done.stderr.split())
    assert results(tmp_path)[:1] == [first]
    last = results(tmp_path)[-1]
    assert (last["key"], len(last["hosts"])) == ("4 users/0", 3)


def test_a_host_without_weir_is_named(lan: Lan, tmp_path: Path) -> None:
    command = [*lan.command(tmp_path), "--weir", "nosuchweir", "--hosts", "3", "--wait", "60s"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "anna has no nosuchweir; install weir there" in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


@needs_weir
def test_ctrl_c_ends_the_generators_and_keeps_what_is_finished(lan: Lan, tmp_path: Path) -> None:
    words = f"--local 2 {lan.url} --steps 2,3 --duration 1s --warmup 0".split()
    mark = f"X-Mark: {tmp_path.name}"
    command = [*lan.prefixes["server"], str(LAB), "spread", *words, "--header", mark]
    command += ["--build", str(WEIR.parent), "--out", str(tmp_path)]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as running:
        wait_for(lambda: len(results(tmp_path)) == 1, "the first step")
        wait_for(lambda: len(generators(mark)) == 2, "generators of the second step")
        os.killpg(running.pid, signal.SIGINT)  # as a terminal does
        _, said = running.communicate()
    assert running.returncode == 130, said
    assert "interrupted: 1 of 2 points are in" in " ".join(said.split())
    assert "Traceback" not in said
    assert generators(mark) == []
    assert len(results(tmp_path)) == 1


@needs_weir
def test_a_scheduler_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    command = [str(LAB), "spread", "tcp://127.0.0.1:1", "http://127.0.0.1:1/", "--wait", "500ms"]
    command += ["--build", str(WEIR.parent), "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    said = " ".join(done.stderr.split())
    assert said.startswith("weir-lab: there is no scheduler at tcp://127.0.0.1:1")
    assert said.endswith("`dask scheduler` starts one")
