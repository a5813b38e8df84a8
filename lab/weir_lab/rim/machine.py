# SPDX-License-Identifier: MIT
"""The machine: its facts, its limits, and the cores of server and generator."""

import os
import resource
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from bench import machine as facts_of
from weir_lab.rim.errors import LabError

PACKAGES = {"ab": "apache2-utils", "nginx": "nginx-light", "apache2": "apache2-bin"}
SPARE_DESCRIPTORS = 100


@dataclass(frozen=True, kw_only=True)
class Placement:
    """The cores of the server and of the generator; None: any allowed core."""

    server: int | None
    generator: int | None
    shared_cores: int = 0  # that both share; 0: those of this process

    @property
    def server_cores(self) -> int:
        """The number of cores that the server can use."""
        if self.server is not None:
            return 1
        return self.shared_cores or len(os.sched_getaffinity(0))

    @property
    def generator_cores(self) -> int:
        """The number of cores that the generator can use."""
        return 1 if self.generator is not None else self.server_cores

    @property
    def is_shared(self) -> bool:
        """Whether server and generator run on the same cores."""
        return self.server is None

    @property
    def is_one_core(self) -> bool:
        """Whether server and generator share the only core."""
        return self.server is None and self.server_cores == 1

    def sentence(self) -> str:
        """For the report."""
        if self.server is None:
            if self.is_one_core:
                return "server and generator share one core"
            return f"server and generator share {self.server_cores} cores"
        return f"server on core {self.server}, generator on core {self.generator}"


def pinned(server: int | None = None, generator: int | None = None) -> Placement:
    """A core each, or shared cores where the machine has only one.

    Raises:
        LabError: this process is not allowed to use the core.
    """
    allowed = sorted(os.sched_getaffinity(0))
    if asked := {server, generator} - {None} - set(allowed):
        raise LabError(f"core {asked.pop()} is not allowed for this process; use one of {allowed}")
    if len(allowed) < 2:
        return Placement(server=None, generator=None)
    ours = allowed[-1] if server is None else server
    theirs = generator if generator is not None else next(c for c in allowed if c != ours)
    if ours == theirs:
        raise LabError("the server and the generator need a core each")
    return Placement(server=ours, generator=theirs)


def need(program: str) -> str:
    """The path of a program.

    Raises:
        LabError: the program is not installed.
    """
    found = shutil.which(program) or shutil.which(program, path="/usr/local/sbin:/usr/sbin:/sbin")
    if found is None:
        raise LabError(f"{program} is missing: apt-get install {PACKAGES.get(program, program)}")
    return found


def raise_descriptor_limit(connections: int) -> None:
    """Raises the limit of descriptors for this many connections, also for children.

    Raises:
        LabError: the hard limit is lower.
    """
    needed = connections + SPARE_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise LabError(f"needs {needed} descriptors, but {hard} are allowed; raise ulimit -Hn")
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def descriptors_possible() -> int:
    """How many connections a process here can be allowed to have."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if hard == resource.RLIM_INFINITY else max(1, hard - SPARE_DESCRIPTORS)


def _said(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    return done.stdout.strip() or "unknown"


def _first_line(path: str) -> str:
    try:
        return Path(path).read_text().splitlines()[0]
    except (OSError, IndexError):
        return "unknown"


def facts(work: Path, weir: Path, generator: str) -> dict[str, object]:
    """Facts that a reader needs to repeat an experiment and to judge its figures."""
    command = " ".join(["weir-lab", *sys.argv[1:]])
    found = facts_of.facts(work, generator, command)
    source = Path(__file__).resolve().parent
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return {
        **found,
        "commit": _said("git", "-C", str(source), "describe", "--always", "--dirty"),
        "weir": _said(str(weir), "--version").splitlines()[0],
        "governor": _first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "affinity": sorted(os.sched_getaffinity(0)),
        "descriptors": f"{soft} soft, {hard} hard",
        "somaxconn": _first_line("/proc/sys/net/core/somaxconn"),
        "local_ports": _first_line("/proc/sys/net/ipv4/ip_local_port_range"),
        "python": sys.version.split()[0],
        "packages": {name: metadata.version(name) for name in ("numpy", "scipy", "matplotlib")},
    }
