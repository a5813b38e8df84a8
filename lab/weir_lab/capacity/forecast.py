# SPDX-License-Identifier: MIT
"""The forecast: a weighted mean of the models, and its 95 % band.

Forward chaining gives the weights. Every model is fitted to the first half of the training levels
and predicts the others, then to a little more of them, and so on. A model whose predictions were
nearer to these later levels has more weight. A model that misses the last training levels by more
than their scatter has none. The forecast is the weighted mean of the logarithms.

The band covers a single future measurement. It has these parts: the scatter of runs, the error of
the height at the last levels, the disagreement of the models, a drift that grows with the distance
from the last level, and the error of the trends of the demands.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from weir_lab.capacity import queueing
from weir_lab.capacity.curves import CannotFitError, Fitted
from weir_lab.capacity.mechanisms import (
    DEMAND_FADING,
    DEMAND_SLOPE_USUAL,
    DRIFT,
    HALF,
    LAST,
    MECHANISMS,
    Demand,
    cuts,
    demands,
    from_demands,
    highest,
    roof,
    saturated_limit,
    tail,
)
from weir_lab.capacity.queueing import FloatArray
from weir_lab.capacity.sweep import Sweep, centres
from weir_lab.capacity.trend import SCATTER_LEAST, Trend, drift, part_of, trend

TEMPERATURE = 0.01  # a model that is further off by this has 1/e of the weight
LOSS_MOST = 0.5
MISFIT_MIN = 0.02
MISFIT_SCATTERS = 2.0
WEIGHT_LEAST = 0.02
DRIFT_RESPONSE = 0.05  # standard deviation by log(users/last), as DRIFT is of throughput
EXPONENTIAL = float(np.log(100))  # the 99th percentile of an exponential distribution, by its mean
RATIO_SLOPE_USUAL, RATIO_FADING = 0.2, 1.5  # of the ratio of percentile and mean
KNEE_EFFICIENCY = 0.85  # of the best throughput per user; below, the knee has begun
BLIND, BLIND_RESPONSE = 0.25, 0.5  # of the growth beyond the last level, where no CPU is known
GROWS = 0.5  # elasticity of throughput by users
THINKING_COUNTS = 2.0  # times as much drift, where the response time is a small part of a cycle
RESPONSE_COUNTS = 0.1  # of the error of the response time, where users think
TAIL = 6  # degrees of freedom of Student's t: runs are disturbed more often than a normal law says
REACH = float(stats.t.ppf(0.975, TAIL) / np.sqrt(TAIL / (TAIL - 2)))  # standard deviations, 95 %


@dataclass(frozen=True, kw_only=True)
class Part:
    """A model of the combination."""

    name: str
    fitted: Fitted | None
    weight: float = 0.0
    loss: float = float("nan")  # mean relative error on the later training levels
    why_not: str = ""


def _without_noise(sweep: Sweep) -> float:
    """The scatter of one run at the last levels, around their trend."""
    end = tail(sweep, HALF)
    return trend(end.users, end.rates).scatter


def _losses(sweep: Sweep) -> Mapping[str, list[float]]:
    found: dict[str, list[float]] = {name: [] for name in MECHANISMS}
    for before, after in cuts(sweep):
        users, rates = centres(after, after.rates)
        _, responses = centres(after, after.responses)
        last = np.array([float(before.levels[-1])])
        for name, fit in MECHANISMS.items():
            try:
                fitted = fit(before)
            except CannotFitError:
                continue
            off = np.log(fitted.predict(users) / rates)
            loss = float(np.mean(np.abs(off)))
            if sweep.think_s > 0:
                more_s = users / fitted.predict(users) - last / fitted.predict(last)
                times_s = _base_s(before, users) + np.maximum(0.0, more_s)
                apart = float(np.mean(np.abs(np.log(times_s / responses))))
                loss += RESPONSE_COUNTS * apart
            found[name].append(min(LOSS_MOST, loss))
    return found


def _base_s(sweep: Sweep, users: FloatArray) -> FloatArray:
    """The response time without further queueing: as at the last levels, or falling as there."""
    end = tail(sweep, HALF)
    here = trend(end.users, end.responses)
    slope = min(0.0, here.shrunk(DEMAND_SLOPE_USUAL))
    return here.at(users, slope=slope, fading=DEMAND_FADING)


def _ratio(sweep: Sweep) -> Trend:
    """The trend of 99th percentile / mean at the last levels."""
    end = tail(sweep, HALF)
    return trend(end.users, end.tails / end.responses)


def _ratio_drift(sweep: Sweep) -> float:
    """How far the slope of this ratio may be off beyond the last level: a standard deviation.

    Forward chaining says how far it was off within the training levels. A server whose ratio fell
    and then rose, or fell and then stayed, may turn again.
    """
    found = []
    for before, after in cuts(sweep):
        seen = _ratio(before)
        users, tails = centres(after, after.tails)
        ratios = tails / centres(after, after.responses)[1]
        slope = seen.shrunk(RATIO_SLOPE_USUAL)
        found.append(seen.slope_off(users, ratios, slope=slope, fading=RATIO_FADING))
    return drift(RATIO_SLOPE_USUAL, found)


def _misfit(sweep: Sweep, fitted: Fitted) -> float:
    end = tail(sweep, LAST)
    users, rates = centres(end, end.rates)
    return float(np.mean(np.abs(np.log(fitted.predict(users) / rates))))


def parts(sweep: Sweep) -> list[Part]:
    """The models with their weights, which sum to 1."""
    scatter = _without_noise(sweep)
    losses = _losses(sweep)
    found: list[Part] = []
    for name, fit in MECHANISMS.items():
        try:
            fitted = fit(sweep)
        except CannotFitError as error:
            found.append(Part(name=name, fitted=None, why_not=str(error)))
            continue
        off = _misfit(sweep, fitted)
        if off > max(MISFIT_MIN, MISFIT_SCATTERS * scatter):
            why = f"it misses the last training levels by {off:.0%}"
            found.append(Part(name=name, fitted=None, why_not=why))
            continue
        known = losses[name]
        found.append(
            Part(name=name, fitted=fitted, loss=float(np.mean(known)) if known else float("nan"))
        )
    return _weighed(found, max(TEMPERATURE, scatter))


def _weighed(found: Sequence[Part], temperature: float) -> list[Part]:
    fits = [p for p in found if p.fitted]
    seen = [p.loss for p in fits if np.isfinite(p.loss)]
    least = min(seen, default=0.0)
    raw = {
        p.name: float(np.exp(-((p.loss if np.isfinite(p.loss) else least) - least) / temperature))
        for p in fits
    }
    total = sum(raw.values())
    weights = {name: w / total for name, w in raw.items() if w / total >= WEIGHT_LEAST}
    total = sum(weights.values())
    return [
        Part(
            name=p.name,
            fitted=p.fitted,
            weight=weights.get(p.name, 0.0) / total if total else 0.0,
            loss=p.loss,
            why_not=p.why_not,
        )
        for p in found
    ]


@dataclass(frozen=True, kw_only=True)
class Band:
    """A quantity against users, with the 95 % band of a single future measurement."""

    users: FloatArray
    value: FloatArray
    low: FloatArray
    high: FloatArray
    deviation: FloatArray  # relative standard deviation of a single measurement


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """The forecast of throughput, mean response time and 99th percentile for any users."""

    training: Sweep
    parts: Sequence[Part]
    scatter: float  # of one run's throughput at the last levels, relative
    limit: float  # m/D as measured at the highest loads, where that resource was saturated
    known: Sequence[Demand]
    gap_s: float  # the part of a cycle that is neither think nor response time

    @property
    def last(self) -> float:
        """The highest training level."""
        return float(self.training.levels[-1])

    def models(self, users: FloatArray) -> FloatArray:
        """The throughput that each model with a weight predicts, one row each.

        A model that knows no CPU may grow for ever where no knee was seen. So each is bounded by
        m/D, along the trend of D where the resource was not saturated.
        """
        rows = [p.fitted.predict(users) for p in self.parts if p.fitted and p.weight]
        growing = roof([d for d in self.known if not d.is_saturated], users)
        return np.minimum(rows, np.minimum(self.limit, growing))

    @property
    def most(self) -> float:
        """No number of users beyond the training levels has a higher throughput."""
        rows = np.array([p.fitted.most for p in self.parts if p.fitted and p.weight])
        growing = highest([d for d in self.known if not d.is_saturated], self.last)
        return float(np.exp(self.weights @ np.log(np.minimum(rows, min(self.limit, growing)))))

    @property
    def weights(self) -> FloatArray:
        """The weights of these models."""
        return np.array([p.weight for p in self.parts if p.fitted and p.weight])

    def rates(self, users: FloatArray) -> FloatArray:
        """Throughput: within the training levels as measured, beyond them by the models."""
        levels, measured = centres(self.training, self.training.rates)
        joint = part_of(self.training.levels, LAST)[0]
        found = np.exp(self.weights @ np.log(self.models(users)))
        inside = np.exp(np.interp(np.log(users), np.log(levels), _smooth(np.log(measured))))
        fewer = np.minimum(1.0, users / levels[0])  # users below the first level delay nobody more
        return np.where(users < joint, inside * fewer, found)

    def rate(self, users: FloatArray) -> Band:
        """Throughput with its band."""
        end = tail(self.training, LAST)
        found = trend(end.users, end.rates)
        height = found.scatter / np.sqrt(len(end.points))
        value = self.rates(users)
        blind = BLIND * np.log(np.maximum(1.0, value / self.rates(np.array([self.last]))))
        more = np.hypot(blind if self.is_blind else 0.0, self._from_demands(users))
        errors = (self.scatter, height, self._drift(users, value))
        return self._band(users, value, self.models(users), errors, more=more)

    def _drift(self, users: FloatArray, rates: FloatArray) -> FloatArray:
        """Of throughput. A cycle of users who think can only drift in its other part."""
        waits = np.clip(1 - (self.training.think_s + max(0.0, self.gap_s)) * rates / users, 0, 1)
        return np.minimum(DRIFT, self._drift_response() * waits)

    def _drift_response(self) -> float:
        cycle_s = self.last / float(self.rates(np.array([self.last]))[0])
        return float(DRIFT_RESPONSE * (1 + THINKING_COUNTS * self.training.think_s / cycle_s))

    def _from_demands(self, users: FloatArray) -> FloatArray:
        """The error that the trends of the demands cause beyond the last level."""
        found = np.zeros(len(users))
        over = users > self.last
        if self.known and np.any(over):
            found[over] = from_demands(self.training, self.known, users[over])
        return found

    @property
    def is_blind(self) -> bool:
        """Whether throughput still grows with users, and no CPU says for how long."""
        end = tail(self.training, LAST)
        return not self.training.has_demand() and trend(end.users, end.rates).slope > GROWS

    def response(self, users: FloatArray) -> Band:
        """The mean response time with its band."""
        return self._times(users, self._drift_response() + (BLIND_RESPONSE if self.is_blind else 0))

    def p99(self, users: FloatArray) -> Band | None:
        """The 99th percentile of the response time; None where it was not measured.

        It begins at the mean multiplied by the ratio of both, with the trend of this ratio. Two
        rules say what the time adds that users wait longer than at the last level. As measured, it
        has the same ratio, and at most that of an exponential distribution: larger ratios come from
        rare disturbances, which do not grow with the queue. As a queue, it varies like the length
        of a closed queue. The second rule counts where the training has not seen the knee.
        """
        sweep = self.training
        if not all(p.p99_s for p in sweep.points):
            return None
        mean, end = self.response(users), tail(sweep, HALF)
        ratio = _ratio(sweep)
        times = ratio.at(users, slope=ratio.shrunk(RATIO_SLOPE_USUAL), fading=RATIO_FADING)
        last_s = float(self.response(np.array([self.last])).value[0])
        longer_s = np.maximum(0.0, mean.value - last_s)
        begun_s = times * (mean.value - longer_s)
        most = np.minimum(times, EXPONENTIAL)
        stretched = queueing.stretch(longer_s, self.rates(users), sweep.think_s + self.gap_s)
        rows = begun_s + np.array([most, np.minimum(most, stretched)]) * longer_s
        levels, middle = centres(sweep, sweep.tails)
        inside = np.exp(np.interp(np.log(users), np.log(levels), np.log(middle)))
        weights = np.array([self.knee_seen, 1 - self.knee_seen])
        value = np.where(users > self.last, np.exp(weights @ np.log(rows)), inside)
        found = trend(end.users, end.tails)
        off = np.maximum(np.hypot(mean.deviation, ratio.scatter), found.scatter)
        return self._band(
            users, value, rows, (0.0, 0.0, _ratio_drift(sweep)), more=off, weights=weights
        )

    @property
    def knee_seen(self) -> float:
        """1 where the training ends past the knee, 0 where users do not delay each other there.

        Users who think may delay each other by chance, long before a CPU is full.
        """
        if self.training.think_s > 0 and self.known and not any(d.is_saturated for d in self.known):
            return 0.0
        levels, rates = centres(self.training, self.training.rates)
        lost = 1 - float(rates[-1] / levels[-1] / (rates / levels).max())
        return min(1.0, lost / (1 - KNEE_EFFICIENCY))

    def _times(self, users: FloatArray, drifting: float) -> Band:
        """Mean response times: at the last level as measured, then by Little's law.

        N = X (R + Z), so that a further user adds to R what it adds to N/X. X is the forecast of
        throughput, so that no two forecasts contradict each other.
        """
        sweep = self.training
        levels, middle = centres(sweep, sweep.responses)
        end = tail(sweep, LAST)
        here = trend(end.users, end.responses)
        last = np.array([self.last])
        begun_s = _base_s(sweep, users)
        models = begun_s + np.maximum(0.0, users / self.models(users) - last / self.models(last))
        found = begun_s + np.maximum(0.0, users / self.rates(users) - last / self.rates(last))
        inside = np.exp(np.interp(np.log(users), np.log(levels), np.log(middle)))
        value = np.where(users > self.last, found, inside)
        stretched = users / self.rates(users) / value  # an error of X is so much larger in R
        return self._band(
            users,
            value,
            models,
            (here.scatter, here.level_error, drifting),
            more=self._from_demands(users) * stretched,
        )

    def _band(
        self,
        users: FloatArray,
        value: FloatArray,
        models: FloatArray,
        errors: tuple[float, float, FloatArray | float],
        more: FloatArray | float = 0.0,
        weights: FloatArray | None = None,
    ) -> Band:
        scatter, height, drifting = errors
        ahead = np.log(np.maximum(users, self.last) / self.last)
        apart = np.log(models / value)
        weights = self.weights if weights is None else weights
        between = np.where(ahead > 0, np.sqrt(weights @ apart**2), 0.0)
        squares = (
            max(scatter, SCATTER_LEAST) ** 2
            + height**2
            + (drifting * ahead) ** 2
            + between**2
            + np.asarray(more) ** 2
        )
        deviation = np.sqrt(squares)
        return Band(
            users=users,
            value=value,
            low=value * np.exp(-REACH * deviation),
            high=value * np.exp(REACH * deviation),
            deviation=deviation,
        )


def _smooth(values: FloatArray) -> FloatArray:
    """Each value averaged with its neighbours; the ends are kept."""
    if len(values) < 3:
        return values
    inner = (values[:-2] + 2 * values[1:-1] + values[2:]) / 4
    return np.concatenate([values[:1], inner, values[-1:]])


def forecast(sweep: Sweep) -> Forecast:
    """The forecast from valid training points.

    Raises:
        CannotFitError: no model describes the points.
    """
    found = parts(sweep)
    if not any(p.weight for p in found):
        raise CannotFitError("no model describes the training points")
    gaps = [p.gap_s(sweep.think_s) for p in tail(sweep, LAST).points]
    return Forecast(
        training=sweep,
        parts=found,
        scatter=_without_noise(sweep),
        limit=saturated_limit(sweep),
        known=demands(sweep),
        gap_s=float(np.median(gaps)),
    )
