# SPDX-License-Identifier: MIT
"""The experiment on caches: its plan, and the figures in its records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from weir_lab.analysis import trace as traces
from weir_lab.analysis.crowd import Figure
from weir_lab.analysis.eviction import POLICIES, Hits
from weir_lab.analysis.middle import Middle, middle
from weir_lab.analysis.ratio import Ratio, ratio
from weir_lab.analysis.trace import Trace

Record = dict[str, Any]
Records = Mapping[str, Record]

SCAN = "scan"
SCAN_EXPONENT = 0.8
SCAN_PART = 5  # one request of this many belongs to the scan
BLOCKS = 10
FILE_NS = 5000  # about what opening, reading and closing a small file takes
CAPACITY_MIN = 8  # weir caches no object larger than an eighth of the cache

# contestant of bench/cache.c -> what it is, and about how long an operation takes, in seconds
CONTESTANTS = {
    "sieve": ("sieve (weir's default)", 150e-9),
    "lru": ("lru (weir's)", 500e-9),
    "rwlock": ("list below a reader-writer lock", 200e-9),
    "stamps": ("time stamps below a reader-writer lock", 600e-9),
    "semaphore": ("list below a semaphore", 200e-9),
}
OURS = ("sieve", "lru")  # weir's own policies


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The numbers of workers, objects, requests and repeats."""

    workers: tuple[int, ...]
    cores: int
    objects: int = 10_000
    requests: int = 400_000  # of each trace
    exponents: tuple[float, ...] = (0.6, 0.8, 1.0, 1.2)
    sizes: tuple[float, ...] = (1, 2, 5, 10, 20, 50)  # of the cache, in percent of the objects
    timed_sizes: tuple[float, ...] = (1, 10, 50, 100)
    repeats: int = 6
    passes: int = 1  # through the trace, where time is measured
    seed: int = 1

    @property
    def names(self) -> list[str]:
        """The traces."""
        return [*(f"zipf-{e:g}" for e in self.exponents), SCAN]

    @property
    def measured(self) -> int:
        """The requests that count: those after the first quarter, in equal blocks."""
        return self.requests * 3 // 4 // BLOCKS * BLOCKS

    @property
    def warm(self) -> int:
        """The requests before those, which fill the cache."""
        return self.requests - self.measured

    @property
    def side_by_side(self) -> int:
        """The most workers that have a core each."""
        return max((n for n in self.workers if n <= self.cores), default=self.workers[0])

    @property
    def example(self) -> tuple[str, float]:
        """The trace and the size that are shown where all would be too many."""
        exponent = min(self.exponents, key=lambda e: abs(e - 1), default=None)
        size = min(self.timed_sizes, key=lambda percent: abs(percent - 10))
        return (SCAN if exponent is None else f"zipf-{exponent:g}", size)

    def capacity(self, percent: float) -> int:
        """Objects that a cache of this size holds."""
        return round(self.objects * percent / 100)

    def trace(self, name: str) -> Trace:
        """The trace, the same at each call."""
        exponent = SCAN_EXPONENT if name == SCAN else float(name.removeprefix("zipf-"))
        made = traces.zipf(self.objects, exponent, self.requests, self.seed)
        if name != SCAN:
            return made
        scan = max(1, self.objects // SCAN_PART)
        return traces.with_scans(made, self.objects, scan, scan * (SCAN_PART - 1))


def why_not(plan: Plan) -> str:
    """The reason why a plan cannot be measured; empty when it can."""
    wanted = {*plan.sizes, *plan.timed_sizes}
    if not (plan.sizes and plan.timed_sizes and plan.workers):
        return "no cache sizes, or no numbers of workers"
    if max(wanted) > 100 or plan.capacity(min(wanted)) < CAPACITY_MIN:
        return (
            f"caches hold {CAPACITY_MIN} objects at least and all {plan.objects:,} at most; "
            f"{min(wanted):g} % to {max(wanted):g} % was asked for"
        )
    if plan.requests < 4 * BLOCKS:
        return f"{plan.requests} requests are too few"
    if not all(0 <= exponent <= 3 for exponent in plan.exponents):
        return "exponents are between 0 and 3"
    return ""


def hits_key(name: str, percent: float) -> str:
    """The key of the record with the hits of each policy."""
    return f"hits/{name}/{percent:g}"


def time_key(name: str, percent: float, contestant: str, workers: int, repeat: int) -> str:
    """The key of the record of one timed run."""
    return f"time/{name}/{percent:g}/{contestant}/{workers}/{repeat}"


# ---- hits ----


def play(plan: Plan, name: str, percent: float) -> Record:
    """The simulated hits of each policy: while the cache fills, then by blocks."""
    requests = plan.trace(name).tolist()
    found: Record = {"requests": plan.measured, "blocks": {}, "warm_hits": {}}
    for policy, simulate in POLICIES.items():
        hits = simulate(requests, plan.capacity(percent))
        found["blocks"][policy] = by_block(hits[plan.warm :])
        found["warm_hits"][policy] = int(hits[: plan.warm].sum())
    return found


def by_block(hits: Hits) -> list[int]:
    """Hits in each of the equal blocks."""
    return [int(count) for count in hits.reshape(BLOCKS, -1).sum(axis=1)]


def hit_ratio(record: Record, policy: str) -> float:
    """The hit ratio over the measured requests."""
    return float(sum(record["blocks"][policy]) / record["requests"])


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The difference of two hit ratios on the same requests, with Student's interval."""

    value: float
    low: float
    high: float

    @property
    def is_shown(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.low > 0 or self.high < 0


def advantage(record: Record, ours: str, theirs: str, confidence: float) -> Difference:
    """How much greater our hit ratio is."""
    pairs = zip(record["blocks"][ours], record["blocks"][theirs], strict=True)
    differences = [(a - b) / (record["requests"] / BLOCKS) for a, b in pairs]
    value = float(np.mean(differences))
    half = float(stats.t.ppf((1 + confidence) / 2, BLOCKS - 1) * stats.sem(differences))
    return Difference(value=value, low=value - half, high=value + half)


def counts_agree(record: Record) -> bool:
    """Whether weir's caches and their simulation had the same hits, in both parts."""
    return all(
        record["weir"][policy]["hits"] == sum(record["blocks"][policy])
        and record["weir"][policy]["warm_hits"] == record["warm_hits"][policy]
        for policy in OURS
    )


# ---- times ----


def wall_ns(record: Record) -> float:
    """Time for each operation of all workers together."""
    return float(record["ns"] / record["requests"])


def cpu_ns(record: Record) -> float:
    """Time on a core for each operation."""
    return float(record["cpu_ns"] / record["requests"])


def with_file_ns(record: Record) -> float:
    """The same, if each miss had to open, read and close a file."""
    return cpu_ns(record) + FILE_NS * (1 - float(record["hits"] / record["requests"]))


WALL = Figure(name="time", of=wall_ns)
CPU = Figure(name="CPU time", of=cpu_ns)
WITH_FILE = Figure(name="CPU time with a file read for each miss", of=with_file_ns)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """The runs of all contestants under the same conditions."""

    name: str
    percent: float
    workers: int
    runs: dict[str, dict[int, Record]]  # contestant -> round -> record

    def _all(self, contestant: str) -> Sequence[Record]:
        return list(self.runs.get(contestant, {}).values())

    def wall(self, contestant: str) -> Middle | None:
        """Nanoseconds for each operation."""
        found = self._all(contestant)
        return middle([wall_ns(r) for r in found]) if found else None

    def cpu(self, contestant: str) -> Middle | None:
        """Nanoseconds of CPU for each operation."""
        found = self._all(contestant)
        return middle([cpu_ns(r) for r in found]) if found else None

    def shown(self, contestant: str, member: str) -> str:
        """The median of a member of the records; empty where none has it."""
        found = [r[member] for r in self._all(contestant) if member in r]
        return f"{np.median(found):,.0f}" if found else ""

    def hit_ratio(self, contestant: str) -> float:
        """The median hit ratio of the runs."""
        return float(np.median([r["hits"] / r["requests"] for r in self._all(contestant)]))

    def refused(self, contestant: str) -> float:
        """The part of the misses that were not kept; the median."""
        found = [r["refused"] / max(1, misses(r)) for r in self._all(contestant)]
        return float(np.median(found))

    def times_as_long(
        self, contestant: str, than: str, figure: Figure, confidence: float
    ) -> Ratio | None:
        """The ratio of two contestants, by rounds in which both ran."""
        ours = {n: figure.of(r) for n, r in self.runs.get(contestant, {}).items()}
        theirs = {n: figure.of(r) for n, r in self.runs.get(than, {}).items()}
        return ratio(ours, theirs, confidence=confidence)


def misses(record: Record) -> int:
    """The misses of a timed run and of its warm-up; refusals count both, too."""
    asked = record["requests"] + record["warm_requests"]
    return int(asked - record["hits"] - record["warm_hits"])


def cell(records: Records, plan: Plan, name: str, percent: float, workers: int) -> Cell:
    """What was measured under these conditions."""
    runs: dict[str, dict[int, Record]] = {}
    for contestant in CONTESTANTS:
        for repeat in range(plan.repeats):
            record = records.get(time_key(name, percent, contestant, workers, repeat))
            if record and "error" not in record:
                runs.setdefault(contestant, {})[repeat] = record
    return Cell(name=name, percent=percent, workers=workers, runs=runs)


def on_the_whole(
    cells: Sequence[Cell], contestant: str, than: str, figure: Figure, confidence: float
) -> Ratio | None:
    """The ratio of two contestants over all cells (geometric mean)."""
    rounds: tuple[dict[int, list[float]], dict[int, list[float]]] = ({}, {})
    for each in cells:
        ours, theirs = each.runs.get(contestant, {}), each.runs.get(than, {})
        for number in ours.keys() & theirs.keys():
            for found, runs in zip(rounds, (ours, theirs), strict=True):
                found.setdefault(number, []).append(figure.of(runs[number]))
    means = [{n: float(stats.gmean(values)) for n, values in found.items()} for found in rounds]
    return ratio(*means, confidence=confidence)


def alone(records: Records, plan: Plan) -> list[Record]:
    """The runs with a single thread."""
    cells = [cell(records, plan, n, p, 1) for n in plan.names for p in plan.timed_sizes]
    return [run for each in cells for runs in each.runs.values() for run in runs.values()]


def growth(
    records: Records, plan: Plan, name: str, percent: float, contestant: str, workers: int
) -> Ratio | None:
    """The operations per second of this many workers, as a multiple of one worker's."""
    one = cell(records, plan, name, percent, plan.workers[0]).runs.get(contestant, {})
    many = cell(records, plan, name, percent, workers).runs.get(contestant, {})
    return ratio(
        {n: 1 / wall_ns(r) for n, r in many.items()}, {n: 1 / wall_ns(r) for n, r in one.items()}
    )
