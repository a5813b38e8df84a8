# SPDX-License-Identifier: MIT
"""The answers about a server: where it saturates, how much it carries, what limits it, what to buy.

All answers come from one forecast, so that no two of them contradict each other.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from weir_lab.capacity import queueing
from weir_lab.capacity.forecast import KNEE_EFFICIENCY, REACH, Forecast
from weir_lab.capacity.mechanisms import FAR, LAST, roof, tail
from weir_lab.capacity.queueing import Station
from weir_lab.capacity.sweep import GENERATOR, SERVER, Sweep, centres
from weir_lab.capacity.trend import trend

USERS_SEARCHED_MAX = 10_000_000
SEARCHED = 10  # times the last training level: no answer looks further
SEARCH_STEPS = 200
SATURATED = 0.95  # utilisation: above it a resource counts as saturated
HORIZON = 3.0  # times the last training level: the answers look so far ahead
SLOPE_FLAT = 0.15  # elasticity of throughput by users; below it, throughput has saturated


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A value and the 95 % interval around it."""

    value: float
    low: float
    high: float  # infinite: nothing was found that limits it
    is_least: bool = False  # the search ended at the value, so it may be larger

    @property
    def width(self) -> float:
        """Relative to the value."""
        return (self.high - self.low) / abs(self.value) if self.value else float("inf")


@dataclass(frozen=True, kw_only=True)
class Capacity:
    """The answers, each with its 95 % interval; None where the data do not support one."""

    saturation_users: Interval | None = None  # N*
    most_rate: Interval | None = None
    users_within_p99: Interval | None = None
    p99_limit_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class Need:
    """Users to be served, how long they think, and the objective for their response times."""

    users: int
    think_s: float
    p99_s: float


@dataclass(frozen=True, kw_only=True)
class Purchase:
    """The cores that the need takes, and where they end."""

    need: Need
    cores: int | None  # None: no number of cores meets the need
    busy: float  # utilisation of these cores
    ends_at: int  # the most users that these cores answer within the objective
    then: str  # the resource that limits beyond `ends_at`

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        need = self.need
        text = (
            f"For {_who(need.users)} for {need.think_s:g} s with p99 below "
            f"{need.p99_s * 1e3:g} ms: "
        )
        if self.cores is None:
            return f"{text}no number of cores is enough; the limit is {self.then}."
        cores = "1 core" if self.cores == 1 else f"{self.cores:,} cores"
        return (
            f"{text}{cores} ({self.busy:.0%} busy); it ends at {self.ends_at:,} users; then "
            f"{self.then}."
        )


def _who(users: int) -> str:
    return "1 user who thinks" if users == 1 else f"{users:,} users who think"


def utilisation(sweep: Sweep, name: str) -> float:
    """The utilisation of a resource at the highest training loads."""
    return float(np.median([sweep.utilisation(p, name) for p in tail(sweep, LAST).points]))


def has_seen_the_knee(sweep: Sweep) -> bool:
    """Whether throughput per user has clearly fallen at both of the last two levels."""
    levels, rates = centres(sweep, sweep.rates)
    each = rates / levels
    return len(levels) > 1 and float(each[-2:].max()) < KNEE_EFFICIENCY * float(each.max())


def _around(value: float, deviation: float) -> Interval:
    return Interval(
        value=value,
        low=value * float(np.exp(-REACH * deviation)),
        high=value * float(np.exp(REACH * deviation)),
    )


def most_rate(found: Forecast) -> Interval | None:
    """The highest throughput. None where it lies beyond the loads and no CPU is known.

    Where the forecast becomes flat, it is the forecast. Elsewhere it is the least m/D of server and
    generator at the limits of the trends of D. The interval begins at m/D as measured at the
    highest training loads, and ends where the trends may end. No forecast is above the interval.
    """
    grid = np.unique(np.round(np.geomspace(1, found.last * HORIZON, 100)))
    rates = found.rates(grid)
    place = int(np.argmax(rates))
    deviation = float(found.rate(grid[place : place + 1]).deviation[0])
    back = -min(10, len(grid))
    if np.log(rates[-1] / rates[back]) < SLOPE_FLAT * np.log(grid[-1] / grid[back]):
        around = _around(float(rates[place]), deviation)
        return replace(around, high=max(around.high, found.most))
    if not found.training.has_demand():
        return None
    ends = np.array([found.last, grid[-1], found.last * FAR])
    here, later, far = (max(float(m), float(rates[place])) for m in roof(found.known, ends))
    edge = float(roof(found.known, ends[-1:], reach=REACH)[0])
    noise = float(np.exp(deviation))
    value = max(later, far)
    return Interval(value=value, low=min(here, far) / noise, high=max(value, edge) * noise)


