# SPDX-License-Identifier: MIT
"""Cost per request of model `percore` with 1, 2, 4 and more loops.

Each loop has a core and 64 clients of its own. All loops serve the same file from the same cache.
If loops shared anything on the way of a request, its cost would grow with their number. The
generator has all other cores. Where too few are left, it shares the cores of the server, and the
report says so.
"""

import os
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from bench import measure, process, servers
from bench.process import BenchError
from bench.report import Row, number, spread
from bench.rounds import running
from bench.scenarios import SCENARIOS, Scenario, make_files
from bench.servers import Choice, Setup

LOADS = [s for s in SCENARIOS if s.name in ("keepalive", "close")]
CLIENTS = 64  # of each loop


@dataclass(frozen=True, kw_only=True)
class Share:
    """The cores of one measurement."""

    loops: int
    server: frozenset[int]
    generator: frozenset[int]

    @property
    def is_apart(self) -> bool:
        """Whether no core has both."""
        return self.server.isdisjoint(self.generator)


@dataclass(frozen=True, kw_only=True)
class Take:
    """One round with one number of loops."""

    load: str
    loops: int
    round: int
    cpu_us_per_request: float
    requests_per_s: float


def shares(cores: list[int]) -> list[Share]:
    """1, 2, 4, ... loops, as many as there are cores. The generator has what is left, if that is as
    much as the loops have, and else every core."""
    found = []
    loops = 1
    while loops <= len(cores):
        server, rest = cores[-loops:], cores[:-loops]
        generator = rest if len(rest) >= loops else cores
        found.append(Share(loops=loops, server=frozenset(server), generator=frozenset(generator)))
        loops *= 2
    return found


def take(
    choice: Choice, load: Scenario, share: Share, number_: int, seconds: int, work: Path
) -> Take:
    """Measures one round.

    Raises:
        BenchError: the server or the generator failed.
    """
    scenario = replace(load, connections=CLIENTS * share.loops)
    options = f"{choice.weir_options} --threads {share.loops}"
    product = servers.weir_product(
        replace(choice, weir_options=options), name="percore", model="percore"
    )
    setup = Setup(root=work / "root", work=work / "percore", cpu=share.server, scenario=scenario)
    with running(product, setup) as server:
        measure.verify(server, scenario, setup.root)
        used_ns = process.cpu_ns(server.process.pid)
        counts, _ = measure.run_generator(
            server.url(scenario.path),
            scenario,
            measure.headers_for(server, scenario),
            seconds,
            share.generator,
        )
        process.settle(server.process.pid)
        used_ns = process.cpu_ns(server.process.pid) - used_ns
        server.check_alive()
    return Take(
        load=load.name,
        loops=share.loops,
        round=number_,
        cpu_us_per_request=used_ns / counts["requests"] / 1e3,
        requests_per_s=counts["requests"] / counts["duration_us"] * 1e6,
    )


def measured(choice: Choice, rounds: int, seconds: int) -> list[Take]:
    """All rounds. Their order changes from one to the next."""
    found = shares(sorted(os.sched_getaffinity(0)))
    takes = []
    with tempfile.TemporaryDirectory(prefix="cores-", dir=choice.build.resolve() / "bench") as name:
        work = Path(name)
        work.chmod(0o755)
        make_files(work / "root")
        for load in LOADS:
            for number_ in range(rounds):
                for share in found if number_ % 2 == 0 else reversed(found):
                    takes.append(take(choice, load, share, number_, seconds, work))
    return takes


def table(takes: list[Take]) -> list[Row]:
    """One line for each load and number of loops."""
    apart = {s.loops: s.is_apart for s in shares(sorted(os.sched_getaffinity(0)))}
    rows = [["load", "loops", "CPU µs per request", "beside 1 loop", "req/s", "generator"]]
    for load, loops in dict.fromkeys((t.load, t.loops) for t in takes):
        here = {t.round: t for t in takes if (t.load, t.loops) == (load, loops)}
        one = {t.round: t for t in takes if (t.load, t.loops) == (load, 1)}
        costs = [t.cpu_us_per_request for t in here.values()]
        ratio = median(t.cpu_us_per_request / one[n].cpu_us_per_request for n, t in here.items())
        rows.append(
            [
                load,
                str(loops),
                f"{number(median(costs))} ±{number(spread(costs))}",
                f"{ratio:.2f}",
                f"{median(t.requests_per_s for t in here.values()):,.0f}",
                "on other cores" if apart[loops] else "on the same cores",
            ]
        )
    return rows


def check(choice: Choice) -> None:
    """Checks that there is a weir to measure.

    Raises:
        BenchError: it is not built.
    """
    if not (choice.build / "weir").exists():
        raise BenchError(f"{choice.build / 'weir'} is not built; run `make build` first")
