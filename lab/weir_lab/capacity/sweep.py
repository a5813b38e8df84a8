# SPDX-License-Identifier: MIT
"""The measured points of a sweep, as the models use them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from weir_lab.capacity.queueing import FloatArray

SERVER = "server CPU"
GENERATOR = "generator CPU"

GENERATOR_BUSY_MAX = 0.9  # utilisation of its cores; above, the generator is the limit
LITTLE_RESIDUAL_MAX = 0.02  # of a user's cycle that is unexplained


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
    judged: bool = False  # the generator checked Little's law with the think times it drew
    doubt: str = ""  # the generator's reason against the point

    def cycle_unaccounted(self, think_s: float) -> float:
        """Little's residual: the part of a user's cycle that is neither think nor response time."""
        cycle_s = self.users / self.rate
        return (cycle_s - self.response_s - think_s) / cycle_s


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """Points of one server under one work."""

    points: Sequence[Point]
    think_s: float
    servers: Mapping[str, int]  # resource -> its number of servers (cores)

    def up_to(self, users: int) -> "Sweep":
        """The points with at most this many users."""
        kept = [p for p in self.points if p.users <= users]
        return Sweep(points=kept, think_s=self.think_s, servers=self.servers)

    def above(self, users: int) -> "Sweep":
        """The points with more users."""
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
        """The numbers of users, in order."""
        return sorted({p.users for p in self.points})

    def has_demand(self, resource: str = SERVER) -> bool:
        """Whether the service demand of the resource was measured at every point."""
        return bool(self.points) and all(p.demand_s.get(resource, 0) > 0 for p in self.points)

    def demands(self, resource: str = SERVER) -> FloatArray:
        """The service demand of the resource at each point."""
        return np.array([p.demand_s[resource] for p in self.points], dtype=np.float64)

    def utilisation(self, point: Point, resource: str) -> float:
        """The utilisation of the resource at the point (the utilisation law)."""
        used = point.demand_s.get(resource, 0.0) * point.rate
        return used / self.servers.get(resource, 1)


def why_void(sweep: Sweep, point: Point) -> str:
    """The reason why the point is void; empty when it is valid."""
    if point.failed:
        return f"{point.failed} requests failed"
    if point.doubt:
        return point.doubt
    busy = sweep.utilisation(point, GENERATOR)
    if busy > GENERATOR_BUSY_MAX:
        return f"the generator was the limit: it was busy for {busy:.0%} of the time"
    if point.judged:
        return ""
    missing = point.cycle_unaccounted(sweep.think_s)
    if abs(missing) > LITTLE_RESIDUAL_MAX:
        return f"{missing:+.0%} of each cycle is neither think nor response time (Little's law)"
    return ""
