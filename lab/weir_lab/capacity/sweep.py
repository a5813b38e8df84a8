# SPDX-License-Identifier: MIT
"""The measured points of a sweep, as the models use them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from weir_lab.capacity.queueing import FloatArray

SERVER = "server CPU"
GENERATOR = "generator CPU"

GENERATOR_BUSY_MAX = 0.9  # utilisation of its cores; above, the generator is the limit
LITTLE_RESIDUAL_MAX = 0.02  # of a user's cycle that is unexplained
FAILED_MAX = 0.002  # of the requests: less than the noise of any throughput
SCATTERS_MAX = 3.0  # standard deviations between the points of a sweep
MAD = 1.4826  # median absolute deviation -> standard deviation


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
    answered: int = 0  # requests; 0: not known
    doubt: str = ""  # a reason against the point that the other fields do not show

    def gap_s(self, think_s: float) -> float:
        """The time of a cycle that is neither think nor response time.

        It is the generator's lateness and its own work between an answer and the next request.
        """
        return self.users / self.rate - self.response_s - think_s


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
    def responses(self) -> FloatArray:
        """The mean response time of each point."""
        return np.array([p.response_s for p in self.points], dtype=np.float64)

    @property
    def tails(self) -> FloatArray:
        """The 99th percentile of each point; NaN where it was not measured."""
        return np.array([p.p99_s or np.nan for p in self.points], dtype=np.float64)

    def with_rates(self, values: FloatArray) -> "Sweep":
        """The same points with other values in the place of their rates, to fit a curve to them."""
        points = [replace(p, rate=float(v)) for p, v in zip(self.points, values, strict=True)]
        return Sweep(points=points, think_s=self.think_s, servers=self.servers)

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


def _usual_gap_s(sweep: Sweep) -> tuple[float, float]:
    """The usual gap of a cycle, and the standard deviation of single points around it."""
    gaps = np.array([p.gap_s(sweep.think_s) for p in sweep.points])
    middle = float(np.median(gaps))
    return middle, MAD * float(np.median(np.abs(gaps - middle)))


def why_void(sweep: Sweep, point: Point) -> str:
    """The reason why the point is void; empty when it is valid.

    A point is void only when its fault changes the result by more than the noise. A busy generator
    is not a fault: it is a station of the closed network. The usual lateness of the generator is
    not a fault either: it belongs to the think time. Only a point whose lateness differs from that
    of the other points is void.
    """
    if point.failed > FAILED_MAX * (point.answered + point.failed):
        return f"{point.failed} requests failed"
    if point.doubt:
        return point.doubt
    usual_s, scatter_s = _usual_gap_s(sweep)
    off_s = point.gap_s(sweep.think_s) - usual_s
    cycle_s = point.users / point.rate
    drawn_s = sweep.think_s / np.sqrt(max(1, point.answered))  # the mean of random think times
    noise_s = SCATTERS_MAX * float(np.hypot(scatter_s, drawn_s))
    if abs(off_s) > max(noise_s, LITTLE_RESIDUAL_MAX * cycle_s):
        return (
            f"{off_s / cycle_s:+.0%} of a cycle is neither think nor response time, beyond what is "
            "usual in this sweep (Little's law)"
        )
    return ""


def without_void(sweep: Sweep) -> Sweep:
    """The valid points."""
    kept = [p for p in sweep.points if not why_void(sweep, p)]
    return Sweep(points=kept, think_s=sweep.think_s, servers=sweep.servers)
