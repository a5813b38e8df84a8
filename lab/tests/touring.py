# SPDX-License-Identifier: MIT
"""Made-up results of a whole tour: every document, a comparison, a sweep, counters and caches.

The server behind them is better than the documents' in every point, unless a test changes it.
"""

import json
import math
import random
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import measured
from sharing import PLAN, WAYS_NS, counted, played, timed
from weir_lab.experiments import compare, published, reproduce
from weir_lab.rim.store import FILE, SCHEMA

Record = dict[str, Any]
PLACEMENT = "server on core 1, generator on core 0"
MACHINE: Record = {
    "date": "2026-11-22T02:51:37+00:00",
    "kernel": "Linux 6.18",
    "processor": "a processor",
    "cores": 2,
    "load_average_at_start": 0.1,
    "placement": PLACEMENT,
    "weir": "weir 0.1.0",
    "command": "weir-lab tour",
}
ROUNDS = 4
NOISE = 0.02
KEEP_ALIVE_GAIN = 1.6
THREAD_GAIN = 3.0
E_LEVELS = (40, 80, 160, 300, 420, 550, 680, 760, 850, 980, 1100, 1400)


def run(
    users: int,
    rate: float,
    drawn: random.Random,
    *,
    keep_alive: bool = True,
    think_s: float = 0.0,
    demand_s: float = 1e-5,
    **more: object,
) -> Record:
    """A run of a second without failures."""
    rate *= math.exp(drawn.gauss(0, NOISE))
    answered = round(rate)
    mean_s = max(1e-5, users / rate - think_s)
    return {
        "server": "epoll",
        "version": "0.1.0",
        "users": users,
        "think_s": think_s,
        "keep_alive": keep_alive,
        "path": "/308.bin",
        "began_unix_s": 0.0,
        "counted": answered,
        "counted_200": answered,
        "server_cpu_s": 0.0,
        "memory_kib": 9000.0,
        "memory_idle_kib": 8000.0,
        "memory_load_kib": 9000.0,
        "load": {
            "requests": answered,
            "failed": 0,
            "kept_alive": answered,
            "seconds": 1.0,
            "rate": rate,
            "mean_s": mean_s,
            "percentiles_s": {"50": mean_s, "99": 3 * mean_s},
            "total_ms": {"min": 0, "mean": 1.0, "sd": 0.5, "median": 1.0, "max": 30.0},
            "server_demand_s": demand_s,
            "generator_cpu_s": 0.2,
            "judged": True,
            "doubts": [],
        },
        **more,
    }


def documents(drawn: random.Random, gain: float = KEEP_ALIVE_GAIN) -> dict[str, Record]:
    """The records of `reproduce`; `gain` is that of keep-alive in document a."""
    found = {}
    for repeat in range(ROUNDS):
        for users in published.CONCURRENCY_A:
            found[f"a/close/{users}/{repeat}"] = run(users, 20_000, drawn, keep_alive=False)
            found[f"a/keep-alive/{users}/{repeat}"] = run(users, 20_000 * gain, drawn)
        for users in (*(row.users for row in published.B), *published.B_RESETS):
            found[f"b/{users}/{repeat}"] = run(users, 15_000, drawn, keep_alive=False)
        found[f"b/keep-alive/{published.B_KEEP_ALIVE}/{repeat}"] = run(100, 30_000, drawn)
        for name in published.C_FILES:
            found[f"c/{name}/close/{repeat}"] = run(100, 20_000, drawn, keep_alive=False)
            found[f"c/{name}/keep-alive/{repeat}"] = run(100, 60_000, drawn)
        for size in published.D_SIZES:
            found[f"d/fork/{size}/20/{repeat}"] = run(20, 2400, drawn, keep_alive=False)
            found[f"d/thread/{size}/20/{repeat}"] = run(20, 2400 * THREAD_GAIN, drawn)
    think_s, demand_s = published.E_THINK_S, 45e-6
    for users in E_LEVELS:
        rate = (1 / (demand_s**8 + ((think_s + demand_s) / users) ** 8)) ** (1 / 8)
        found[f"e/{users}/0"] = run(users, rate, drawn, think_s=think_s, demand_s=demand_s)
    return found


def comparison(drawn: random.Random) -> tuple[compare.Question, dict[str, Record]]:
    """The records of `compare`: `thread` costs twice as much as the others."""
    question = compare.Question(
        servers=("epoll", "percore", "pool", "thread"), rounds=6, generator="load"
    )
    found = {}
    for work, how in question.works().items():
        for number in range(question.rounds):
            for server in question.servers:
                cost_s = 2e-5 if server == "thread" else 1e-5
                record = run(
                    64,
                    50_000,
                    drawn,
                    keep_alive=how.keep_alive,
                    demand_s=cost_s * math.exp(drawn.gauss(0, NOISE)),
                    server=server,
                )
                found[question.key(0, work, number, server)] = record
    return question, found


def put(folder: Path, plan: Mapping[str, Any], records: Mapping[str, Record]) -> None:
    """Writes the results of one command, as the command leaves them."""
    folder.mkdir(parents=True, exist_ok=True)
    whole = {**plan, "seed": 1, "placement": PLACEMENT}
    head = {"kind": "experiment", "schema": SCHEMA, "plan": whole, "machine": MACHINE}
    lines = [head, *({"kind": "point", "key": k, **record} for k, record in records.items())]
    (folder / FILE).write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def document(folder: Path, letters: str, *, gain: float = KEEP_ALIVE_GAIN) -> Path:
    """Writes the results of `reproduce` with these documents."""
    plan = {"command": "reproduce", "documents": list(letters), "scale": asdict(reproduce.TOUR)}
    found = documents(random.Random(1), gain)
    put(folder, plan, {key: record for key, record in found.items() if key[0] in letters})
    return folder


def tour(folder: Path) -> Path:
    """Writes the results of a tour."""
    document(folder / "reproduce", "abcde")
    question, records = comparison(random.Random(2))
    put(folder / "compare", {"command": "compare", **asdict(question)}, records)
    measured.put(measured.lines("pool-ka"), folder / "capacity")
    shared = {**counted(250, WAYS_NS), **played(agree=True)}
    shared |= timed({"sieve": 100.0, "lru": 130.0, "rwlock": 200.0, "semaphore": 400.0}, 0.05)
    sync = {"command": "sync", "parts": ["counters", "caches"], "caches": asdict(PLAN)}
    put(folder / "sync", {**sync, "counters": {"workers": [1, 2]}}, shared)
    return folder
