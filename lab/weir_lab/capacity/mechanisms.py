# SPDX-License-Identifier: MIT
"""The models that a forecast is combined from (forecast.py), each fitted to training points.

Each model describes one reason why throughput bends. All of them are moved to the height of the
measurements at the highest training loads. A model raises CannotFitError where it does not apply.
Examples are a plateau while throughput grows with every user, and a queue of CPUs where no CPU is
known.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import optimize

from weir_lab.capacity import queueing
from weir_lab.capacity.curves import CannotFitError, Fitted, usl_rate
from weir_lab.capacity.queueing import FloatArray, Station
from weir_lab.capacity.sweep import GENERATOR, SERVER, Sweep, centres
from weir_lab.capacity.trend import Trend, drift, part_of, trend

LAST, HALF = 1 / 3, 1 / 2  # of the levels
CUTS = (0.5, 0.65, 0.8)  # of the training levels: they predict the rest of them
CUT_LEVELS_MIN = 4
DRIFT = 0.03  # of a demand, and of the throughput that it limits, by log(users/last)
FLAT_MAX = 0.35  # elasticity of throughput by users; above it, there is no plateau
STEEP_MIN = 0.7  # elasticity; below it, further users add less than those before them
SLOPE_USUAL = 0.10  # of throughput on a plateau, by the logarithm of users
DEMAND_SLOPE_USUAL = 0.5
FADING, DEMAND_FADING = 1.5, 0.5
SATURATED = 0.9  # utilisation: such a CPU sleeps too rarely for wake-ups to matter
BEND_SIGNIFICANT = 2.5  # standard errors
SERVERS_TRIED = (1, 2, 4, 8, 16)
FEWER_SERVERS = 0.9  # of the error: more servers have to fit clearly better
ERROR_USUAL = 0.03  # relative, of a run that nothing disturbed
LEVELS_MIN = 4
FAR = 1e6  # times the last training level: a damped trend has ended there
STEP = 0.05  # of a demand, to see how far the throughput follows it


def tail(sweep: Sweep, part: float) -> Sweep:
    """The points of the last levels."""
    return sweep.above(part_of(sweep.levels, part)[0] - 1)


def cuts(sweep: Sweep) -> Iterator[tuple[Sweep, Sweep]]:
    """The first levels and the rest of them, for forward chaining."""
    levels = sweep.levels
    for part in CUTS:
        seen = levels[: max(1, round(part * len(levels)))]
        before, after = sweep.up_to(seen[-1]), sweep.above(seen[-1])
        if len(seen) >= CUT_LEVELS_MIN and after.points:
            yield before, after


@dataclass(frozen=True, kw_only=True)
class Demand:
    """The service demand of a resource: as measured at each level, then along its trend."""

    name: str
    servers: int
    levels: FloatArray
    measured_s: FloatArray
    trend: Trend
    slope: float
    drift: float  # by how much the slope may be off, a standard deviation
    is_saturated: bool  # at the highest training loads

    def at(self, users: FloatArray) -> FloatArray:
        """Seconds for this many users."""
        inside = np.interp(np.log(users), np.log(self.levels), self.measured_s)
        beyond = self.trend.at(users, slope=self.slope, fading=DEMAND_FADING)
        return np.where(users > self.levels[-1], beyond, inside)

    def error(self, users: FloatArray) -> FloatArray:
        """The relative standard deviation of `at` beyond the last level, where it fades, too."""
        ahead = self.trend.ahead(users, fading=DEMAND_FADING)
        return np.asarray(
            np.where(ahead > 0, np.hypot(self.trend.level_error, self.drift * ahead), 0.0)
        )


def _is_saturated(sweep: Sweep, name: str) -> bool:
    return float(np.median([sweep.utilisation(p, name) for p in sweep.points])) >= SATURATED


def _unsaturated(sweep: Sweep, name: str) -> tuple[Trend, float]:
    """The trend of the demand of a resource that is not saturated, and the slope beyond it."""
    last = tail(sweep, HALF)
    found = trend(last.users, last.demands(name))
    return found, found.shrunk(DEMAND_SLOPE_USUAL)


def _slopes_off(sweep: Sweep, name: str) -> list[float]:
    """How far the slope of a demand was off within the training levels, at each cut."""
    found = []
    for before, after in cuts(sweep):
        seen, slope = _unsaturated(before, name)
        users, later_s = centres(after, after.demands(name))
        found.append(seen.slope_off(users, later_s, slope=slope, fading=DEMAND_FADING))
    return found


def demand(sweep: Sweep, name: str) -> Demand:
    """The measured demand of a resource, and its trend.

    A CPU that is saturated no longer sleeps, so its demand has no wake-ups left to lose. Its
    demand is not expected to fall further.

    Raises:
        CannotFitError: it was not measured at every point.
    """
    if not sweep.has_demand(name):
        raise CannotFitError(f"the service demand of the {name} was not measured")
    found, slope = _unsaturated(sweep, name)
    end = tail(sweep, LAST)
    is_saturated = _is_saturated(end, name)
    if is_saturated:
        found = trend(end.users, end.demands(name))
        slope = max(0.0, found.shrunk(SLOPE_USUAL))
    levels, measured_s = centres(sweep, sweep.demands(name))
    return Demand(
        name=name,
        servers=sweep.servers.get(name, 1),
        levels=levels,
        measured_s=measured_s,
        trend=found,
        slope=slope,
        drift=drift(DRIFT, [] if is_saturated else _slopes_off(sweep, name)),
        is_saturated=is_saturated,
    )


def demands(sweep: Sweep) -> list[Demand]:
    """The measured demands, of the server first."""
    return [demand(sweep, name) for name in (SERVER, GENERATOR) if sweep.has_demand(name)]


def roof(known: Sequence[Demand], users: FloatArray, *, reach: float = 0.0) -> FloatArray:
    """The least m/D of all resources; infinite where none is known.

    With `reach` standard deviations of D it is the upper edge of an interval.
    """
    found = [each.servers / each.at(users) * np.exp(reach * each.error(users)) for each in known]
    return np.min(found, axis=0) if found else np.full(len(users), np.inf)


def highest(known: Sequence[Demand], last: float) -> float:
    """The highest m/D from `last` users on: a trend of D only rises or only falls."""
    return float(roof(known, np.array([last, last * FAR])).max())


def _network(
    known: Sequence[Demand],
    users: FloatArray,
    delay_s: float,
    times: Mapping[str, float] | None = None,
) -> FloatArray:
    """The closed network of the resources, with the demand of each number of users.

    `times` multiplies the demands of some resources.
    """
    rates = []
    for count in users:
        one = np.array([count])
        stations = [
            Station(
                name=d.name,
                demand_s=float(d.at(one)[0]) * (times or {}).get(d.name, 1.0),
                servers=d.servers,
            )
            for d in known
        ]
        rates.append(queueing.network_rate(one, stations, delay_s)[0])
    return np.array(rates)


def follows(known: Sequence[Demand], users: FloatArray, delay_s: float) -> FloatArray:
    """By how many percent throughput falls when a demand grows by one, a row for each resource.

    Far below the knee throughput hardly depends on a demand. Far beyond it, throughput is m/D.
    """
    rows = []
    for each in known:
        more, less = (
            np.log(_network(known, users, delay_s, {each.name: 1 + step})) for step in (STEP, -STEP)
        )
        rows.append((less - more) / np.log((1 + STEP) / (1 - STEP)))
    return np.array(rows)


def from_demands(sweep: Sweep, known: Sequence[Demand], users: FloatArray) -> FloatArray:
    """The relative error of throughput that the errors of the demands cause: a standard deviation.

    Saturated resources are left out: the drift of throughput is theirs.
    """
    levels, rates = centres(sweep, sweep.rates)
    last = levels[-1:]
    delay_s = max(0.0, float(last[0] / rates[-1] - sum(d.at(last)[0] for d in known)))
    errors = [0.0 * users if d.is_saturated else d.error(users) for d in known]
    return np.asarray(np.sqrt(np.sum((follows(known, users, delay_s) * errors) ** 2, axis=0)))


def levelled(sweep: Sweep, predict: Callable[[FloatArray], FloatArray]) -> float:
    """The factor that moves a curve to the measurements of the last third of the levels."""
    last = tail(sweep, LAST)
    return float(np.exp(np.median(np.log(last.rates / predict(last.users)))))


def _cycles(sweep: Sweep) -> FloatArray:
    """The part of each user's cycle that is not thinking, at each point; a positive number."""
    cycle = sweep.users / sweep.rates
    return np.maximum(cycle - sweep.think_s, 1e-3 * cycle)


