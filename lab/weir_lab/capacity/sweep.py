# SPDX-License-Identifier: MIT
"""The measured points of a sweep, as the models use them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np

from weir_lab.capacity.queueing import FloatArray

SERVER = "server CPU"
GENERATOR = "generator CPU"

GENERATOR_BUSY_MAX = 0.9  # utilisation of its cores; above, the generator is the limit
LITTLE_RESIDUAL_MAX = 0.02  # of a user's cycle that is unexplained
FAILED_MAX = 0.002  # of the requests: less than the noise of any throughput
SCATTERS_MAX = 3.0  # standard deviations between the points of a sweep
HALF_OF = 0.5  # a throughput below this part of another run's is not noise
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
class Unanswered:
    """A run that ended without an answer, so that it has no rate and no response time."""

    users: int
    why: str


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """Points of one server under one work, and its runs without an answer."""

    points: Sequence[Point]
    think_s: float
    servers: Mapping[str, int]  # resource -> its number of servers (cores)
    unanswered: Sequence[Unanswered] = ()

    def up_to(self, users: int) -> "Sweep":
        """The runs with at most this many users."""
        return self._only(lambda run: run.users <= users)

    def above(self, users: int) -> "Sweep":
        """The runs with more users."""
        return self._only(lambda run: run.users > users)

    def _only(self, belongs: Callable[[Point | Unanswered], bool]) -> "Sweep":
        points = [p for p in self.points if belongs(p)]
        unanswered = [u for u in self.unanswered if belongs(u)]
        return replace(self, points=points, unanswered=unanswered)

    @property
    def runs(self) -> int:
        """The number of all runs, with and without an answer."""
        return len(self.points) + len(self.unanswered)

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
        return replace(self, points=points)

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


def medians(sweep: Sweep, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The levels, and the median of the positive values at each.

    Of an even number of values it is the geometric mean of the two in the middle.
    """
    logs = np.log(values)
    found = [float(np.exp(np.median(logs[sweep.users == level]))) for level in sweep.levels]
    return np.array(sweep.levels, dtype=np.float64), np.array(found)


def _pairs(sweep: Sweep, logs: FloatArray) -> list[float]:
    """The differences between the values of each two runs of one level."""
    found = [combinations(logs[sweep.users == level], 2) for level in sweep.levels]
    apart = [abs(float(one - other)) for pairs in found for one, other in pairs]
    return [each for each in apart if np.isfinite(each)]


def differs(sweep: Sweep) -> float | None:
    """The usual relative difference between two runs of one level; None without repeats.

    It is the median over all pairs of runs, so that a few disturbed runs do not matter. With normal
    noise it is also the standard deviation of a run, within 5 %.
    """
    pairs = _pairs(sweep, np.log(sweep.rates))
    return float(np.median(pairs)) if pairs else None


def centres(sweep: Sweep, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The levels, and the mean logarithm of the positive values at each, as a value.

    Of three or more runs, those far from the median of their level do not count. Far is several
    times what two runs of a level usually differ by. The mean of the others has less noise than
    their median.
    """
    logs = np.log(values)
    far = SCATTERS_MAX * float(np.median(_pairs(sweep, logs) or [0.0]))
    found = []
    for level in sweep.levels:
        here = logs[sweep.users == level]
        near = here[np.abs(here - np.median(here)) <= far]
        found.append(float(np.exp(np.mean(near if len(here) > 2 and len(near) else here))))
    return np.array(sweep.levels, dtype=np.float64), np.array(found)


def without_middle(sweep: Sweep) -> list[int]:
    """The levels of two runs, of which one has less than half of the other's throughput.

    Nothing shows which of the two is right, and the value between them is neither.
    """
    found = []
    for level in sweep.levels:
        rates = [p.rate for p in sweep.points if p.users == level]
        if len(rates) == 2 and min(rates) < HALF_OF * max(rates):
            found.append(level)
    return found


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
        return "1 request failed" if point.failed == 1 else f"{point.failed} requests failed"
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
    return replace(sweep, points=kept)
