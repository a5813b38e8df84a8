# SPDX-License-Identifier: MIT
"""The answers about a server: where it saturates, how much it carries, what limits it."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from weir_lab.capacity import queueing
from weir_lab.capacity.bootstrap import Interval, interval
from weir_lab.capacity.choice import Choice
from weir_lab.capacity.curves import CannotFitError, Fitted, demand_of
from weir_lab.capacity.queueing import Station
from weir_lab.capacity.sweep import SERVER, Sweep

USERS_SEARCHED_MAX = 100_000
SATURATED = 0.95  # utilisation: above it a resource counts as saturated


@dataclass(frozen=True, kw_only=True)
class Capacity:
    """The answers, each with its 95 % interval; None where the data do not support one."""

    saturation_users: Interval | None
    most_rate: Interval | None
    users_within_p99: Interval | None
    p99_limit_s: float | None


def capacity(choice: Choice, p99_limit_s: float | None = None) -> Capacity:
    """The answers of the chosen model."""
    if choice.refusal or choice.chosen is None or choice.chosen.ensemble is None:
        return Capacity(
            saturation_users=None, most_rate=None, users_within_p99=None, p99_limit_s=p99_limit_s
        )
    found = choice.chosen.ensemble
    within = None
    if p99_limit_s is not None:
        within = users_within(choice, p99_limit_s)
    return Capacity(
        saturation_users=found.of(lambda fitted: fitted.saturation),
        most_rate=found.of(lambda fitted: fitted.most),
        users_within_p99=within,
        p99_limit_s=p99_limit_s,
    )


def _p99_model(fitted: Fitted, sweep: Sweep, users: int) -> float:
    """The 99th percentile of a queue with the fitted demand and delay."""
    servers = sweep.servers.get(SERVER, 1)
    service_s = servers / fitted.most
    delay_s = fitted.parameters.get("delay_s", 0.0)
    return queueing.repair_response_quantile(
        0.99, users, servers, service_s, sweep.think_s + delay_s
    )


def users_within(choice: Choice, limit_s: float) -> Interval | None:
    """The largest number of users whose 99th percentile is within the limit.

    The queue's 99th percentile is scaled to the measured ones, since real service times are not
    exponential. The interval comes from the scatter of that scale. None when no percentile was
    measured, or the model has no queue.
    """
    sweep = choice.training
    found = choice.chosen.ensemble if choice.chosen else None
    measured = [p for p in sweep.points if p.p99_s]
    if found is None or not measured or not np.isfinite(found.fitted.most):
        return None
    model_s = {p.users: _p99_model(found.fitted, sweep, p.users) for p in measured}
    scales = np.array([(p.p99_s or 0.0) / model_s[p.users] for p in measured])
    low, middle, high = np.quantile(scales, (0.1, 0.5, 0.9))

    def most(scale: float) -> float:
        return float(_most_users(lambda n: scale * _p99_model(found.fitted, sweep, n) <= limit_s))

    return interval(most(middle), np.array([most(high), most(low)]))


def _most_users(fits: Callable[[int], bool]) -> int:
    """The largest number for which `fits` holds, by doubling and halving; 0 when none."""
    if not fits(1):
        return 0
    low, high = 1, 2
    while fits(high):
        low, high = high, high * 2
        if high > USERS_SEARCHED_MAX:
            return low
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


@dataclass(frozen=True, kw_only=True)
class Limit:
    """The limit that a resource sets."""

    resource: str
    demand_s: float
    servers: int
    most_rate: float  # m/D
    used: float  # utilisation at the highest load measured


def limits(sweep: Sweep) -> list[Limit]:
    """Every measured resource, the bottleneck (the largest D/m) first."""
    found = []
    last = [p for p in sweep.points if p.users == sweep.levels[-1]] if sweep.points else []
    for name, servers in sweep.servers.items():
        try:
            demand_s = float(demand_of(sweep, name).at(sweep.users[-1:])[0])
        except CannotFitError:
            continue
        station = Station(name=name, demand_s=demand_s, servers=servers)
        found.append(
            Limit(
                resource=name,
                demand_s=demand_s,
                servers=servers,
                most_rate=1 / station.share_s,
                used=float(np.mean([sweep.utilisation(p, name) for p in last])),
            )
        )
    return sorted(found, key=lambda limit: limit.most_rate)


def bottleneck_sentence(sweep: Sweep) -> str:
    """Names the resource that saturates first, and whether it was seen to saturate."""
    found = limits(sweep)
    if not found:
        return "No service demand was measured, so the bottleneck cannot be named."
    first = found[0]
    of = f" of {first.servers} cores" if first.servers > 1 else ""
    text = (
        f"The bottleneck is the {first.resource}: {first.demand_s * 1e6:.1f} µs of it for each "
        f"request{of}, so at most {first.most_rate:,.0f} requests per second"
    )
    if first.used >= SATURATED:
        return f"{text}. It was saturated ({first.used:.0%})."
    return f"{text}. At the highest load measured it was busy for {first.used:.0%} of the time."
