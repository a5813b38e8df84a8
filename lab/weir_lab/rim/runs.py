# SPDX-License-Identifier: MIT
"""One run: a fresh server, a check of its answer, a load, and the CPU that both used.

bench/ starts and checks servers, and reads CPU.
"""

import json
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench import apache, certificate, measure, process, servers
from bench.certificate import Identity
from bench.process import BenchError
from bench.scenarios import Scenario
from bench.servers import Choice, Product, Running, Setup
from weir_lab.rim import cores, generators
from weir_lab.rim.errors import GoneError, LabError, words
from weir_lab.rim.generators import Load, Outcome
from weir_lab.rim.machine import Placement, need

REACHED_WITHIN_S = 3.0
HTTP2_PEERS = ("nginx", servers.TUNED, "h2o")  # bench/ sets them up for HTTP/2

Generate = Callable[[Load, int | None, int | None], Outcome]  # load, core, the server's pid


@dataclass(frozen=True, kw_only=True)
class World:
    """The files and the cores of an experiment."""

    build: Path  # has weir
    root: Path  # the files served
    work: Path  # for configurations and logs
    placement: Placement

    @property
    def weir(self) -> Path:
        """The server under test."""
        return self.build / "weir"


@dataclass(frozen=True, kw_only=True)
class Work:
    """The requests that a server gets."""

    path: str
    users: int
    keep_alive: bool = True
    streams: int = 0  # of each connection, over HTTP/2; 0: HTTP/1.1
    tls: str = ""  # handshakes of later connections, over https: RESUME or FULL; empty: plain HTTP


def generator(name: str, weir: Path) -> Generate:
    """The generator of that name.

    Raises:
        LabError: the name is unknown, or the generator is not installed.
    """
    if name == "ab":
        need("ab")
        return lambda load, core, _pid: generators.ab(load, core)
    if name == "load":
        if not has_load(weir):
            raise LabError(f"{weir} has no `load`; use --generator ab")
        return lambda load, core, pid: generators.weir_load(weir, load, core, pid)
    raise LabError(f"there is no generator {name}; use ab or load")


def has_load(weir: Path) -> bool:
    """Whether this weir can generate load."""
    done = subprocess.run([weir, "help"], capture_output=True, text=True, check=False)
    return any(line.split()[:2] == ["weir", "load"] for line in done.stdout.splitlines())


def models(weir: Path) -> list[str]:
    """The concurrency models of this weir."""
    said = subprocess.run([weir, "models"], capture_output=True, text=True, check=True).stdout
    return [line.split()[0] for line in said.partition("\n\n")[0].splitlines()]


def weir(world: World, model: str, options: str = "", name: str = "") -> Product:
    """weir with one of its models.

    Raises:
        LabError: weir is not built, or has no such model.
    """
    if not world.weir.exists():
        raise LabError(f"{world.weir} is not built; run `make build` first")
    if model not in (known := models(world.weir)):
        raise LabError(f"weir has no model {model}; there are {', '.join(known)}")
    choice = Choice(build=world.build, other=None, model=model, weir_options=options, only=[])
    return servers.weir_product(choice, name=name or model, model=model)


def product(world: World, name: str) -> Product:
    """A server by its name: a model of weir, nginx, h2o, lighttpd, caddy, or Apache's MPMs.

    Raises:
        LabError: the server is unknown or not installed.
    """
    theirs = {p.name: p for p in apache.products()}
    if name in theirs:
        return theirs[name]
    if name in servers.PEERS:
        program, maker = servers.PEERS[name]
        binary = need(program)
        return Product(name=name, version=servers.peer_version(binary), launch=maker(binary))
    ways = [f"apache-{mpm}" for mpm in apache.MPMS]
    if name in ways:
        need("apache2")
        raise LabError(f"this Apache has no module for {name}")
    if (world.build / "weir").exists() and name not in (known := models(world.weir)):
        others = ", ".join([*servers.PEERS, *ways])
        raise LabError(f"weir has no model {name}; there are {', '.join(known)}, and {others}")
    return weir(world, name)