def plateau(sweep: Sweep) -> Fitted:
    """Throughput no longer grows with users, but drifts: batches grow, or users disturb."""
    last = tail(sweep, LAST)
    found = trend(last.users, last.rates)
    if len(last.levels) < 2 or found.slope > FLAT_MAX + found.slope_error:
        raise CannotFitError("throughput still grows with users")
    slope = found.shrunk(SLOPE_USUAL)
    limit = saturated_limit(sweep)

    def predict(users: FloatArray) -> FloatArray:
        return np.minimum(found.at(users, slope=slope, fading=FADING), limit)

    most = float(predict(np.array([sweep.users.max() * FAR]))[0])
    return Fitted(
        parameters={"level": float(np.exp(found.level)), "slope": slope},
        predict=predict,
        most=max(most, float(np.exp(found.level))),
    )


def saturated_limit(sweep: Sweep) -> float:
    """m/D as measured at the highest loads, of the resources that were saturated there."""
    end = tail(sweep, LAST)
    found = [float("inf")]
    for name in (SERVER, GENERATOR):
        if not sweep.has_demand(name):
            continue
        if _is_saturated(end, name):
            last_s = float(np.exp(trend(end.users, end.demands(name)).level))
            level = float(np.median(end.rates))
            found.append(max(level, sweep.servers.get(name, 1) / last_s))
    return min(found)


