# SPDX-License-Identifier: MIT
"""What `weir load` measures is what was: a server's known delay, and what others measure of it.

The machine that runs tests is busy with others, and whoever is woken late measures that too. So
both sides come first where the kernel allows that, and a bound from above gets several tries, of
which the least disturbed one counts: noise can only add, and what a generator adds of its own it
adds each time. Bounds from below hold in every try.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import metronome
from tests.e2e.running import TOP, WEIR

TRIES = 8
LIMIT_S = 60.0

MS = 1_000_000


def output_of(*words: str | Path) -> str:
    return subprocess.run(
        [*metronome.FIRST, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        timeout=LIMIT_S,
        check=False,
    ).stdout


def load(*words: str) -> dict[str, Any]:
    """The step of a load; whether the machine let it be valid is not what is asked here."""
    (step,) = json.loads(output_of(WEIR, "load", *words, "--json"))["steps"]
    assert isinstance(step, dict)
    return step


# ---- a known delay ----


def is_within_bound(measured_ns: float, given_ns: float) -> bool:
    return measured_ns - given_ns < 50_000 + given_ns / 100


@pytest.mark.parametrize(
    ("mode", "ns", "words"),
    [
        ("delay", 0, ["--users", "1", "--requests", "3000"]),
        ("delay", 1 * MS, ["--users", "1", "--requests", "300"]),
        ("delay", 1 * MS, ["--users", "10", "--requests", "3000"]),
        ("delay", 20 * MS, ["--users", "1", "--requests", "20"]),
        ("delay", 20 * MS, ["--users", "10", "--requests", "200"]),
        ("delay", 5 * MS, ["--users", "10", "--think", "exp:5ms", "--requests", "500"]),
        ("delay", 5 * MS, ["--users", "5", "--pace", "20ms", "--requests", "100"]),
        ("delay", 5 * MS, ["--users", "50", "--rate", "500", "--poisson", "--requests", "200"]),
        ("service", MS // 5, ["--users", "10", "--requests", "2000"]),
    ],
)
def test_a_known_delay_is_what_is_measured(mode: str, ns: int, words: list[str]) -> None:
    over = []
    for _ in range(TRIES):
        with metronome.running(mode, ns) as server:
            step = load(server.url, *words)
            given = server.end()
        measured = step["response"]
        assert step["answers"] == given["answers"] == int(words[-1])
        # What the server gave lies within what the client waited.
        assert measured["min_ns"] >= given["min_ns"] >= ns
        assert measured["max_ns"] >= given["max_ns"]
        assert measured["mean_ns"] >= given["mean_ns"]
        if is_within_bound(measured["mean_ns"], given["mean_ns"]):
            return
        over.append(measured["mean_ns"] - given["mean_ns"])
    pytest.fail(f"above what the server gave, in ns: {over}")


# ---- what others measure ----


@dataclass(frozen=True)
class Said:
    """What a generator says of a load."""

    per_s: float
    mean_ns: float


def by_weir(url: str, users: int) -> Said:
    step = load(url, "--users", str(users), "--duration", "2s", "--warmup", "0")
    return Said(step["throughput_per_second"], step["response_mean_ns"])


def by_wrk(url: str, users: int) -> Said:
    script = TOP / "bench/wrk.lua"
    out = output_of("wrk", "-t1", f"-c{users}", "-d2s", "-s", script, url, "--", "1")
    found = re.search(r"^BENCH (\{.*\})$", out, re.MULTILINE)
    assert found, out
    counts = json.loads(found[1])
    return Said(counts["requests"] / (counts["duration_us"] / 1e6), counts["mean_us"] * 1e3)


def by_h2load(url: str, users: int) -> Said:
    out = output_of("h2load", "--h1", "-t1", f"-c{users}", "-D2", url)
    rate = re.search(r"finished in .*?, ([\d.]+) req/s", out)
    mean = re.search(r"time for request:\s+\S+\s+\S+\s+([\d.]+)(us|ms|s)\b", out)
    assert rate, out
    assert mean, out
    return Said(float(rate[1]), float(mean[1]) * {"us": 1e3, "ms": 1e6, "s": 1e9}[mean[2]])


OTHERS: dict[str, Callable[[str, int], Said]] = {"wrk": by_wrk, "h2load": by_h2load}


def agree(one: Said, other: Said) -> bool:
    return abs(one.per_s / other.per_s - 1) < 0.03 and abs(one.mean_ns / other.mean_ns - 1) < 0.03


# Servers that set the rate themselves: what a generator sends together changes nothing there.
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize(
    ("mode", "ns", "users", "per_s"),
    [("service", MS // 2, 30, 2000), ("delay", 20 * MS, 20, 1000)],
)
def test_others_measure_the_same(mode: str, ns: int, users: int, per_s: int, other: str) -> None:
    if not shutil.which(other):
        pytest.skip(f"{other} is not installed")
    seen = []
    for _ in range(TRIES):
        with metronome.running(mode, ns) as server:
            ours, theirs = by_weir(server.url, users), OTHERS[other](server.url, users)
        assert ours.per_s <= per_s * 1.02  # the server can do no more
        if agree(ours, theirs):
            return
        seen.append((ours, theirs))
    pytest.fail(f"{seen}")