@cache
def identity_in(folder: Path) -> Identity:
    """The certificate of a run, made once in a new folder."""
    return certificate.make(folder)


@contextmanager
def running(world: World, chosen: Product, work: Work) -> Iterator[Running]:
    """A fresh server for the time of the block.

    Raises:
        LabError: the server did not start, or its answer is not the file.
    """
    scenario = Scenario(
        name="lab",
        what="",
        path=work.path,
        connections=work.users,
        closes=not work.keep_alive,
        streams=work.streams,
    )
    setup = Setup(
        root=world.root,
        work=world.work / chosen.name,
        cpu=world.placement.server,
        scenario=scenario,
        identity=identity_in(world.work.parent / "tls") if work.tls else None,
    )
    try:
        server = servers.start(chosen, setup)
    except BenchError as error:
        raise LabError(str(error)) from error
    try:
        if work.tls and not server.is_tls:
            raise LabError(f"{chosen.name} is not set up for TLS; use weir, nginx, h2o or lighttpd")
        measure.verify(server, scenario, world.root)
        yield server
    except (BenchError, OSError) as error:
        raise LabError(f"{chosen.name}: {words(error)}") from error
    finally:
        server.stop()


@dataclass(frozen=True, kw_only=True)
class Count:
    """The requests that a weir has counted since its start."""

    requests: int
    found: int  # answered with 200

    def since(self, before: "Count") -> "Count":
        """The difference to an earlier count."""
        return Count(requests=self.requests - before.requests, found=self.found - before.found)


def counted(weir_binary: Path, pid: int) -> Count | None:
    """The count of a weir; None for another server."""
    done = subprocess.run(
        [weir_binary, "stats", "--json", str(pid)], capture_output=True, text=True, check=False
    )
    try:
        said = json.loads(done.stdout)
        return Count(
            requests=int(said["counters"]["requests"]),
            found=int(said["answers_by_status"].get("200", 0)),
        )
    except (json.JSONDecodeError, KeyError, TypeError, AttributeError):
        return None


def sandbox(weir_binary: Path, pid: int) -> str | None:
    """The sandbox of a weir, in its own words; None for another server."""
    done = subprocess.run(
        [weir_binary, "stats", "--json", str(pid)], capture_output=True, text=True, check=False
    )
    try:
        return str(json.loads(done.stdout)["configuration"]["sandbox"])
    except (json.JSONDecodeError, KeyError, TypeError):
        return None


def run(
    world: World,
    chosen: Product,
    work: Work,
    load: Mapping[str, Any],
    generate: Generate,
    *,
    weigh: bool = False,
) -> dict[str, Any]:
    """One run as a record: the server, the load, the result, the CPU and memory used.

    With `weigh`, the memory of all its processes is also read during the load. Reading uses a core
    for a moment, and takes the locks of the server's page tables.

    Raises:
        LabError: the run failed; no process is left.
    """
    with running(world, chosen, work) as server:
        identity = server.launch.identity
        asked = Load(
            url=server.url(work.path),
            users=work.users,
            keep_alive=work.keep_alive,
            streams=work.streams,
            tls=work.tls,
            insecure=bool(work.tls),  # the certificate was made for this run
            client_settings=identity.client_settings if identity else None,
            **load,
        )
        pid = server.process.pid
        began = time.time()
        # A run that ends by time leaves requests under way, which are not counted as answered.
        exact = asked.requests is not None and not asked.warmup_s
        before = counted(world.weir, pid) if exact else None
        idle_kib = process.memory_kib(pid)
        used_ns = process.cpu_ns(pid)
        watch = cores.Watch(world.placement)
        with weighed(pid, asked if weigh else None) as under_load_kib:
            outcome = generate(asked, world.placement.generator, pid)
        watch.stop()
        memory_kib = process.memory_kib(pid)
        process.settle(pid)
        used_ns = process.cpu_ns(pid) - used_ns
        server.check_alive()
        after = settled_count(world.weir, pid, before, outcome.requests)
        return {
            "server": chosen.name,
            "version": chosen.version,
            "command": server.launch.argv,
            "sandbox": sandbox(world.weir, pid),
            "began_unix_s": round(began, 3),
            "path": work.path,
            "users": work.users,
            "keep_alive": work.keep_alive,
            "streams": work.streams,
            "tls": work.tls,
            "think_s": asked.think_s,
            "load": outcome.record(),
            "server_cpu_s": used_ns / 1e9,
            "lost": watch.lost(used_ns / 1e9),
            "memory_kib": memory_kib,
            "memory_idle_kib": idle_kib,
            "memory_load_kib": under_load_kib[0] if under_load_kib else None,
            "counted": after.requests if after else None,
            "counted_200": after.found if after else None,
        }


