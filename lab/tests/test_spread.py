# SPDX-License-Identifier: MIT
"""Load from several machines: a cluster whose hosts are network namespaces.

Where those may not be made, the hosts are addresses of loopback.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hdrh.histogram import HdrHistogram

from command import LAB, WEIR
from waiting import wait_until
from weir_lab.capacity import records as points
from weir_lab.experiments.shared_step import INVALID
from weir_lab.rim import runs

DASK = Path(sys.executable).with_name("dask")
NAMES = ("anna", "bert", "cleo")

needs_weir = pytest.mark.skipif(not WEIR.exists(), reason="weir is not built")
pytestmark = pytest.mark.timeout(300)  # a dozen Python processes on a busy machine


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

    def start(
        self, machine: str, *words: object, pass_fds: tuple[int, ...] = ()
    ) -> subprocess.Popen[bytes]:
        command = [*self.prefixes[machine], *map(str, words)]
        with (self.folder / f"{machine}.log").open("ab") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, pass_fds=pass_fds)
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

    def has_workers(self) -> bool:
        """Whether the scheduler knows all of them."""
        logs = [(self.folder / f"{name}.log").read_text() for name in NAMES]
        return all("Registered to" in log for log in logs)

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
    """Machines on one bridge: the prefix that runs a command on each."""
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
            pass_fds=(write,),
        )
        os.close(write)
        made.start(
            *("server", DASK, "scheduler", "--host", addresses["server"], "--port", "0"),
            *("--no-dashboard", "--scheduler-file", folder / "scheduler.json"),
        )
        with os.fdopen(read) as ready:
            made.url = f"{ready.readline().strip().rstrip('/')}/a.txt"
        made.server = weir.pid
        wait_until((folder / "scheduler.json").exists, "a scheduler")
        for name in NAMES:
            made.start_worker(name)
        wait_until(made.has_workers, "worker at the scheduler")
        yield made


def results(folder: Path) -> list[dict[str, Any]]:
    file = folder / "results.jsonl"
    text = file.read_text() if file.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True)[1:] if line[-1] == "\n"]


def generators(mark: str) -> list[int]:
    """The processes of weir load with this mark."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if mark in (words := path.read_text().split("\0")) and "--shard" in words:
                found.append(int(path.parent.name))
    return found


def test_the_hosts_and_the_server_count_the_same_requests(lan: Lan, tmp_path: Path) -> None:
    before = lan.requests()
    words = "--steps 2,9 --requests 3001 --hosts 3 --wait 60s --repeats 1 --slo p50<10s".split()
    words += ["--server-pid", str(lan.server)]
    done = subprocess.run(
        lan.command(tmp_path, *words), capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, INVALID), done.stderr
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
    again = subprocess.run([str(LAB), "report", str(tmp_path)], capture_output=True, check=False)
    assert again.returncode == 0
    assert "began each step within" in (tmp_path / "report.html").read_text()


def check_that_parts_merge_again(folder: Path, record: Mapping[str, Any]) -> None:
    """Merging the stored results of the hosts again gives the same result."""
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
        wait_until(lambda: len(results(tmp_path)) == 1, "the first step")
        wait_until(lambda: len(generators(mark)) == 3, "generators of the second step")
        end(lan.workers["bert"])
        wait_until(lambda: len(generators(mark)) == 0, "an end of all generators of the step")
        _, said = running.communicate()
    assert running.returncode == INVALID
    assert "bert is lost" in " ".join(said.split())
    first, second, third = results(tmp_path)
    assert [h["host"] for h in first["hosts"]] == list(NAMES)
    assert "bert is lost" in second["error"]
    assert [h["host"] for h in third["hosts"]] == ["anna", "cleo"]
    assert third["users"] == 5
    assert "bert was lost; later steps use anna, cleo" in (tmp_path / "report.html").read_text()

    lan.start_worker("bert")
    words += ["--hosts", "3", "--wait", "60s"]
    again = [*lan.command(tmp_path, *words), "--header", mark]
    done = subprocess.run(again, capture_output=True, text=True, check=False)
    assert "2 of 3 points are measured already" in " ".join(done.stderr.split())
    kept = {result["key"]: result for result in results(tmp_path)}
    assert kept["3 users/0"] == first
    assert kept["5 users/0"] == third
    assert len(kept["4 users/0"]["hosts"]) == 3


def test_a_host_without_weir_is_named(lan: Lan, tmp_path: Path) -> None:
    command = [*lan.command(tmp_path), "--weir", "nosuchweir", "--hosts", "3", "--wait", "60s"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "anna has no nosuchweir; install weir there" in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


@needs_weir
def test_ctrl_c_ends_the_generators_and_keeps_finished_steps(lan: Lan, tmp_path: Path) -> None:
    words = f"--local 2 {lan.url} --steps 2,3 --duration 1s --warmup 0".split()
    mark = f"X-Mark: {tmp_path.name}"
    command = [*lan.prefixes["server"], str(LAB), "spread", *words, "--header", mark]
    command += ["--build", str(WEIR.parent), "--out", str(tmp_path)]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as running:
        wait_until(lambda: len(results(tmp_path)) == 1, "the first step")
        wait_until(lambda: len(generators(mark)) == 2, "generators of the second step")
        os.killpg(running.pid, signal.SIGINT)  # as a terminal does
        _, said = running.communicate()
    assert running.returncode == 130, said
    assert "interrupted: 1 of 2 points are in" in " ".join(said.split())
    assert "Traceback" not in said
    assert generators(mark) == []
    assert len(results(tmp_path)) == 1


@needs_weir
def test_a_missing_scheduler_is_an_error_of_one_line(tmp_path: Path) -> None:
    command = [str(LAB), "spread", "tcp://127.0.0.1:1", "http://127.0.0.1:1/", "--wait", "500ms"]
    command += ["--build", str(WEIR.parent), "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    said = " ".join(done.stderr.split())
    assert said.startswith("weir-lab: there is no scheduler at tcp://127.0.0.1:1")
    assert said.endswith("`dask scheduler` starts one")
