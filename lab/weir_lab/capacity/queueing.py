# SPDX-License-Identifier: MIT
"""Closed queueing networks: users who think, then wait for stations that serve them.

All times are in seconds, all rates per second. Nothing is fitted here; see curves.py. The symbols
are N users, Z think time, D service demand (the time that a request uses a station), m servers of a
station, X throughput, R response time. N = X (R + Z) always holds (Little's law).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Station:
    """A resource that requests queue for."""

    name: str
    demand_s: float
    servers: int = 1

    @property
    def share_s(self) -> float:
        """The least mean time between two requests: D/m."""
        return self.demand_s / self.servers


def bottleneck(stations: Sequence[Station]) -> Station:
    """The station that saturates first: the one with the largest D/m."""
    return max(stations, key=lambda station: station.share_s)


def saturation_users(stations: Sequence[Station], think_s: float) -> float:
    """N*: the number of users where the asymptotes meet."""
    total_s = sum(station.demand_s for station in stations)
    return (total_s + think_s) / bottleneck(stations).share_s


def asymptotic_rate(users: FloatArray, stations: Sequence[Station], think_s: float) -> FloatArray:
    """The upper bound of throughput, for any distributions."""
    total_s = sum(station.demand_s for station in stations)
    return np.minimum(users / (total_s + think_s), 1 / bottleneck(stations).share_s)


def asymptotic_response(
    users: FloatArray, stations: Sequence[Station], think_s: float
) -> FloatArray:
    """The lower bound of the response time, for any distributions."""
    total_s = sum(station.demand_s for station in stations)
    return np.maximum(total_s, users * bottleneck(stations).share_s - think_s)


def balanced_rate(
    users: FloatArray, stations: Sequence[Station], think_s: float
) -> tuple[FloatArray, FloatArray]:
    """Bounds from networks with equal stations: tighter, for product-form networks.

    A station of m servers counts as a queue of D/m and a delay of D (m-1)/m (Seidmann).
    """
    queued = [station.share_s for station in stations]
    delay_s = think_s + sum(s.demand_s - s.share_s for s in stations)
    total_s, most_s = sum(queued), max(queued)
    mean_s = total_s / len(queued)
    ratio = delay_s / total_s
    low = users / (delay_s + total_s + (users - 1) * most_s / (1 + ratio / users))
    high = users / (delay_s + total_s + (users - 1) * mean_s / (1 + ratio))
    return low, np.minimum(high, 1 / most_s)


def mva_rate(users: FloatArray, stations: Sequence[Station], think_s: float) -> FloatArray:
    """Throughput by exact mean value analysis, with stations of one or several servers."""
    rates = mva(int(users.max()), stations, think_s)
    return rates[users.astype(np.int64) - 1]


def mva(users_max: int, stations: Sequence[Station], think_s: float) -> FloatArray:
    """Throughput for 1, 2, ... users_max users: the recursion needs all of them.

    For a station of m servers the recursion keeps the probabilities of 0 .. m-1 customers.
    """
    held = [0.0] * len(stations)
    idle = [np.concatenate(([1.0], np.zeros(s.servers - 1))) for s in stations]
    rates = np.empty(users_max)
    for users in range(1, users_max + 1):
        response = [
            s.share_s * (1 + q + float(np.arange(s.servers - 1, -1, -1) @ p))
            for s, q, p in zip(stations, held, idle, strict=True)
        ]
        rate = users / (think_s + sum(response))
        rates[users - 1] = rate
        for k, station in enumerate(stations):
            held[k] = rate * response[k]
            idle[k] = _idle_probabilities(station, rate, idle[k])
    return rates


def _idle_probabilities(station: Station, rate: float, before: FloatArray) -> FloatArray:
    """P(j customers) for j below m, from those with one user fewer."""
    m = station.servers
    now = np.zeros(m)
    for j in range(1, m):
        now[j] = rate * station.demand_s / j * before[j - 1]
    spare = m - rate * station.demand_s - float(np.arange(m - 1, 0, -1) @ now[1:])
    now[0] = max(0.0, spare / m)  # rounding can make zero slightly negative
    return now


def repair_rate(
    users: FloatArray, servers: int, service_s: FloatArray | float, think_s: float
) -> FloatArray:
    """Throughput of M/M/m//N, the machine repair model: exponential thinking and service.

    It describes users who think and a server with m cores. `service_s` can be an array with one
    value for each number of users.
    """
    service = np.broadcast_to(np.asarray(service_s, dtype=np.float64), users.shape)
    if think_s <= 0:
        return np.minimum(users, servers) / service
    found: dict[tuple[float, float], float] = {}  # repeats of a level have the same result
    for count, each_s in set(zip(users.tolist(), service.tolist(), strict=True)):
        weights = _state_weights(int(count), servers, each_s, think_s)
        busy = np.minimum(np.arange(len(weights)), servers)
        found[count, each_s] = float(busy @ weights) / each_s
    pairs = zip(users.tolist(), service.tolist(), strict=True)
    return np.array([found[pair] for pair in pairs])


def _state_weights(users: int, servers: int, service_s: float, think_s: float) -> FloatArray:
    """P(n customers at the server), n = 0 .. users."""
    n = np.arange(1, users + 1)
    steps = np.log((users - n + 1) * service_s / (np.minimum(n, servers) * think_s))
    logs = np.concatenate(([0.0], np.cumsum(steps)))
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


def repair_response_quantile(
    part: float, users: int, servers: int, service_s: float, think_s: float
) -> float:
    """The quantile `part` of the response time of M/M/m//N, served in order.

    An arriving request finds the state of a system with one user fewer (the arrival theorem). It
    meets a free server, or waits for an Erlang-distributed time before its own service.
    """
    if think_s <= 0:
        found = np.zeros(users)
        found[users - 1] = 1.0
    else:
        found = _state_weights(users - 1, servers, service_s, think_s)
    own, all_busy = 1 / service_s, servers / service_s
    ahead = np.arange(servers, len(found)) - servers + 1
    waits = found[servers:]

    def beyond(seconds: float) -> float:
        free = float(found[:servers].sum()) * np.exp(-own * seconds)
        if not len(waits):
            return float(free)
        if servers == 1:
            later = special.gammaincc(ahead + 1, own * seconds)
        else:
            apart = all_busy - own
            with np.errstate(divide="ignore"):
                inside = np.log(special.gammainc(ahead, apart * seconds))
            grown = ahead * np.log(all_busy / apart) - own * seconds + inside
            later = special.gammaincc(ahead, all_busy * seconds) + np.exp(grown)
        return float(free + waits @ later)

    high = service_s
    while beyond(high) > 1 - part:
        high *= 2
    return float(optimize.brentq(lambda t: beyond(t) - (1 - part), 0.0, high))
