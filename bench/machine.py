# SPDX-License-Identifier: MIT
"""Facts about the machine that a reader needs to judge the figures."""

import os
import platform
import socket
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from bench.process import BenchError

INSIDE_NAMESPACE = "WEIR_BENCH_NAMESPACE"


def _first_line(path: str, prefix: str) -> str:
    """The value in the first line `prefix: value` of a file."""
    for line in Path(path).read_text().splitlines():
        if line.startswith(prefix):
            return line.partition(":")[2].strip()
    return "unknown"


def filesystem_of(path: Path) -> str:
    """The type of the file system that holds `path`."""
    best, kind = "", "unknown"
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        left, _, right = line.partition(" - ")
        mount = left.split()[4]
        if path.resolve().is_relative_to(mount) and len(mount) >= len(best):
            best, kind = mount, right.split()[0]
    return kind


def wrk_version() -> str:
    """The generator's name and version."""
    said = subprocess.run(["wrk", "-v"], capture_output=True, text=True, check=False).stdout
    return " ".join(said.split()[:3])


def facts(work: Path, generator: str, command: str) -> dict[str, object]:
    """Kernel, processor, limits, and what else could explain a figure."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processor": _first_line("/proc/cpuinfo", "model name"),
        "cores": len(os.sched_getaffinity(0)),
        "hypervisor": "hypervisor" in _first_line("/proc/cpuinfo", "flags").split(),
        "memory": _first_line("/proc/meminfo", "MemTotal"),
        "congestion_control": congestion_control(),
        "private_network_namespace": INSIDE_NAMESPACE in os.environ,
        "file_system": filesystem_of(work),
        "load_average_at_start": os.getloadavg()[0],
        "generator": generator,
        "command": command,
    }


def congestion_control() -> str:
    """The congestion control of a real connection over loopback."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as client,
    ):
        name = client.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
    return name.rstrip(b"\0").decode()


def enter_namespace(congestion: str, argv: list[str]) -> None:
    """Gives every server this congestion control without changing a setting of the machine.

    Runs this program again in a network namespace of its own (unshare(1)), where the routes of
    loopback set the algorithm. A namespace may set the sysctl only to algorithms that the machine
    allows to every user. Returns only inside the namespace.

    Raises:
        BenchError: the kernel refuses the namespace or does not know the algorithm.
    """
    if INSIDE_NAMESPACE not in os.environ:
        unshare = ["unshare", "--net"]
        if os.geteuid() != 0:
            unshare += ["--user", "--map-root-user"]
        os.environ[INSIDE_NAMESPACE] = "1"
        try:
            os.execvp(unshare[0], [*unshare, sys.executable, *argv])
        except OSError as error:
            raise BenchError(f"unshare: {error}") from error
    rest = "dev lo proto kernel scope host src 127.0.0.1 table local congctl"
    for command in (
        "ip link set lo up",
        f"ip route replace local 127.0.0.0/8 {rest} {congestion}",
        f"ip route replace local 127.0.0.1 {rest} {congestion}",
    ):
        try:
            subprocess.run(command.split(), check=True, capture_output=True, text=True)
        except FileNotFoundError as error:
            raise BenchError("ip is missing: apt-get install iproute2") from error
        except subprocess.CalledProcessError as error:
            raise BenchError(f"{command}: {error.stderr.strip()}") from error
    if congestion_control() != congestion:
        raise BenchError(f"the kernel does not offer '{congestion}'")
