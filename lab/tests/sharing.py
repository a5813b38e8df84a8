# SPDX-License-Identifier: MIT
"""Made-up results of `weir-lab sync`, with known differences between the contestants."""

from itertools import product

import numpy as np

from weir_lab.analysis import caching
from weir_lab.analysis.caching import Plan
from weir_lab.report import counters

PLAN = Plan(
    workers=(1, 2),
    cores=2,
    objects=200,
    requests=4_000,
    exponents=(0.8,),
    sizes=(5, 20),
    timed_sizes=(20,),
    repeats=6,
)
WAYS_NS = {"none": 1.0, "semaphore": 50.0, "mutex": 40.0, "atomic": 2.0, "block": 2.0}


def timed(each_ns: dict[str, float], noise: float, *, busy: float = 1.0) -> caching.Records:
    """Records of contestants with these times."""
    rng = np.random.default_rng(7)
    records: dict[str, caching.Record] = {}
    for name in PLAN.names:
        for contestant, workers, repeat in product(each_ns, PLAN.workers, range(PLAN.repeats)):
            cpu_ns = each_ns[contestant] * float(np.exp(noise * rng.standard_normal())) * 1000
            records[caching.time_key(name, 20, contestant, workers, repeat)] = {
                "requests": 1000,
                "hits": 800,
                "warm_requests": 100,
                "warm_hits": 50,
                "refused": 0,
                "workers": workers,
                "cpu_ns": cpu_ns,
                "ns": busy * cpu_ns / workers,
                **dict.fromkeys(("p50_ns", "p99_ns", "p999_ns"), 10),
            }
    return records


def played(*, agree: bool) -> caching.Records:
    records = {}
    for name, percent in product(PLAN.names, PLAN.sizes):
        record = caching.play(PLAN, name, percent)
        record["weir"] = {
            policy: {
                "hits": sum(record["blocks"][policy]) + (not agree),
                "warm_hits": record["warm_hits"][policy],
            }
            for policy in caching.OURS
        }
        records[caching.hits_key(name, percent)] = record
    return records


def counted(lost: int, each_ns: dict[str, float]) -> counters.Records:
    rng = np.random.default_rng(2)
    records = {}
    for way, kind, workers, repeat in product(each_ns, counters.KINDS, (1, 2), range(6)):
        gone = lost if way == "none" and workers > 1 else 0
        ns = each_ns[way] * 1000 * float(np.exp(0.02 * rng.standard_normal()))
        records[counters.key(way, kind, workers, repeat)] = {
            "way": way,
            "workers": workers,
            "expected": 1000,
            "counted": 1000 - gone,
            "ns": ns,
            "cpu_ns": ns,
        }
    return records