def ray(sweep: Sweep) -> Fitted:
    """The asymptotes: every user adds as much as at the last levels, up to m/D."""
    end = tail(sweep, HALF)
    found = trend(end.users, _cycles(end))
    slope = found.shrunk(DEMAND_SLOPE_USUAL)
    known = demands(sweep)
    third = tail(sweep, LAST)
    full = any(each.is_saturated for each in known)
    if not full and trend(third.users, third.rates).slope < STEEP_MIN:
        raise CannotFitError("each further user adds less, and no CPU is saturated")
    levels, inside = centres(sweep, _cycles(sweep))

    def predict(users: FloatArray) -> FloatArray:
        beyond_s = found.at(users, slope=slope, fading=DEMAND_FADING)
        inside_s = np.interp(np.log(users), np.log(levels), inside)
        cycle_s = sweep.think_s + np.where(users > levels[-1], beyond_s, inside_s)
        over = users > levels[-1]
        return np.where(over, np.minimum(users / cycle_s, roof(known, users)), users / cycle_s)

    last = float(levels[-1])
    return Fitted(
        parameters={"slope": slope},
        predict=predict,
        most=highest(known, last) if known else float(predict(np.array([last * FAR]))[0]),
    )


def queue_measured(sweep: Sweep) -> Fitted:
    """A closed network of the CPUs of server and generator, with the demand of each level."""
    known = demands(sweep)
    if not known:
        raise CannotFitError("no service demand was measured")

    def network(users: FloatArray, delay_s: float) -> FloatArray:
        return _network(known, users, sweep.think_s + delay_s)

    end = tail(sweep, HALF)
    levels, rates = centres(end, end.rates)
    longest_s = float(np.max(_cycles(end)))

    def off(delay_s: float) -> float:
        return float(np.abs(np.log(network(levels, delay_s) / rates)).sum())

    found = optimize.minimize_scalar(
        off, bounds=(0.0, longest_s), method="bounded", options={"maxiter": 25}
    )
    delay_s = float(found.x)
    factor = levelled(sweep, lambda users: network(users, delay_s))
    return Fitted(
        parameters={"delay_s": delay_s, "factor": factor},
        predict=lambda users: factor * network(users, delay_s),
        most=factor * highest(known, float(sweep.users.max())),
    )


