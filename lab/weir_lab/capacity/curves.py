# SPDX-License-Identifier: MIT
"""The candidates: curves of throughput against users, each fitted to the training points.

There are three kinds. A *baseline* is for comparison and is never chosen. A *bound* limits the
throughput. A *mechanism* explains why the curve bends; one mechanism is chosen (choice.py).

Fits minimise relative errors, so a level of one user counts as much as a level of a thousand.
Beyond ERROR_USUAL errors count linearly, so that a disturbed run does not bend the curve.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import lmfit
import numpy as np
from scipy import stats

from weir_lab.capacity import queueing
from weir_lab.capacity.queueing import FloatArray, Station
from weir_lab.capacity.sweep import GENERATOR, SERVER, Sweep

BASELINE, BOUND, MECHANISM = "baseline", "bound", "mechanism"
LINEAR, CONSTANT = "linear", "constant"  # the baselines that predictions are compared with
USL_LEVELS_MIN = 6
SLOPE_SIGNIFICANT = 0.01
ERROR_USUAL = 0.03  # relative, of a run that nothing disturbed
MEDIAN_ERROR = 1.25 * 1.4826  # median absolute deviation -> standard error of the median
LEVELLED_BY = 3  # the last third of the levels decides the height of the curve
MVA_USERS_MAX = 500  # the recursion computes every smaller number of users, too


class CannotFitError(Exception):
    """The points are too few for this model; the message gives the reason."""


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """A candidate with its parameters."""

    parameters: Mapping[str, float]
    fitted: int  # the number of parameters fitted to rates
    predict: Callable[[FloatArray], FloatArray]
    most: float  # the highest throughput that it predicts
    saturation: float  # N*, or the users at its maximum; NaN where it has neither
    has_peak: bool = False  # throughput falls beyond its saturation


@dataclass(frozen=True, kw_only=True)
class Model:
    """A candidate."""

    name: str
    kind: str
    fit: Callable[[Sweep], Fitted]
    anchored: bool = False  # uses measured service demand: may be chosen before the knee is seen


@dataclass(frozen=True, kw_only=True)
class Demand:
    """The service demand of a resource: a + b/N.

    One wake-up can serve several requests, so the demand falls towards `a` as users grow. Where
    threads disturb each other, it rises towards `a`.
    """

    limit_s: float
    extra_s: float

    def at(self, users: FloatArray) -> FloatArray:
        """Seconds for this many users."""
        return np.asarray(self.limit_s + self.extra_s / users)


def demand_of(sweep: Sweep, resource: str = SERVER) -> Demand:
    """The measured demand; its dependence on users only where that is significant."""
    if not sweep.has_demand(resource):
        raise CannotFitError(f"the service demand of the {resource} was not measured")
    users, demands = sweep.users, sweep.demands(resource)
    if len(set(users)) >= 3:
        line = stats.linregress(1 / users, demands)
        if line.pvalue < SLOPE_SIGNIFICANT and line.intercept > 0:
            return Demand(limit_s=float(line.intercept), extra_s=float(line.slope))
    return Demand(limit_s=float(np.median(demands)), extra_s=0.0)


def levelled(fitted: Fitted, sweep: Sweep) -> Fitted:
    """The same curve, moved towards the measurements at the highest training loads.

    A mechanism predicts the shape of the curve beyond these loads, and the measurements give its
    height there. Otherwise costs that the mechanism ignores (interrupts, shared wake-ups) would
    bias all predictions. The shift depends on the certainty of the difference: a difference within
    its own standard error hardly moves the curve.
    """
    last = sweep.levels[len(sweep.levels) * (LEVELLED_BY - 1) // LEVELLED_BY :]
    seen = np.isin(sweep.users, last)
    off = sweep.rates[seen] / fitted.predict(sweep.users[seen]) - 1
    middle = float(np.median(off))
    error = MEDIAN_ERROR * float(np.median(np.abs(off - middle))) / np.sqrt(len(off))
    if not np.isfinite(middle) or middle == 0 or middle <= -1:
        return fitted
    factor = 1 + middle * middle**2 / (middle**2 + error**2)
    return replace(
        fitted,
        predict=lambda users: fitted.predict(users) * factor,
        most=fitted.most * factor,
        saturation=fitted.saturation if fitted.has_peak else fitted.saturation * factor,
    )


def _polynomial(sweep: Sweep, degree: int) -> Fitted:
    if len(sweep.levels) <= degree:
        raise CannotFitError(f"needs {degree + 1} levels of load")
    line = np.polynomial.Polynomial.fit(sweep.users, sweep.rates, degree).convert()
    coefficients = {f"c{i}": float(c) for i, c in enumerate(line.coef)}
    return Fitted(
        parameters=coefficients,
        fitted=degree + 1,
        predict=lambda users: np.asarray(line(users)),
        most=float("inf"),
        saturation=float("nan"),
    )


def linear(sweep: Sweep) -> Fitted:
    """Ordinary least squares, as one of the source documents used it."""
    return _polynomial(sweep, 1)


def quadratic(sweep: Sweep) -> Fitted:
    """A parabola."""
    return _polynomial(sweep, 2)


def constant(sweep: Sweep) -> Fitted:
    """The throughput of the last level, for all loads."""
    if not sweep.points:
        raise CannotFitError("there is no point")
    last = sweep.levels[-1]
    rate = float(np.mean([p.rate for p in sweep.points if p.users == last]))
    return Fitted(
        parameters={"rate": rate},
        fitted=1,
        predict=lambda users: np.full(len(users), rate),
        most=rate,
        saturation=float("nan"),
    )


def _first_response_s(sweep: Sweep) -> float:
    first = sweep.levels[0]
    return float(np.median([p.response_s for p in sweep.points if p.users == first]))


def _bounds_stations(sweep: Sweep) -> tuple[list[Station], float]:
    """The server as a station; the rest of the first response time as a delay."""
    demand_s = float(np.median(demand_of(sweep).at(sweep.users[-1:])))
    stations = [Station(name=SERVER, demand_s=demand_s, servers=sweep.servers.get(SERVER, 1))]
    return stations, sweep.think_s + max(0.0, _first_response_s(sweep) - demand_s)


def asymptotic(sweep: Sweep) -> Fitted:
    """min(N/(R0+Z), m/D): two numbers from low load, nothing fitted."""
    stations, delay_s = _bounds_stations(sweep)
    return Fitted(
        parameters={"demand_s": stations[0].demand_s, "delay_s": delay_s},
        fitted=0,
        predict=lambda users: queueing.asymptotic_rate(users, stations, delay_s),
        most=1 / stations[0].share_s,
        saturation=queueing.saturation_users(stations, delay_s),
    )


def balanced(sweep: Sweep) -> Fitted:
    """The middle of the balanced-job bounds."""
    stations, delay_s = _bounds_stations(sweep)

    def predict(users: FloatArray) -> FloatArray:
        low, high = queueing.balanced_rate(users, stations, delay_s)
        return np.asarray((low + high) / 2)

    return Fitted(
        parameters={"demand_s": stations[0].demand_s, "delay_s": delay_s},
        fitted=0,
        predict=predict,
        most=1 / stations[0].share_s,
        saturation=queueing.saturation_users(stations, delay_s),
    )


def _minimise(
    sweep: Sweep,
    starts: Mapping[str, tuple[float, float, float]],
    predict: Callable[[FloatArray, Mapping[str, float]], FloatArray],
) -> dict[str, float]:
    """Least squares of relative errors; each parameter has a start and bounds."""
    users, rates = sweep.users, sweep.rates
    if len(users) <= len(starts):
        raise CannotFitError(f"{len(starts)} parameters need more than {len(users)} points")
    parameters = lmfit.Parameters()
    for name, (start, low, high) in starts.items():
        parameters.add(name, value=min(max(start, low), high), min=low, max=high)

    def residual(now: lmfit.Parameters) -> FloatArray:
        return np.asarray(predict(users, now.valuesdict()) / rates - 1)

    done = lmfit.minimize(
        residual,
        parameters,
        method="least_squares",
        calc_covar=False,
        loss="soft_l1",
        f_scale=ERROR_USUAL,
    )
    return {name: float(value) for name, value in done.params.valuesdict().items()}


def _delay_start(sweep: Sweep, demand_s: float) -> tuple[float, float, float]:
    """The start of the search for the delay: the unexplained part of the first cycle."""
    first = sweep.levels[0]
    cycle_s = float(np.median([p.users / p.rate for p in sweep.points if p.users == first]))
    longest_s = max(cycle_s, 1e-9)
    return max(cycle_s - sweep.think_s - demand_s, 1e-3 * longest_s), 0.0, 2 * longest_s


def mean_value(sweep: Sweep) -> Fitted:
    """Exact MVA over the server's and the generator's CPU as measured; a fixed delay is fitted."""
    if sweep.users.max() > MVA_USERS_MAX:
        raise CannotFitError(f"the recursion takes too long for more than {MVA_USERS_MAX} users")
    demands = {SERVER: demand_of(sweep)}
    if sweep.has_demand(GENERATOR):
        demands[GENERATOR] = demand_of(sweep, GENERATOR)
    far = sweep.users.max() * 10

    def stations(users: float) -> list[Station]:
        return [
            Station(
                name=name,
                demand_s=float(demand.at(np.array([users]))[0]),
                servers=sweep.servers.get(name, 1),
            )
            for name, demand in demands.items()
        ]

    settled = all(demand.extra_s == 0 for demand in demands.values())

    def predict(users: FloatArray, now: Mapping[str, float]) -> FloatArray:
        think_s = sweep.think_s + now["delay_s"]
        if settled:
            return queueing.mva_rate(users, stations(1.0), think_s)
        each = {n: queueing.mva_rate(np.array([n]), stations(n), think_s)[0] for n in set(users)}
        return np.array([each[n] for n in users])

    total_s = sum(station.demand_s for station in stations(1.0))
    found = _minimise(sweep, {"delay_s": _delay_start(sweep, total_s)}, predict)
    last = stations(float(far))
    return Fitted(
        parameters={**found, **{f"demand_s of {s.name}": s.demand_s for s in last}},
        fitted=1,
        predict=lambda users: predict(users, found),
        most=1 / queueing.bottleneck(last).share_s,
        saturation=queueing.saturation_users(last, sweep.think_s + found["delay_s"]),
    )


def _repair(
    sweep: Sweep, demand: Demand | None, starts: dict[str, tuple[float, float, float]]
) -> Fitted:
    servers = sweep.servers.get(SERVER, 1)

    def predict(users: FloatArray, now: Mapping[str, float]) -> FloatArray:
        service_s = demand.at(users) if demand else now["service_s"]
        return queueing.repair_rate(users, servers, service_s, sweep.think_s + now["delay_s"])

    found = _minimise(sweep, starts, predict)
    service_s = demand.limit_s if demand else found["service_s"]
    station = Station(name=SERVER, demand_s=service_s, servers=servers)
    return Fitted(
        parameters={**found, "service_s": service_s},
        fitted=len(starts),
        predict=lambda users: predict(users, found),
        most=1 / station.share_s,
        saturation=queueing.saturation_users([station], sweep.think_s + found["delay_s"]),
    )


def repair_measured(sweep: Sweep) -> Fitted:
    """M/M/m//N with the service demand as measured; a fixed delay is fitted."""
    demand = demand_of(sweep)
    starts = {"delay_s": _delay_start(sweep, demand.limit_s + demand.extra_s)}
    return _repair(sweep, demand, starts)