def capacity(found: Forecast | None, p99_limit_s: float | None = None) -> Capacity:
    """The answers of the forecast.

    N* is where a straight line of the best throughput per user meets the highest throughput.
    """
    if found is None:
        return Capacity(p99_limit_s=p99_limit_s)
    most = most_rate(found)
    levels, rates = centres(found.training, found.training.rates)
    cycle_s = float((levels / rates).min())
    knee = None
    if most:
        knee = Interval(
            value=most.value * cycle_s, low=most.low * cycle_s, high=most.high * cycle_s
        )
    within = None if p99_limit_s is None else users_within(found, p99_limit_s)
    return Capacity(
        saturation_users=knee, most_rate=most, users_within_p99=within, p99_limit_s=p99_limit_s
    )


def users_within(found: Forecast, limit_s: float) -> Interval | None:
    """The largest number of users whose forecast 99th percentile is within the limit.

    The percentile of a few users may be higher than that of more, because an idle CPU has to wake
    up. So the search begins at the most users. The interval is where the edges of the band cross
    the limit for the last time. None when no percentile was measured.
    """
    limit = int(found.last * SEARCHED)
    steps = np.geomspace(1, limit, SEARCH_STEPS)
    grid = np.unique(np.round(np.concatenate([steps, found.training.levels])))
    band = found.p99(grid)
    if band is None:
        return None
    first, last = found.rates(np.array([limit / 2, float(limit)]))
    is_flat = np.log(last / first) < SLOPE_FLAT * np.log(2)

    def most(edge: str) -> float:
        def fits(users: int) -> bool:
            at = found.p99(np.array([float(users)]))
            return at is not None and float(getattr(at, edge)[0]) <= limit_s

        values = getattr(band, edge)
        fitting = np.flatnonzero(values <= limit_s)
        if not len(fitting):
            return 0.0
        place = int(fitting[-1])
        if place + 1 < len(grid):
            return float(_last_fitting(fits, int(grid[place]), int(grid[place + 1])))
        # Where throughput is flat, each further user adds as much.
        return float(np.floor(limit * limit_s / values[-1])) if is_flat else float("inf")

    value, low, high = most("value"), most("high"), most("low")
    return Interval(
        value=min(value, limit) if np.isinf(value) else value,
        low=min(low, limit) if np.isinf(low) else low,
        high=high,
        is_least=bool(np.isinf(value)),
    )


def _last_fitting(fits: Callable[[int], bool], low: int, high: int) -> int:
    """The last number for which `fits` holds, from `low`, where it does, to `high`, where not."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _most_users(fits: Callable[[int], bool], limit: int) -> int:
    """The largest number for which `fits` holds, by doubling and halving; 0 when none."""
    if not fits(1):
        return 0
    low, high = 1, 2
    while fits(high):
        low, high = high, high * 2
        if low >= limit:
            return limit
    return min(limit, _last_fitting(fits, low, high))


def _at_length(found: Forecast) -> tuple[float, ...]:
    """The service demand with 1, 2, ... requests at one core, from the level with so many.

    Where throughput is flat, the demand is the core's share of the highest throughput, even if the
    CPU is not the limit there.
    """
    sweep = found.training
    cores = sweep.servers.get(SERVER, 1)
    most = most_rate(found)
    share_s = cores / (most.value if most else float(found.rates(np.array([found.last]))[0]))
    if not sweep.has_demand():
        return (share_s,)
    _, rates = centres(sweep, sweep.rates)
    _, responses = centres(sweep, sweep.responses)
    _, demands = centres(sweep, sweep.demands())
    present = np.maximum.accumulate(np.maximum(1.0, rates * responses / cores))
    lengths = np.arange(1, int(np.ceil(present[-1])) + 1)
    measured = np.interp(lengths, present, demands)
    return (*np.maximum(measured, share_s).tolist(), share_s)


@dataclass(frozen=True, kw_only=True)
class _Offer:
    """A server with some cores: its 99th percentile and utilisation for any number of users."""

    cores: int
    at_length: tuple[float, ...]  # of one core
    think_s: float
    scale: float  # measured 99th percentile / that of the queue
    least_s: float  # the lowest 99th percentile that was measured

    @property
    def station(self) -> Station:
        """All cores behind one queue."""
        lengths = tuple(np.repeat(self.at_length, self.cores).tolist())
        return Station(
            name=SERVER, demand_s=self.at_length[-1], servers=self.cores, at_length=lengths
        )

    def p99(self, users: int) -> float:
        """The 99th percentile for this many users."""
        station = self.station
        if users * station.share_s > self.think_s + 100 * station.share_s * users**0.5:
            return self.scale * (users * station.share_s - self.think_s)  # all cores are busy
        queue_s = queueing.response_quantile(0.99, users, station, self.think_s)
        return max(self.least_s, self.scale * queue_s)

    def busy(self, users: int) -> float:
        """The utilisation for this many users."""
        station = self.station
        present = queueing.lengths(users, station, self.think_s)
        return float(present @ np.minimum(np.arange(users + 1), self.cores)) / self.cores


def _scale(found: Forecast, at_length: tuple[float, ...]) -> tuple[float, float]:
    """How the measured percentiles compare with the queue's, and the lowest measured one."""
    sweep = found.training
    cores = sweep.servers.get(SERVER, 1)
    offer = _Offer(
        cores=cores, at_length=at_length, think_s=sweep.think_s + found.gap_s, scale=1, least_s=0
    )
    end = tail(sweep, LAST)
    levels, tails = centres(end, end.tails)
    ratios = [
        p99 / queueing.response_quantile(0.99, int(n), offer.station, max(0.0, offer.think_s))
        for n, p99 in zip(levels, tails, strict=True)
    ]
    return max(1.0, float(np.median(ratios))), float(np.min(sweep.tails))


