# SPDX-License-Identifier: MIT
"""Measures disturbed runs again, after the others, and a bounded number of times.

A disturbance often lasts for some seconds, so a run that follows at once would lose CPU as well. Of
all tries the one with the least loss is kept: its loss decides, never its throughput. The record
lists the other tries, so that an interrupted experiment does not exceed the bound.
"""

import subprocess
from collections.abc import Callable, Sequence
from typing import Any

from bench.process import BenchError
from weir_lab.capacity import disturbance
from weir_lab.capacity.disturbance import Lost
from weir_lab.rim.errors import GoneError, LabError, words
from weir_lab.rim.store import Record, Store

TRIES_MAX = 2  # of one run, beyond the first
SHARE_MAX = 0.5  # of the runs of one call: as many further tries in all, at most

FAILURES = (LabError, BenchError, OSError, subprocess.SubprocessError)


def disturbed(store: Store, keys: Sequence[str]) -> tuple[list[str], str]:
    """The keys of the runs to measure again, the most disturbed first, and the cause."""
    good = [r for r in store.records.values() if "error" not in r]
    calm = disturbance.usual(good)
    tries = sum(len(disturbance.discarded(store.records[k])) for k in keys if store.has(k))
    spare = max(TRIES_MAX, round(SHARE_MAX * len(keys))) - tries
    found = [
        store.records[key]
        for key in keys
        if store.has(key)
        and disturbance.reason(store.records[key], calm)
        and len(disturbance.discarded(store.records[key])) < TRIES_MAX
    ]
    found = sorted(found, key=_loss, reverse=True)[: max(0, spare)]
    return [r["key"] for r in found], disturbance.most(found, calm)


def _loss(record: disturbance.Record) -> float:
    here: Lost = disturbance.lost(record)
    return here.stolen + here.foreign


def measure(store: Store, key: str, how: Callable[[], Record]) -> Record:
    """Another try: the better record of both, which lists the worse one.

    A try that fails changes nothing but the list: the first record remains.

    Raises:
        GoneError: the running server is gone.
    """
    first = store.records[key]
    try:
        second = how()
    except GoneError:
        raise
    except FAILURES as error:
        return _with(first, {"error": words(error)})
    if _loss(second) < _loss(first):
        return {**second, "again": [*first.get("again", []), _brief(first)]}
    return _with(first, _brief(second))


def _with(record: Record, other: dict[str, Any]) -> Record:
    return {**record, "again": [*record.get("again", []), other]}


def _brief(record: Record) -> dict[str, Any]:
    """A try that does not count: its loss, and its throughput, to check the choice."""
    load = record.get("load", {})
    return {"lost": record.get("lost", []), "rate": load.get("rate")}
