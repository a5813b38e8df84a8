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
from scipy import optimize, signal, special

SMALLEST = 1e-250  # a smaller quotient of two terms loses digits

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Station:
    """A resource that requests queue for."""

    name: str
    demand_s: float
    servers: int = 1
    at_length: tuple[float, ...] = ()  # the demand with 1, 2, ... customers present, if it differs

    @property
    def share_s(self) -> float:
        """The mean time between two departures when the queue is long: D/m."""
        return (self.at_length[-1] if self.at_length else self.demand_s) / self.servers

    def gaps_s(self, customers: int) -> FloatArray:
        """The mean time to the next departure with 1, 2, ... customers present.

        Beyond the lengths that `at_length` gives, the demand is the last one.
        """
        present = np.arange(1, customers + 1)
        demand_s = np.full(customers, self.demand_s)
        if self.at_length:
            demand_s = np.asarray(self.at_length)[np.minimum(present, len(self.at_length)) - 1]
        return np.asarray(demand_s / np.minimum(present, self.servers))


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


def network_rate(users: FloatArray, stations: Sequence[Station], think_s: float) -> FloatArray:
    """The exact throughput of a closed product-form network of these stations and one delay.

    Buzen's convolution: X(N) = G(N-1)/G(N). The terms G are scaled by the largest one. Where that
    makes terms of few users too small for floating point numbers, these are computed again.
    """
    counts = users.astype(np.int64)
    unit_s = bottleneck(stations).share_s
    constants = _constants(int(counts.max()), stations, think_s, unit_s)
    rates = np.empty(len(counts))
    for place, count in enumerate(counts):
        known = constants
        if known[count - 1] < SMALLEST:
            known = _constants(int(count), stations, think_s, unit_s)
        rates[place] = known[count - 1] / known[count] / unit_s
    return rates


def _constants(
    users: int, stations: Sequence[Station], think_s: float, unit_s: float
) -> FloatArray:
    """G(0) .. G(users), up to a common factor."""
    weights = _delay_weights(users, think_s / unit_s)
    for station in stations:
        if station.servers == 1 and not station.at_length:
            weights = signal.lfilter([1.0], [1.0, -station.demand_s / unit_s], weights)
        else:
            weights = np.convolve(weights, _station_weights(station, users, unit_s))[: users + 1]
    return np.asarray(weights)


def _delay_weights(users: int, think: float) -> FloatArray:
    """think^n / n! for n = 0 .. users, divided by the largest of them."""
    n = np.arange(users + 1)
    if think <= 0:
        return np.asarray(n == 0, dtype=np.float64)
    logs = n * np.log(think) - special.gammaln(n + 1)
    return np.asarray(np.exp(logs - logs.max()))


def _station_weights(station: Station, users: int, unit_s: float) -> FloatArray:
    """The product of the mean times between departures with 1, 2, ... users customers present."""
    gaps = station.gaps_s(users) / unit_s
    return np.concatenate(([1.0], np.exp(np.cumsum(np.log(gaps)))))


def repair_rate(
    users: FloatArray, servers: int, service_s: FloatArray | float, think_s: float
) -> FloatArray:
    """Throughput of M/M/m//N, the machine repair model: exponential thinking and service.

    It describes users who think and a server with m cores. `service_s` can be an array with one
    value for each number of users.
    """
    if think_s <= 0:
        return np.asarray(np.minimum(users, servers) / service_s)

    def rate(counts: FloatArray, each_s: float) -> FloatArray:
        station = Station(name="server", demand_s=each_s, servers=servers)
        return network_rate(counts, [station], think_s)

    if np.ndim(service_s) == 0:
        return rate(users, float(service_s))
    pairs = zip(users, np.asarray(service_s), strict=True)
    return np.array([rate(np.array([n]), float(each_s))[0] for n, each_s in pairs])


def lengths(users: int, station: Station, think_s: float) -> FloatArray:
    """P(n customers at the only station), n = 0 .. users."""
    unit_s = station.share_s
    at_station = _station_weights(station, users, unit_s)
    weights = at_station * _delay_weights(users, think_s / unit_s)[::-1]
    return np.asarray(weights / weights.sum())


def response_quantile(part: float, users: int, station: Station, think_s: float) -> float:
    """The quantile `part` of the response time of the only station, served in order.

    An arriving request finds the state of a system with one user fewer (the arrival theorem). It
    meets a free server, or waits for an Erlang-distributed time before its own service. Service
    takes the station's demand with a long queue; for other lengths this is an approximation.
    """
    servers = station.servers
    if think_s <= 0:
        found = np.zeros(users)
        found[users - 1] = 1.0
    else:
        found = lengths(users - 1, station, think_s)
    own, all_busy = 1 / (station.share_s * servers), 1 / station.share_s
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

    high = 1 / own
    while beyond(high) > 1 - part:
        high *= 2
    return float(optimize.brentq(lambda t: beyond(t) - (1 - part), 0.0, high))


def stretch(wait_s: FloatArray, rate: FloatArray, think_s: float) -> FloatArray:
    """The 99th percentile of a wait in a closed queue, divided by its mean `wait_s`.

    By Little's law the queue has n = rate * wait customers on average. Far below saturation its
    variance is that of M/M/1, n(n+1). In saturation the queue is all users but the thinking ones,
    whose number varies like a Poisson distribution. Between them, the smaller variance counts more.
    The wait is taken as gamma-distributed.
    """
    length = np.maximum(1e-9, rate * wait_s)
    open_queue, saturated = length * (length + 1), length + rate * max(0.0, think_s)
    variance = 1 / (1 / open_queue + 1 / saturated)
    shape = np.maximum(1.0, length**2 / variance)
    return np.asarray(special.gammaincinv(shape, 0.99) / shape)