def _least_squares(
    sweep: Sweep, starts: list[float], predict: Callable[[FloatArray, FloatArray], FloatArray]
) -> tuple[FloatArray, float]:
    """Positive parameters of the least robust error, the last levels first; and that error."""
    levels, rates = centres(sweep, sweep.rates)
    weights = np.sqrt(levels / levels[-1])
    responses = centres(sweep, _cycles(sweep))[1]

    def residual(logs: FloatArray) -> FloatArray:
        predicted = np.maximum(predict(levels, np.exp(logs)), 1e-300)
        off = weights * np.log(predicted / rates)
        if sweep.think_s <= 0:
            return np.asarray(off)
        cycle_s = np.maximum(levels / predicted - sweep.think_s, 1e-9)
        return np.concatenate([off, 0.2 * weights * np.log(cycle_s / responses)])

    done = optimize.least_squares(
        residual, np.log(starts), loss="soft_l1", f_scale=ERROR_USUAL, max_nfev=60
    )
    return np.exp(done.x), float(done.cost)


def queue_fitted(sweep: Sweep) -> Fitted:
    """M/M/k//N with its service time, its delay and its number of servers fitted to rates."""
    if len(sweep.levels) < LEVELS_MIN:
        raise CannotFitError(f"needs {LEVELS_MIN} levels of load")
    most = float(sweep.rates.max())
    delay_s = float(np.median(_cycles(sweep))) / 2
    best: tuple[float, int, FloatArray] | None = None
    for servers in SERVERS_TRIED:

        def repair(users: FloatArray, p: FloatArray, servers: int = servers) -> FloatArray:
            return queueing.repair_rate(users, servers, float(p[0]), sweep.think_s + float(p[1]))

        found, cost = _least_squares(sweep, [servers / most, delay_s], repair)
        if best is None or cost < FEWER_SERVERS * best[0]:
            best = (cost, servers, found)
    assert best is not None
    _, servers, (service_s, delay_s) = best

    def network(users: FloatArray) -> FloatArray:
        return queueing.repair_rate(users, servers, service_s, sweep.think_s + delay_s)

    factor = levelled(sweep, network)
    return Fitted(
        parameters={"service_s": service_s, "delay_s": delay_s, "servers": servers},
        predict=lambda users: factor * network(users),
        most=factor * servers / service_s,
    )


def contention(sweep: Sweep) -> Fitted:
    """Amdahl's law: users contend, and throughput approaches a limit."""
    return _law(sweep, bends=False)


def usl(sweep: Sweep) -> Fitted:
    """Gunther's Universal Scalability Law, where throughput falls by more than its noise."""
    end = tail(sweep, HALF)
    bend = trend(end.users, end.rates)
    if bend.slope > -BEND_SIGNIFICANT * bend.slope_error:
        raise CannotFitError("throughput does not fall by more than its noise")
    return _law(sweep, bends=True)


def _law(sweep: Sweep, *, bends: bool) -> Fitted:
    if len(sweep.levels) < 2 * LEVELS_MIN:
        raise CannotFitError(f"needs {2 * LEVELS_MIN} levels of load")

    def law(users: FloatArray, p: FloatArray) -> FloatArray:
        return usl_rate(users, float(p[0]), float(p[1]), float(p[2]) if bends else 0.0)

    gamma = float((sweep.rates / sweep.users).max())
    found, _ = _least_squares(sweep, [gamma, 0.05, 1e-3] if bends else [gamma, 0.05], law)
    factor = levelled(sweep, lambda users: law(users, found))
    far = np.geomspace(1, sweep.users.max() * 1e3, 400)
    return Fitted(
        parameters=dict(zip(("gamma", "alpha", "beta"), found.tolist(), strict=False)),
        predict=lambda users: factor * law(users, found),
        most=factor * float(law(far, found).max()),
    )


MECHANISMS: Mapping[str, Callable[[Sweep], Fitted]] = {
    "plateau": plateau,
    "asymptotes": ray,
    "queue, measured demand": queue_measured,
    "queue, fitted": queue_fitted,
    "contention": contention,
    "USL": usl,
}
