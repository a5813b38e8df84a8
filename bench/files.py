# SPDX-License-Identifier: MIT
"""The cost of a request as the site grows: 200,000 files with a cache for a part of them, and a
hit with 1,000 and with 1,000,000 entries in weir's cache.

The requests are drawn by a seed (many.py) and are the same for every server.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import median

from bench import report, servers
from bench.report import DASH, Results, Row
from bench.scenarios import Many, Scenario
from bench.servers import FLOOR_FILES, FLOOR_SANDBOX, OTHER, WEIR, Choice, Launch, Product, Setup

MIB = 1 << 20
# Of weir. The other servers keep open files, or nothing.
CACHE_BYTES = 64 * MIB
ENTRIES_MAX = 1 << 21
# One cache miss of the processor takes about 0.1 µs, and a hit 5 to 7 µs.
ONE_MISS = 1.02

KILOBYTE = Many(folder="kilobyte", files=200_000, size=1024, asked=200_000)
MILLION = Many(
    folder="million",
    files=1_000_000,
    size=308,
    asked=1000,
    links=True,
    fills=True,
    cache_bytes=4096 * MIB,
)
ALIKE = Scenario(
    name="alike",
    what="200,000 files of 1 KiB, all asked for alike, 64 MiB of cache",
    path="/kilobyte/00000/00.bin",
    many=KILOBYTE,
)
ZIPF = Scenario(
    name="zipf",
    what="the same, asked for by Zipf's law with exponent 1",
    path="/kilobyte/00000/00.bin",
    many=replace(KILOBYTE, zipf=1.0),
)
HIT_FEW = Scenario(
    name="hit-1k",
    what="1,000 files of 308 bytes, which are all that the cache holds",
    path="/million/00000/00.bin",
    servers=(WEIR, OTHER),
    many=MILLION,
)
HIT_MANY = Scenario(
    name="hit-1m",
    what="the same 1,000 files of 1,000,000 that the cache holds",
    path="/million/00000/00.bin",
    servers=(WEIR, OTHER),
    many=replace(MILLION, fills_all=True),
)
SCENARIOS = (ALIKE, ZIPF, HIT_FEW, HIT_MANY)


@dataclass(frozen=True, kw_only=True)
class Goal:
    """weir's figure, as a multiple of that of a peer."""

    scenario: Scenario
    peer: str
    at_most: float


GOALS = (
    Goal(scenario=ALIKE, peer="h2o", at_most=0.85),
    Goal(scenario=ZIPF, peer="h2o", at_most=0.85),
)


def _with_cache(plain: Callable[[Setup], Launch]) -> Callable[[Setup], Launch]:
    def launch(setup: Setup) -> Launch:
        made = plain(setup)
        many = setup.scenario.many
        size = many.cache_bytes if many and many.cache_bytes else CACHE_BYTES
        limits = ["--cache-size", f"{size // MIB}M", "--cache-entries", str(ENTRIES_MAX)]
        return replace(made, argv=[*made.argv, *limits])

    return launch


def products(choice: Choice) -> tuple[list[Product], list[str]]:
    """The servers of the comparison without a flag, with weir's cache as it is stated, and the
    floors that have no cache.

    Raises:
        BenchError: an unknown name.
    """
    found, missing = servers.products(choice, also=(FLOOR_FILES, FLOOR_SANDBOX))
    changed = [
        replace(p, launch=_with_cache(p.launch)) if p.name in (WEIR, OTHER) else p for p in found
    ]
    return changed, missing


def goal_table(results: Results) -> list[Row]:
    """Every goal of what was measured: the multiple, and whether it is met."""
    rows = [["goal", "measured", ""]]

    def add(text: str, value: float | None, at_most: float) -> None:
        if value is None:
            rows.append([text, DASH, "not measured"])
        else:
            met = round(value, 2) <= at_most
            rows.append([text, f"{value:.2f}", "met" if met else "MISSED"])

    for goal in (g for g in GOALS if g.scenario.name in results.rounds):
        text = f"{goal.scenario.name}: at most {goal.at_most:.2f} times {goal.peer}"
        add(text, results.ratio(goal.scenario.name, WEIR, goal.peer), goal.at_most)
    few = list(results.of(HIT_FEW.name, WEIR).values())
    many = list(results.of(HIT_MANY.name, WEIR).values())
    if few or many:
        text = f"{HIT_MANY.name}: at most {ONE_MISS:.2f} times {HIT_FEW.name}"
        add(text, median(many) / median(few) if few and many else None, ONE_MISS)
    return rows if len(rows) > 1 else []


def memory_table(results: Results) -> list[Row]:
    """The memory of the entries that filled a cache, with their heads and bodies."""
    rows = [["memory of a filled cache", "entries", "KiB before", "KiB after", "bytes per entry"]]
    for (scenario, server), found in results.filled.items():
        rows.append(
            [
                f"{scenario}, {server}",
                f"{found.connections:,}",
                f"{found.before_kib:,.0f}",
                f"{found.after_kib:,.0f}",
                f"{found.kib_per_connection * 1024:,.0f}",
            ]
        )
    return rows if len(rows) > 1 else []


def tables(results: Results) -> list[list[Row]]:
    """Everything that is printed and recorded."""
    makers = (
        report.cpu_table,
        report.peer_table,
        memory_table,
        report.answers_table,
        goal_table,
    )
    return [table for maker in makers if (table := maker(results))]