def purchase(found: Forecast, need: Need) -> Purchase | None:
    """The least number of cores that meets the need. None where no percentile was measured.

    The server is a queue for its cores whose service demand depends on the requests present, as
    measured. Where throughput was flat although the CPU was idle, further cores would not help.
    """
    sweep = found.training
    if not np.all(np.isfinite(sweep.tails)):
        return None
    at_length = _at_length(found)
    scale, least_s = _scale(found, at_length)
    here = sweep.servers.get(SERVER, 1)
    known = sweep.has_demand()
    idle = known and has_seen_the_knee(sweep) and utilisation(sweep, SERVER) < SATURATED - 0.15
    of_generator = sweep.has_demand(GENERATOR) and utilisation(sweep, GENERATOR) >= 0.9
    then = "the CPU"
    if idle:
        then = "the generator, as measured here" if of_generator else "something beside the CPU"
    if not known:
        then = "whatever limited the server here"

    def offer(cores: int) -> _Offer:
        return _Offer(
            cores=cores,
            at_length=at_length,
            think_s=need.think_s,
            scale=scale,
            least_s=least_s,
        )

    fixed = idle or not known
    least = need.users * offer(1).station.share_s / (need.think_s + need.p99_s)
    cores = here if fixed else max(1, int(np.ceil(least)))
    most = cores if fixed else 2 * cores + 1
    while cores <= most and offer(cores).p99(need.users) > need.p99_s:
        cores += max(1, cores // 16)
    if cores > most or least_s > need.p99_s:
        return Purchase(need=need, cores=None, busy=0.0, ends_at=0, then=then)
    chosen = offer(cores)
    return Purchase(
        need=need,
        cores=cores,
        busy=chosen.busy(need.users),
        ends_at=_most_users(lambda users: chosen.p99(users) <= need.p99_s, USERS_SEARCHED_MAX),
        then=then,
    )


@dataclass(frozen=True, kw_only=True)
class Limit:
    """The limit that a resource sets."""

    resource: str
    demand_s: float
    servers: int
    most_rate: float  # m/D
    used: float  # utilisation at the highest loads


def limits(sweep: Sweep) -> list[Limit]:
    """Every measured resource, the bottleneck (the largest D/m) first."""
    found = []
    for name, servers in sweep.servers.items():
        if not sweep.has_demand(name):
            continue
        end = tail(sweep, LAST)
        demand_s = float(np.exp(trend(end.users, end.demands(name)).level))
        found.append(
            Limit(
                resource=name,
                demand_s=demand_s,
                servers=servers,
                most_rate=servers / demand_s,
                used=utilisation(sweep, name),
            )
        )
    return sorted(found, key=lambda limit: limit.most_rate)


def first_limit(sweep: Sweep) -> Limit | None:
    """The bottleneck; None where it is not known.

    A server whose CPU was not measured may limit before a generator that was not saturated.
    """
    found = limits(sweep)
    is_known = bool(found) and (sweep.has_demand() or found[0].used >= SATURATED)
    return found[0] if is_known else None


def bottleneck_sentence(sweep: Sweep) -> str:
    """Names the resource that saturates first, and whether it was seen to saturate."""
    found = limits(sweep)
    if not found:
        return "No service demand was measured, so the bottleneck cannot be named."
    first = first_limit(sweep)
    if first is None:
        return (
            "The server's CPU was not measured at every training load, so the bottleneck cannot be "
            f"named. The {found[0].resource} was busy for {found[0].used:.0%} of the time at the "
            "highest of these loads."
        )
    of = f" of {first.servers} cores" if first.servers > 1 else ""
    text = f"The bottleneck is the {first.resource}: {first.demand_s * 1e6:.1f} µs{of} each request"
    if first.used >= SATURATED:
        return (
            f"{text}, so about {float(f'{first.most_rate:.3g}'):,.0f} requests per second. It was "
            f"saturated ({first.used:.0%})."
        )
    return (
        f"{text} at the highest training loads, where it was busy for {first.used:.0%} of the time."
    )
