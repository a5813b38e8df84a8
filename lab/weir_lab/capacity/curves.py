# SPDX-License-Identifier: MIT
"""Curves of throughput against users that a forecast is compared with or drawn beside.

A *baseline* is a curve that needs no thought: a straight line, or the last step for ever. A *bound*
limits the throughput. None of them is ever a forecast; see mechanisms.py.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from weir_lab.capacity import queueing
from weir_lab.capacity.queueing import FloatArray, Station
from weir_lab.capacity.sweep import SERVER, Sweep, medians


class CannotFitError(Exception):
    """The model does not apply to these points; the message gives the reason."""


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """A model with its parameters."""

    parameters: Mapping[str, float]
    predict: Callable[[FloatArray], FloatArray]
    most: float  # the highest throughput that it predicts


def linear(sweep: Sweep) -> Fitted:
    """Ordinary least squares, as one of the source documents used it."""
    if len(sweep.levels) < 2:
        raise CannotFitError("needs 2 levels of load")
    line = np.polynomial.Polynomial.fit(sweep.users, sweep.rates, 1).convert()
    return Fitted(
        parameters={f"c{i}": float(c) for i, c in enumerate(line.coef)},
        predict=lambda users: np.asarray(line(users)),
        most=float("inf"),
    )


def constant(sweep: Sweep) -> Fitted:
    """The throughput of the last level, as the median of its runs, for all loads."""
    if not sweep.points:
        raise CannotFitError("there is no point")
    rate = float(medians(sweep, sweep.rates)[1][-1])
    return Fitted(
        parameters={"rate": rate},
        predict=lambda users: np.full(len(users), rate),
        most=rate,
    )


def asymptotic(sweep: Sweep) -> Fitted:
    """min(N/(R0+Z), m/D): the first response time, the last demand, and nothing fitted."""
    if not sweep.has_demand():
        raise CannotFitError(f"the service demand of the {SERVER} was not measured")
    first, last = sweep.levels[0], sweep.levels[-1]
    response_s = float(np.median([p.response_s for p in sweep.points if p.users == first]))
    demand_s = float(np.median([p.demand_s[SERVER] for p in sweep.points if p.users == last]))
    stations = [Station(name=SERVER, demand_s=demand_s, servers=sweep.servers.get(SERVER, 1))]
    delay_s = sweep.think_s + max(0.0, response_s - demand_s)
    return Fitted(
        parameters={"demand_s": demand_s, "delay_s": delay_s},
        predict=lambda users: queueing.asymptotic_rate(users, stations, delay_s),
        most=1 / stations[0].share_s,
    )


def usl_rate(users: FloatArray, gamma: float, alpha: float, beta: float) -> FloatArray:
    """Gunther's Universal Scalability Law."""
    return np.asarray(gamma * users / (1 + alpha * (users - 1) + beta * users * (users - 1)))
