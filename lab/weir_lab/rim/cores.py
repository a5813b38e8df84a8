# SPDX-License-Identifier: MIT
"""The CPU that a run loses: the hypervisor takes a core away, or other processes use it.

Both are read from /proc/stat before and after a run. The kernel counts there in ticks of some
milliseconds, so a run of two seconds is known to about 1 %. Whether a loss matters is decided in
capacity/disturbance.py, from the records of all runs.
"""

import os
import resource
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from weir_lab.rim.machine import Placement

STAT = Path("/proc/stat")
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
SERVER, GENERATOR, BOTH = "server", "generator", "both"


@dataclass(frozen=True, kw_only=True)
class Times:
    """The sums over some cores since the boot."""

    stolen_s: float  # a process was ready, but the hypervisor ran another machine
    # By processes. Interrupts are left out: the kernel often runs the network stack of the server
    # and of the generator there.
    used_s: float


def times(cores: Collection[int], text: str) -> Times | None:
    """The times of the cores by the text of /proc/stat; None where a core is not listed."""
    stolen = used = 0
    missing = set(cores)
    for line in text.splitlines():
        name, *fields = line.split()
        number = name.removeprefix("cpu")
        if not number.isdigit() or int(number) not in missing or len(fields) < 8:
            continue
        user, nice, system = map(int, fields[:3])
        stolen += int(fields[7])
        used += user + nice + system
        missing.remove(int(number))
    return None if missing else Times(stolen_s=stolen * TICK_S, used_s=used * TICK_S)


def _children_s() -> float:
    """The CPU time of all ended child processes; a generator is one of them."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Watch:
    """The cores of a run, from its creation to `stop`."""

    def __init__(self, placement: Placement, *, is_server_known: bool = True) -> None:
        """Starts. The cores of a server that the lab did not start are not known."""
        self.groups: dict[str, tuple[int, ...]] = {}
        if placement.server is None or placement.generator is None:
            self.groups[BOTH] = tuple(sorted(os.sched_getaffinity(0)))
        else:
            if is_server_known:
                self.groups[SERVER] = (placement.server,)
            self.groups[GENERATOR] = (placement.generator,)
        self.is_server_known = is_server_known
        self.began_s = time.monotonic()
        self.children_s = _children_s()
        self.before = self._now()
        self.after: dict[str, Times | None] = {}
        self.seconds = 0.0

    def _now(self) -> dict[str, Times | None]:
        try:
            text = STAT.read_text()
        except OSError:
            text = ""
        return {name: times(cores, text) for name, cores in self.groups.items()}

    def stop(self) -> None:
        """The end of the load."""
        self.after = self._now()
        self.seconds = time.monotonic() - self.began_s
        self.children_s = _children_s() - self.children_s

    def lost(self, server_s: float) -> list[dict[str, object]]:
        """The losses of each group of cores as JSON types; `server_s` is the server's CPU time.

        The shares are of the time of the cores. `foreign` is None where the server's process is
        not known: its CPU time cannot be told from that of other processes.
        """
        own_s = {
            SERVER: server_s,
            GENERATOR: self.children_s,
            BOTH: server_s + self.children_s,
        }
        found: list[dict[str, object]] = []
        for name, cores in self.groups.items():
            before, after = self.before[name], self.after.get(name)
            if before is None or after is None or self.seconds <= 0:
                continue
            all_s = self.seconds * len(cores)
            foreign_s = max(0.0, after.used_s - before.used_s - own_s[name])
            found.append(
                {
                    "of": name,
                    "cores": list(cores),
                    "stolen": round((after.stolen_s - before.stolen_s) / all_s, 4),
                    "foreign": round(foreign_s / all_s, 4) if self.is_server_known else None,
                }
            )
        return found