def repair_fitted(sweep: Sweep) -> Fitted:
    """M/M/m//N with service time and delay both fitted."""
    if len(sweep.levels) < 3:
        raise CannotFitError("needs 3 levels of load")
    service_s = sweep.servers.get(SERVER, 1) / float(sweep.rates.max())
    starts = {
        "service_s": (service_s, service_s * 1e-3, service_s * 10),
        "delay_s": _delay_start(sweep, service_s),
    }
    return _repair(sweep, None, starts)


def usl_rate(users: FloatArray, gamma: float, alpha: float, beta: float) -> FloatArray:
    """Gunther's Universal Scalability Law."""
    return np.asarray(gamma * users / (1 + alpha * (users - 1) + beta * users * (users - 1)))


def usl(sweep: Sweep) -> Fitted:
    """Contention and coherency reduce throughput as users grow; there is no think time."""
    if len(sweep.levels) < USL_LEVELS_MIN:
        raise CannotFitError(f"needs {USL_LEVELS_MIN} levels of load")
    gamma = float((sweep.rates / sweep.users).max())
    starts = {
        "gamma": (gamma, gamma * 1e-2, gamma * 1e2),
        "alpha": (0.01, 0.0, 1.0),
        "beta": (1e-4, 0.0, 1.0),
    }

    def predict(users: FloatArray, now: Mapping[str, float]) -> FloatArray:
        return usl_rate(users, now["gamma"], now["alpha"], now["beta"])

    found = _minimise(sweep, starts, predict)
    if found["beta"] > 1e-12:
        peak = np.sqrt(max(0.0, 1 - found["alpha"]) / found["beta"])
        most = float(predict(np.array([max(1.0, peak)]), found)[0])
    else:
        peak = float("nan")
        most = found["gamma"] / found["alpha"] if found["alpha"] > 0 else float("inf")
    return Fitted(
        parameters=found,
        fitted=3,
        predict=lambda users: predict(users, found),
        most=most,
        saturation=float(peak),
        has_peak=True,
    )


# A new model takes three edits. Everything else reads this table: fit, choice, scores, pictures.
#   1. a function here, from a Sweep to a Fitted, that raises CannotFitError where points are few;
#   2. a line below. A model of kind MECHANISM competes for the choice; `anchored` says that the
#      model uses measured service demand and may be chosen before the knee is seen;
#   3. a row of the table in docs/capacity.md, which a test requires.
# A server that only the new model describes belongs into lab/tests/population.py.
MODELS = (
    Model(name=LINEAR, kind=BASELINE, fit=linear),
    Model(name="quadratic", kind=BASELINE, fit=quadratic),
    Model(name=CONSTANT, kind=BASELINE, fit=constant),
    Model(name="asymptotic bounds", kind=BOUND, fit=asymptotic),
    Model(name="balanced-job bounds", kind=BOUND, fit=balanced),
    Model(name="exact MVA", kind=MECHANISM, fit=mean_value, anchored=True),
    Model(name="M/M/m//N, measured demand", kind=MECHANISM, fit=repair_measured, anchored=True),
    Model(name="M/M/m//N, fitted", kind=MECHANISM, fit=repair_fitted),
    Model(name="USL", kind=MECHANISM, fit=usl),
)
