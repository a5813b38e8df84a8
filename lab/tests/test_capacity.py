# SPDX-License-Identifier: MIT
"""Models, forecast, score and answers, on sweeps whose truth is known."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from synthetic import HELD_OUT, TRAINING, repair, sweep
from weir_lab.capacity import answers, curves, findings, mechanisms, queueing, records, trust
from weir_lab.capacity.answers import Need
from weir_lab.capacity.curves import CannotFitError
from weir_lab.capacity.findings import RATE, RESPONSE, Findings
from weir_lab.capacity.forecast import forecast
from weir_lab.capacity.mechanisms import MECHANISMS
from weir_lab.capacity.queueing import FloatArray, Station, response_quantile
from weir_lab.capacity.score import coverage, mape
from weir_lab.capacity.sweep import GENERATOR, SERVER, Point, Sweep, why_void
from weir_lab.capacity.trend import trend
from weir_lab.experiments.pilot import probe_of
from weir_lab.report.comparison import Run

LEVELS = TRAINING + HELD_OUT


def find(
    measured: Sweep, *, p99_limit_s: float | None = None, need: Need | None = None
) -> Findings:
    return findings.find(measured, train_to=TRAINING[-1], p99_limit_s=p99_limit_s, need=need)


@pytest.mark.parametrize("seed", range(3))
def test_the_fitted_queue_recovers_its_parameters(seed: int) -> None:
    noisy = sweep(repair(2, 0.001, 0.006), TRAINING, think_s=0.005, servers=2, seed=seed)
    found = mechanisms.queue_fitted(noisy).parameters
    assert found["servers"] / found["service_s"] == pytest.approx(2000, rel=0.03)


@pytest.mark.parametrize("seed", range(3))
def test_the_scalability_law_recovers_its_parameters(seed: int) -> None:
    noisy = sweep(
        lambda n: curves.usl_rate(n, 1000, 0.05, 0.008),
        TRAINING,
        think_s=0,
        servers=2,
        seed=seed,
        noise=0.01,
    )
    found = mechanisms.usl(noisy).parameters
    assert found["gamma"] == pytest.approx(1000, rel=0.05)
    assert found["beta"] == pytest.approx(0.008, rel=0.2)


def test_the_scalability_law_does_not_bend_within_the_noise() -> None:
    flat = sweep(repair(1, 0.001, 0.0), TRAINING, think_s=0, servers=1, seed=1)
    with pytest.raises(CannotFitError, match="more than its noise"):
        mechanisms.usl(flat)


def test_where_users_add_less_and_no_cpu_is_full_growth_is_not_extrapolated() -> None:
    slow = sweep(
        lambda n: curves.usl_rate(n, 1000, 0.1, 0.0002), LEVELS, think_s=0, servers=1, seed=2
    )
    with pytest.raises(CannotFitError, match="adds less"):
        mechanisms.ray(slow.up_to(20))
    assert find(slow).scores[RATE].forecast.mape < 0.12


def test_a_trend_is_found_and_one_disturbed_run_does_not_change_it() -> None:
    users = np.repeat(np.arange(8.0, 21.0), 2)
    values = 100 * users**-0.3
    values[5] *= 0.5
    found = trend(users, values)
    assert found.slope == pytest.approx(-0.3, abs=0.02)
    ahead = found.at(np.array([1e9]), slope=found.slope, fading=1.0)[0]
    assert ahead == pytest.approx(values[-1] * np.exp(-0.3), rel=0.03)  # the trend has faded


def test_demand_that_falls_is_followed_only_until_the_cpu_is_saturated() -> None:
    def points(rate: float) -> Sweep:
        made = [
            Point(users=n, rate=rate, response_s=0.01, demand_s={SERVER: 1e-3 * n**-0.3})
            for n in TRAINING
        ]
        return Sweep(points=made, think_s=0, servers={SERVER: 1})

    idle = mechanisms.demand(points(100), SERVER)
    assert idle.at(np.array([60.0]))[0] < 0.85 * idle.at(np.array([20.0]))[0]
    busy = mechanisms.demand(points(2400), SERVER)
    assert busy.at(np.array([60.0]))[0] == pytest.approx(busy.at(np.array([20.0]))[0], rel=0.05)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("think_s", [0.0, 0.005, 0.015])
def test_the_forecast_holds_on_loads_that_it_has_not_seen(think_s: float, seed: int) -> None:
    truth = repair(2, 0.001, think_s)
    known: Any = {"think_s": think_s, "servers": 2, "service_s": 0.001}
    found = find(sweep(truth, LEVELS, seed=seed, **known))
    assert found.refusal == ""
    scored = found.scores[RATE]
    assert scored.forecast.mape <= scored.linear / 5
    assert scored.forecast.mape <= scored.constant + 0.01
    assert scored.forecast.coverage >= 0.85
    assert found.scores[RESPONSE].forecast.coverage >= 0.85


def test_where_throughput_clearly_falls_the_forecast_falls() -> None:
    def truth(users: FloatArray) -> FloatArray:
        return curves.usl_rate(users, 1000, 0.03, 0.01)

    found = find(sweep(truth, LEVELS, think_s=0, servers=2, seed=3, noise=0.01))
    assert found.forecast
    assert found.scores[RATE].forecast.mape < 0.08
    weights = {p.name: p.weight for p in found.forecast.parts}
    assert weights["USL"] > 0.5


def test_a_model_that_misses_its_own_training_points_has_no_weight() -> None:
    truth = repair(1, 0.001, 0.0)
    known: Any = {"think_s": 0, "servers": 1, "seed": 4, "noise": 0.01}
    measured = sweep(truth, TRAINING, service_s=0.001, **known)
    wrong = [replace(p, demand_s={SERVER: 1e-3 * (p.users / 20) ** 2}) for p in measured.points]
    found = forecast(Sweep(points=wrong, think_s=0, servers={SERVER: 1}))
    part = next(p for p in found.parts if p.name == "queue, measured demand")
    assert part.weight == 0
    assert "misses the last training levels" in part.why_not


def test_no_forecast_exceeds_the_measured_limit_of_a_saturated_cpu() -> None:
    measured = sweep(repair(1, 0.001, 0.0), LEVELS, think_s=0, servers=1, service_s=0.001, seed=8)
    growing = [replace(p, rate=min(p.rate * p.users**0.01, 1000)) for p in measured.points]
    found = find(Sweep(points=growing, think_s=0, servers={SERVER: 1}))
    assert found.forecast
    most = answers.limits(found.training)[0].most_rate
    assert np.all(found.forecast.rates(np.arange(21.0, 500.0)) <= most * 1.001)
    assert found.capacity.most_rate
    assert found.capacity.most_rate.value <= most * 1.001


def test_the_intervals_of_the_answers_contain_the_truth() -> None:
    training = sweep(
        repair(2, 0.001, 0.005), LEVELS, think_s=0.005, servers=2, service_s=0.001, seed=5
    )
    found = find(training).capacity
    assert found.saturation_users
    assert found.most_rate
    assert found.saturation_users.value == pytest.approx(12, rel=0.1)
    assert found.most_rate.value == pytest.approx(2000, rel=0.04)
    assert found.most_rate.low < found.most_rate.value < found.most_rate.high


def with_p99(measured: Sweep, think_s: float) -> Sweep:
    station = Station(name=SERVER, demand_s=0.001)
    points = [
        replace(p, p99_s=response_quantile(0.99, p.users, station, think_s))
        for p in measured.points
    ]
    return Sweep(points=points, think_s=think_s, servers={SERVER: 1})


def disturbed(levels: Sequence[int], think_s: float, service_s: float) -> Sweep:
    """A queue behind which one request of fifty waits for 10 ms more, whatever the load."""
    often, long_s, draws = 0.02, 0.010, 200_000
    rng = np.random.default_rng(7)
    station = Station(name="server", demand_s=service_s)
    points = []
    for users in levels:
        apart_s = think_s + often * long_s
        rate = float(queueing.repair_rate(np.array([users]), 1, service_s, apart_s)[0])
        present = queueing.lengths(users - 1, station, apart_s)
        ahead = rng.choice(len(present), size=draws, p=present)
        times_s = rng.gamma(ahead + 1, service_s) + long_s * (rng.random(draws) < often)
        points.append(
            Point(
                users=users,
                rate=rate,
                response_s=users / rate - think_s,
                repeat=0,
                p99_s=float(np.quantile(times_s, 0.99)),
                answered=int(rate),
                demand_s={SERVER: service_s},
            )
        )
    return Sweep(points=points, think_s=think_s, servers={SERVER: 1})


def test_rare_disturbances_below_saturation_do_not_grow_with_the_queue() -> None:
    measured = disturbed([*range(200, 1801, 200), 2600, 3200], 0.040, 20e-6)
    seen = findings.find(measured, train_to=1800)
    assert seen.forecast
    last, end = seen.training.points[-1], measured.points[-1]
    assert last.p99_s
    assert end.p99_s
    assert last.p99_s / last.response_s > 10  # the ratio before saturation
    assert end.p99_s / end.response_s < 2  # and after it
    found = seen.forecast.p99(np.array([float(end.users)]))
    assert found
    assert 0.5 * end.p99_s < found.value[0] < 2 * end.p99_s


def test_users_within_a_limit_of_the_99th_percentile() -> None:
    measured = sweep(
        repair(1, 0.001, 0.005), LEVELS, think_s=0.005, servers=1, service_s=0.001, seed=5
    )
    limit_s = response_quantile(0.99, 40, Station(name=SERVER, demand_s=0.001), 0.005)
    found = find(with_p99(measured, 0.005), p99_limit_s=limit_s).capacity.users_within_p99
    assert found
    assert found.value == pytest.approx(40, rel=0.15)
    assert found.low <= 40 <= found.high


def test_the_cores_to_buy_follow_from_the_service_demand() -> None:
    measured = sweep(
        repair(1, 0.001, 0.005), LEVELS, think_s=0.005, servers=1, service_s=0.001, seed=5
    )
    known = with_p99(measured, 0.005)
    one = find(known, need=Need(users=500, think_s=1, p99_s=0.05)).purchase
    assert one
    assert one.cores == 1
    assert one.busy == pytest.approx(0.5, abs=0.05)
    assert 850 < one.ends_at < 1100
    assert one.sentence.startswith("For 500 users who think for 1 s with p99 below 50 ms: 1 core (")
    assert one.sentence.endswith("users; then the CPU.")
    single = replace(one, need=Need(users=1, think_s=1, p99_s=0.05))
    assert single.sentence.startswith(
        "For 1 user who thinks for 1 s with p99 below 50 ms: 1 core ("
    )
    many = find(known, need=Need(users=5000, think_s=1, p99_s=0.05)).purchase
    assert many
    assert many.cores in {5, 6}
    never = find(known, need=Need(users=500, think_s=1, p99_s=0.001)).purchase
    assert never
    assert never.cores is None
    assert "no number of cores is enough" in never.sentence


def test_without_knee_and_cpu_the_band_is_wide_and_nothing_is_said_to_saturate() -> None:
    truth = repair(2, 0.001, 0.1)
    found = find(sweep(truth, LEVELS, think_s=0.1, servers=2, seed=1, noise=0.002))
    assert found.forecast
    assert found.capacity.most_rate is None
    assert found.trust.grade != trust.GREEN
    assert any("the server's CPU is not known" in reason for reason in found.trust.reasons)


def test_two_levels_and_no_points_are_refused() -> None:
    truth = repair(2, 0.001, 0.005)
    known: Any = {"think_s": 0.005, "servers": 2, "service_s": 0.001, "seed": 1}
    few = find(sweep(truth, (1, 20), **known))
    assert few.refusal.startswith("2 valid levels of load are too few")
    one = find(sweep(truth, (1,), **known))
    assert one.refusal.startswith("1 valid level of load is too few")
    assert few.trust.grade == trust.RED
    none = find(Sweep(points=[], think_s=0, servers={SERVER: 1}))
    assert none.refusal


def test_a_busy_generator_is_a_reason_for_doubt_and_not_for_a_void_point() -> None:
    truth = repair(1, 0.001, 0.0)
    measured = sweep(truth, LEVELS, think_s=0, servers=1, seed=1)
    busy = [replace(p, demand_s={SERVER: 6e-4, GENERATOR: 0.95 / p.rate}) for p in measured.points]
    found = find(Sweep(points=busy, think_s=0, servers={SERVER: 1, GENERATOR: 1}))
    assert found.void == []
    assert found.trust.grade == trust.YELLOW
    assert "The generator was the limit" in found.trust.reasons[0]


def test_the_usual_lateness_of_the_generator_voids_no_point_and_an_unusual_one_does() -> None:
    late_s = 5e-5
    points = [
        Point(users=n, rate=n / (1.05e-3 + late_s + 1e-7 * n), response_s=5e-5, answered=1_000_000)
        for n in TRAINING
    ]
    known = Sweep(points=points, think_s=1e-3, servers={SERVER: 1})
    assert all(why_void(known, p) == "" for p in points)
    disturbed = replace(points[9], rate=points[9].rate * 0.9)
    found = Sweep(points=[*points[:9], disturbed, *points[10:]], think_s=1e-3, servers={SERVER: 1})
    assert "Little" in why_void(found, disturbed)


def test_failed_requests_void_a_point_when_they_are_more_than_noise() -> None:
    kept = Point(users=10, rate=1000, response_s=0.005, answered=100_000)
    known = Sweep(points=[kept], think_s=0.005, servers={SERVER: 1})
    assert why_void(known, replace(kept, failed=3)) == ""
    assert "3000 requests failed" in why_void(known, replace(kept, failed=3000))
    assert why_void(known, replace(kept, answered=100, failed=1)) == "1 request failed"


def test_a_late_generator_lengthens_the_think_time() -> None:
    load = {"requests": 100, "server_demand_s": 1e-3, "doubts": [], "rate": 1000, "mean_s": 0.005}
    load |= {"percentiles_s": {}, "generator_cpu_s": 0.01, "failed": 0, "judged": True}
    runs = [
        {"users": 10, "think_s": 0.005, "load": load | {"late_s": late_s}}
        for late_s in (4e-5, 5e-5, 9e-5)
    ]
    found = records.sweep(runs, server_cores=1, generator_cores=1)
    assert found.think_s == pytest.approx(0.00505)


@pytest.mark.parametrize(("demand_s", "warmup_s"), [(0.0, 3.0), (0.0, 0.0), (5e-5, 3.0)])
def test_the_cpu_of_the_warm_up_is_not_that_of_the_measured_requests(
    demand_s: float, warmup_s: float
) -> None:
    """100 requests a second of 50 us each. `weir load` sees no tick of the CPU in 100 of them."""
    load: dict[str, object] = {"requests": 100, "seconds": 1.0, "warmup_s": warmup_s}
    load |= {"rate": 100.0, "mean_s": 1e-3}
    load |= {"percentiles_s": {}, "generator_cpu_s": 0.01, "failed": 0, "doubts": []}
    load |= {"server_demand_s": demand_s, "judged": True}
    run = {"users": 10, "server_cpu_s": 100 * 5e-5 * (1 + warmup_s), "load": load}
    assert records.point(run, 0).demand_s[SERVER] == pytest.approx(5e-5)
    assert probe_of(run, 1, 1).server == pytest.approx(0.005)
    assert Run(work="", server="", round=0, record=run).figure("cpu") == pytest.approx(50)


def test_the_bottleneck_is_called_saturated_only_if_it_was() -> None:
    points = [
        Point(users=n, rate=rate, response_s=n / rate, demand_s={SERVER: 1e-3, GENERATOR: 2e-4})
        for n, rate in ((1, 500.0), (4, 990.0))
    ]
    full = Sweep(points=points[1:], think_s=0, servers={SERVER: 1, GENERATOR: 1})
    assert "bottleneck is the server CPU" in answers.bottleneck_sentence(full)
    assert "It was saturated (99%)" in answers.bottleneck_sentence(full)
    half = Sweep(points=points[:1], think_s=0, servers={SERVER: 1, GENERATOR: 1})
    assert "busy for 50%" in answers.bottleneck_sentence(half)


def test_a_server_whose_cpu_is_not_known_may_be_the_limit() -> None:
    def of(generator_s: float, server_s: float) -> Sweep:
        demand_s = {SERVER: server_s, GENERATOR: generator_s}
        points = [
            Point(users=n, rate=1000.0, response_s=n / 1000, demand_s=demand_s) for n in (1, 4)
        ]
        return Sweep(points=points, think_s=0, servers={SERVER: 1, GENERATOR: 1})

    idle, full = of(6.5e-4, 0.0), of(9.9e-4, 0.0)
    assert answers.first_limit(idle) is None
    assert "cannot be named. The generator CPU was busy for 65%" in answers.bottleneck_sentence(
        idle
    )
    limit = answers.first_limit(full)
    assert limit
    assert limit.resource == GENERATOR
    known = answers.first_limit(of(6.5e-4, 7e-4))
    assert known
    assert known.resource == SERVER
    text = answers.bottleneck_sentence(of(1e-4, 9.871e-4))
    assert "so about 1,010 requests per second" in text


@pytest.mark.parametrize("repeats", [1, 2, 3])
def test_an_interval_has_a_width_for_any_number_of_repeats(repeats: int) -> None:
    truth = repair(1, 0.001, 0.005)
    known: Any = {"think_s": 0.005, "servers": 1, "service_s": 0.001, "repeats": repeats}
    found = find(sweep(truth, TRAINING, seed=2, **known)).capacity
    assert found.most_rate
    assert 0.01 < found.most_rate.width < 0.3


def test_every_model_has_a_row_in_the_documentation() -> None:
    page = Path(__file__).resolve().parent.parent.parent / "docs/capacity.md"
    rows = [line.split("|")[1] for line in page.read_text().splitlines() if line.startswith("| ")]
    assert [name for name in MECHANISMS if not any(name in row for row in rows)] == []


def test_scores_of_known_cases() -> None:
    measured = np.array([10.0, 20.0])
    assert mape(np.array([11.0, 18.0]), measured) == pytest.approx(0.1)
    assert coverage(np.array([9.0, 21.0]), np.array([11.0, 22.0]), measured) == 0.5


def ruined(sweep_of: Sweep, users: int, repeat: int, part: float) -> Sweep:
    """The sweep with one run at a part of its throughput, for no reason that was measured."""
    points = [
        replace(p, rate=p.rate * part, response_s=p.users / (p.rate * part) - sweep_of.think_s)
        if (p.users, p.repeat) == (users, repeat)
        else p
        for p in sweep_of.points
    ]
    return replace(sweep_of, points=points)


@pytest.mark.parametrize("users", [19, 30])
def test_one_ruined_run_of_three_changes_neither_the_forecast_nor_its_score(users: int) -> None:
    calm = sweep(repair(2, 0.001, 0.0), LEVELS, think_s=0, servers=2, seed=1, service_s=0.001)
    before, after = find(calm), find(ruined(calm, users, 1, 0.07))
    assert after.void == []
    error = before.scores[RATE].forecast.mape
    assert after.scores[RATE].forecast.mape == pytest.approx(error, abs=0.02)
    assert after.scores[RESPONSE].forecast.mape < 0.1
    assert after.scores[RATE].constant < 0.1
    assert after.scores[RATE].forecast.width < 0.5


def test_two_runs_without_a_middle_do_not_test_the_forecast() -> None:
    known: Any = {"think_s": 0, "servers": 2, "seed": 1, "repeats": 2, "service_s": 0.001}
    calm = sweep(repair(2, 0.001, 0.0), LEVELS, **known)
    before, after = find(calm), find(ruined(calm, 30, 1, 0.07))
    error = before.scores[RATE].forecast.mape
    assert after.scores[RATE].forecast.mape == pytest.approx(error, abs=0.01)
    assert after.scores[RATE].forecast.coverage < before.scores[RATE].forecast.coverage


def test_fewer_users_than_the_first_level_get_less() -> None:
    truth = repair(1, 0.00002, 0.040)
    known: Any = {"think_s": 0.040, "servers": 1, "service_s": 0.00002, "noise": 0.0}
    found = findings.find(sweep(truth, range(100, 1600, 150), seed=1, **known), train_to=1000)
    assert found.forecast
    few = np.array([1.0, 10.0, 50.0, 100.0])
    assert found.forecast.rates(few) == pytest.approx(truth(few), rel=0.02)