@contextmanager
def weighed(pid: int, load: Load | None) -> Iterator[list[float]]:
    """The memory of a process tree half-way through a load that ends by time, in KiB."""
    found: list[float] = []
    if load is None:
        yield found
        return
    half_way_s = load.warmup_s + (load.seconds or 0) / 2

    def weigh() -> None:
        with suppress(OSError):  # the process has just ended
            found.append(process.memory_kib(pid))

    timer = threading.Timer(half_way_s, weigh)
    timer.start()
    try:
        yield found
    finally:
        timer.cancel()
        timer.join()


def against(
    load: Load, placement: Placement, pid: int | None, generate: Generate
) -> dict[str, Any]:
    """A run against a server that runs already: it is neither started, checked nor ended.

    Raises:
        GoneError: the server does not answer, or its process has ended.
        LabError: the generator failed.
    """
    if not is_reachable(load.url):
        raise GoneError(f"{load.url} does not answer")
    try:
        used_ns = process.cpu_ns(pid) if pid else 0
        began = time.time()
        watch = cores.Watch(placement, is_server_known=False)
        outcome = generate(load, placement.generator, pid)
        watch.stop()
        used_ns = process.cpu_ns(pid) - used_ns if pid else 0
        memory_kib = 0.0
        with suppress(PermissionError):  # the server has another user: only its CPU is known
            memory_kib = process.memory_kib(pid) if pid else 0.0
    except OSError as error:
        raise GoneError(f"the server's process {pid} has ended") from error
    except LabError as error:
        if is_reachable(load.url):
            raise
        raise GoneError(f"{load.url} no longer answers") from error
    if not is_reachable(load.url):
        raise GoneError(f"{load.url} no longer answers")
    return {
        "server": load.url,
        "began_unix_s": round(began, 3),
        "users": load.users,
        "keep_alive": load.keep_alive,
        "think_s": load.think_s,
        "load": outcome.record(),
        "server_cpu_s": used_ns / 1e9,
        "lost": watch.lost(used_ns / 1e9),
        "memory_kib": memory_kib,
        "counted": None,
    }


def is_reachable(url: str) -> bool:
    """Whether a server accepts connections at the URL."""
    there = urlsplit(url)
    try:
        port = there.port or (443 if there.scheme == "https" else 80)
        with socket.create_connection((there.hostname or "", port), REACHED_WITHIN_S):
            return True
    except (OSError, ValueError):
        return False


def settled_count(weir_binary: Path, pid: int, before: Count | None, answered: int) -> Count | None:
    """The server's count of the run; the count may lag its last answer for a moment."""
    if before is None:
        return None
    end = time.monotonic() + 2.0
    while True:
        now = counted(weir_binary, pid)
        if now is None:
            return None
        here = now.since(before)
        if min(here.requests, here.found) >= answered or time.monotonic() > end:
            return here
        time.sleep(0.02)
