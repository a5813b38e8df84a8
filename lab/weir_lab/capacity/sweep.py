# SPDX-License-Identifier: MIT
"""What a sweep has measured, as the models take it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from weir_lab.capacity.queueing import FloatArray

SERVER = "server CPU"
GENERATOR = "generator CPU"

GENERATOR_BUSY_MAX = 0.9  # of the cores it may use; above, it measures itself
LITTLE_RESIDUAL_MAX = 0.02  # of the cycle that nobody accounts for


@dataclass(frozen=True, kw_only=True)
class Point:
    """One level of load, held for a while against a fresh server."""

    users: int
    rate: float  # answers per second
    response_s: float  # mean
    repeat: int = 0
    p99_s: float | None = None
    demand_s: Mapping[str, float] = field(default_factory=dict)  # CPU per request, by resource
    failed: int = 0
    judged: bool = False  # by the generator itself, which knows what thinking it has drawn
    doubt: str = ""  # why it does not believe it

    def cycle_unaccounted(self, think_s: float) -> float:
        """Little's residual: the part of a user's cycle that is neither thinking nor waiting."""
        cycle_s = self.users / self.rate
        return (cycle_s - self.response_s - think_s) / cycle_s


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """Points of one server under one work."""

    points: Sequence[Point]
    think_s: float
    servers: Mapping[str, int]  # resource -> how many of it requests may use at once

    def up_to(self, users: int) -> "Sweep":
        """The part with no more users than this."""
        kept = [p for p in self.points if p.users <= users]
        return Sweep(points=kept, think_s=self.think_s, servers=self.servers)

    def above(self, users: int) -> "Sweep":
        """The rest."""
        kept = [p for p in self.points if p.users > users]
        return Sweep(points=kept, think_s=self.think_s, servers=self.servers)

    @property
    def users(self) -> FloatArray:
        """Users of each point."""
        return np.array([p.users for p in self.points], dtype=np.float64)

    @property
    def rates(self) -> FloatArray:
        """Throughput of each point."""
        return np.array([p.rate for p in self.points], dtype=np.float64)

    @property
    def levels(self) -> list[int]:
        """The numbers of users that were tried."""
        return sorted({p.users for p in self.points})

    def has_demand(self, resource: str = SERVER) -> bool:
        """Whether what a request takes of the resource was measured at every point."""
        return bool(self.points) and all(p.demand_s.get(resource, 0) > 0 for p in self.points)

    def demands(self, resource: str = SERVER) -> FloatArray:
        """What a request took of the resource at each point."""
        return np.array([p.demand_s[resource] for p in self.points], dtype=np.float64)

    def utilisation(self, point: Point, resource: str) -> float:
        """The part of the resource that the point used (the utilisation law)."""
        used = point.demand_s.get(resource, 0.0) * point.rate
        return used / self.servers.get(resource, 1)


def why_void(sweep: Sweep, point: Point) -> str:
    """Why the point says nothing about the server; empty when it does."""
    if point.failed:
        return f"{point.failed} requests failed"
    if point.doubt:
        return point.doubt
    busy = sweep.utilisation(point, GENERATOR)
    if busy > GENERATOR_BUSY_MAX:
        return f"the generator was busy for {busy:.0%} of the time and measured itself"
    if point.judged:
        return ""
    missing = point.cycle_unaccounted(sweep.think_s)
    if abs(missing) > LITTLE_RESIDUAL_MAX:
        return f"{missing:+.0%} of each cycle is neither thinking nor waiting (Little's law)"
    return ""
