# SPDX-License-Identifier: MIT
"""From records of runs to the points of a sweep."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from statistics import median
from typing import Any

from weir_lab.analysis import steady
from weir_lab.capacity import disturbance
from weir_lab.capacity.disturbance import Lost
from weir_lab.capacity.sweep import GENERATOR, SERVER, Point, Sweep, Unanswered

# Doubts of `weir load` whose effect the point itself shows: the generator's CPU is measured, and
# its lateness is in the cycle. sweep.why_void judges that effect.
MEASURED = ("busiest thread used", "Little's law", "late (p99)", "No answer came for")


CALM = Lost()


def by_second(record: Mapping[str, Any]) -> list[float]:
    """Answers in each whole second of a run, where the generator reports them."""
    return [each["rate"] for each in record["load"].get("series", []) if each["seconds"] >= 1]


def server_s(record: Mapping[str, Any]) -> float:
    """The server's CPU per answer.

    `weir load` reads it in ticks of the kernel, and sees none in a short run of few requests. Then
    it is known of the whole run: its warm-up has as many answers per second, which are not counted.
    """
    load = record["load"]
    if load["server_demand_s"]:
        return float(load["server_demand_s"])
    seconds, warmup_s = load.get("seconds", 0.0), load.get("warmup_s", 0.0)
    counted = seconds / (seconds + warmup_s) if seconds > 0 else 1.0
    return float(record["server_cpu_s"] * counted / max(1, load["requests"]))


def point(record: Mapping[str, Any], repeat: int, calm: Lost = CALM) -> Point:
    """A run as a point; `calm` is the loss of CPU that is usual in the sweep."""
    load = record["load"]
    answered = max(1, load["requests"])
    # A part of a core is a slower core.
    demand_s = server_s(record) / record.get("server_share", 1.0)
    doubts = [d for d in load["doubts"] if not any(known in d for known in MEASURED)]
    doubt = disturbance.reason(record, calm) or (doubts[0].rstrip(".") if doubts else "")
    series = by_second(record)
    if not doubt and len(series) >= steady.SAMPLES_MIN and steady.beginning(series) is None:
        doubt = f"no steady state: the rate drifted to the end of {len(series)} s"
    return Point(
        users=record["users"],
        rate=load["rate"],
        response_s=load["mean_s"],
        repeat=repeat,
        p99_s=load["percentiles_s"].get("99"),
        demand_s={SERVER: demand_s, GENERATOR: load["generator_cpu_s"] / answered},
        failed=load["failed"],
        answered=load["requests"],
        doubt=doubt,
    )


def _together(demand_s: Mapping[str, float]) -> Mapping[str, float]:
    """The demand on the only core; without the server's part it is not known."""
    return {SERVER: sum(demand_s.values())} if demand_s[SERVER] > 0 else {SERVER: 0.0}


def is_answered(record: Mapping[str, Any]) -> bool:
    """Whether the run ended, and at least one request was answered."""
    return "error" not in record and record["load"]["requests"] > 0 and record["load"]["rate"] > 0


def unanswered(record: Mapping[str, Any]) -> Unanswered:
    """A run without an answer. The record of a failed run has its users in its key alone."""
    if "error" not in record:
        failed = record["load"]["failed"]
        return Unanswered(
            users=record["users"], why=f"no request was answered, and {failed:,} failed"
        )
    users = record.get("users") or record["key"].split("/")[-2].split()[0]
    return Unanswered(users=int(users), why=str(record["error"]).rstrip("."))


def numbered(
    records: Iterable[Mapping[str, Any]],
) -> Iterator[tuple[Mapping[str, Any], int]]:
    """The records with an answer, each with its number among those of its level."""
    seen: dict[int, int] = {}
    for record in records:
        if is_answered(record):
            users = record["users"]
            yield record, seen.get(users, 0)
            seen[users] = seen.get(users, 0) + 1


def sweep(
    records: Iterable[Mapping[str, Any]],
    *,
    server_cores: int,
    generator_cores: int,
    one_core: bool = False,
    calm: Lost | None = None,
) -> Sweep:
    """The runs of one server under one work, in any order.

    With `one_core` a request needs the same core for the server and for the generator, so that the
    demand on it is the sum of both. `calm` is the loss of CPU that is usual on this machine.
    Without `calm` the records themselves show it.
    """
    every = list(records)
    good = [r for r in every if is_answered(r)]
    calm = disturbance.usual(good) if calm is None else calm
    points = []
    for record, repeat in numbered(good):
        found = point(record, repeat, calm)
        points.append(replace(found, demand_s=_together(found.demand_s)) if one_core else found)
    # A user who was woken late has thought for longer. The generator measures by how much.
    late_s = [r["load"].get("late_s", 0.0) for r in good]
    return Sweep(
        points=sorted(points, key=lambda p: (p.users, p.repeat)),
        think_s=good[0]["think_s"] + median(late_s) if good else 0.0,
        servers={SERVER: server_cores}
        if one_core
        else {SERVER: server_cores, GENERATOR: generator_cores},
        unanswered=[unanswered(r) for r in every if not is_answered(r)],
    )
