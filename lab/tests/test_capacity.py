# SPDX-License-Identifier: MIT
"""Fits, choice, score and answers, on sweeps whose truth is known."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from synthetic import HELD_OUT, TRAINING, repair, sweep
from weir_lab.capacity import answers, choice, curves, records
from weir_lab.capacity.bootstrap import ensemble
from weir_lab.capacity.queueing import FloatArray, repair_response_quantile
from weir_lab.capacity.score import crps, mape, skill
from weir_lab.capacity.sweep import GENERATOR, SERVER, Point, Sweep, why_void

DRAWS = 8


@pytest.mark.parametrize("seed", range(3))
def test_the_repair_model_recovers_its_parameters(seed: int) -> None:
    noisy = sweep(repair(2, 0.001, 0.006), TRAINING, think_s=0.005, servers=2, seed=seed)
    found = curves.repair_fitted(noisy).parameters
    assert found["service_s"] == pytest.approx(0.001, rel=0.03)
    assert found["delay_s"] == pytest.approx(0.001, abs=0.0004)


@pytest.mark.parametrize("seed", range(3))
def test_the_scalability_law_recovers_its_parameters(seed: int) -> None:
    noisy = sweep(
        lambda n: curves.usl_rate(n, 1000, 0.05, 0.002),
        TRAINING,
        think_s=0,
        servers=2,
        seed=seed,
        noise=0.01,
    )
    found = curves.usl(noisy).parameters
    assert found["gamma"] == pytest.approx(1000, rel=0.03)
    assert found["alpha"] == pytest.approx(0.05, abs=0.015)
    assert found["beta"] == pytest.approx(0.002, abs=0.0007)


def test_demand_that_falls_as_wake_ups_are_shared_is_found() -> None:
    points = [
        Point(users=n, rate=100, response_s=0.01, demand_s={SERVER: 1e-3 + 1e-3 / n})
        for n in TRAINING
    ]
    found = curves.demand_of(Sweep(points=points, think_s=0, servers={SERVER: 1}))
    assert found.limit_s == pytest.approx(1e-3)
    assert found.extra_s == pytest.approx(1e-3)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("think_s", [0.0, 0.005, 0.015])
def test_the_chosen_model_predicts_loads_that_it_has_not_seen(think_s: float, seed: int) -> None:
    truth = repair(2, 0.001, think_s)
    known: Any = {"think_s": think_s, "servers": 2, "service_s": 0.001}
    found = choice.choose(sweep(truth, TRAINING, seed=seed, **known), draws=DRAWS)
    assert found.refusal == ""
    assert found.chosen
    scores = choice.score_all(found, sweep(truth, HELD_OUT, seed=seed + 100, **known))
    chosen = scores[found.chosen.model.name]
    assert chosen.mape <= scores["linear"].mape / 5
    assert chosen.mape <= scores["constant"].mape * 1.05  # both are noise where it is flat
    assert chosen.coverage >= 0.75


def test_over_many_draws_the_chosen_model_is_no_worse_than_constant() -> None:
    truth = repair(2, 0.001, 0.005)
    known: Any = {"think_s": 0.005, "servers": 2, "service_s": 0.001}
    users = np.array(HELD_OUT, dtype=np.float64)
    errors: dict[str, list[float]] = {"chosen": [], "constant": [], "linear": []}
    for seed in range(10):
        found = choice.choose(sweep(truth, TRAINING, seed=seed, **known), draws=0)
        for name, candidate in (
            ("chosen", found.chosen),
            ("constant", found.of("constant")),
            ("linear", found.of("linear")),
        ):
            assert candidate
            assert candidate.ensemble
            predicted = candidate.ensemble.fitted.predict(users)
            errors[name].append(mape(predicted, truth(users)))
    middle = {name: float(np.median(each)) for name, each in errors.items()}
    assert middle["chosen"] <= middle["linear"] / 5
    assert middle["chosen"] <= middle["constant"]


def test_where_throughput_falls_the_scalability_law_is_chosen() -> None:
    def truth(users: FloatArray) -> FloatArray:
        return curves.usl_rate(users, 1000, 0.03, 0.004)

    training = sweep(truth, range(1, 31), think_s=0, servers=2, seed=3, noise=0.01)
    found = choice.choose(training, draws=DRAWS)
    assert found.chosen
    assert found.chosen.model.name == "USL"
    scores = choice.score_all(
        found, sweep(truth, HELD_OUT, think_s=0, servers=2, seed=9, noise=0.01)
    )
    assert scores["USL"].mape < 0.05


def test_measured_demand_is_preferred_until_a_curve_is_clearly_better() -> None:
    truth = repair(1, 0.001, 0.0)
    training = sweep(truth, TRAINING, think_s=0, servers=1, service_s=0.001, seed=4)
    disturbed = [replace(p, rate=p.rate * 0.9) if p.users <= 4 else p for p in training.points]
    found = choice.choose(Sweep(points=disturbed, think_s=0, servers={SERVER: 1}), draws=5)
    assert found.chosen
    assert found.chosen.model.anchored
    wrong = [replace(p, demand_s={SERVER: 0.0006}) for p in training.points]
    found = choice.choose(Sweep(points=wrong, think_s=0, servers={SERVER: 1}), draws=5)
    assert found.chosen
    assert not found.chosen.model.anchored


def test_the_intervals_of_the_answers_contain_the_truth() -> None:
    training = sweep(
        repair(2, 0.001, 0.005), TRAINING, think_s=0.005, servers=2, service_s=0.001, seed=5
    )
    found = answers.capacity(choice.choose(training, draws=DRAWS))
    assert found.saturation_users
    assert found.most_rate
    assert found.saturation_users.value == pytest.approx(12, rel=0.05)
    assert found.most_rate.value == pytest.approx(2000, rel=0.03)
    assert found.most_rate.low < found.most_rate.value < found.most_rate.high


def test_users_within_a_limit_of_the_99th_percentile() -> None:
    training = sweep(
        repair(1, 0.001, 0.005), TRAINING, think_s=0.005, servers=1, service_s=0.001, seed=5
    )

    def p99(users: int) -> float:
        return repair_response_quantile(0.99, users, 1, 0.001, 0.005)

    points = [replace(p, p99_s=p99(p.users)) for p in training.points]
    with_p99 = Sweep(points=points, think_s=0.005, servers={SERVER: 1})
    found = answers.capacity(choice.choose(with_p99, draws=5), p99_limit_s=p99(15))
    assert found.users_within_p99
    assert found.users_within_p99.value == pytest.approx(15, abs=1)


def test_without_a_knee_nothing_is_predicted() -> None:
    truth = repair(2, 0.001, 0.1)
    found = choice.choose(sweep(truth, TRAINING, think_s=0.1, servers=2, seed=1), draws=DRAWS)
    assert "the knee has not been seen" in found.refusal
    assert answers.capacity(found).saturation_users is None


def test_noise_two_levels_and_void_points_are_refused() -> None:
    truth = repair(2, 0.001, 0.005)
    known: Any = {"think_s": 0.005, "servers": 2, "service_s": 0.001, "seed": 1}
    noisy = choice.choose(sweep(truth, TRAINING, noise=0.5, **known), draws=DRAWS)
    assert "differ by" in noisy.refusal or "off by" in noisy.refusal or "void" in noisy.refusal
    few = choice.choose(sweep(truth, (1, 20), **known), draws=DRAWS)
    assert "too few" in few.refusal
    none = choice.choose(Sweep(points=[], think_s=0, servers={SERVER: 1}), draws=DRAWS)
    assert none.refusal
    busy = [
        replace(p, demand_s={SERVER: 1e-3, GENERATOR: 0.95 / p.rate})
        for p in sweep(truth, TRAINING, **known).points
    ]
    void = choice.choose(
        Sweep(points=busy, think_s=0.005, servers={SERVER: 2, GENERATOR: 1}), draws=DRAWS
    )
    assert "the generator was the limit" in void.refusal


def test_a_point_that_breaks_littles_law_or_has_failures_is_void() -> None:
    kept = Point(users=10, rate=1000, response_s=0.005)
    known = Sweep(points=[kept], think_s=0.005, servers={SERVER: 1})
    assert why_void(known, kept) == ""
    assert "Little" in why_void(known, replace(kept, response_s=0.004))
    assert "failed" in why_void(known, replace(kept, failed=3))


def test_a_late_generator_lengthens_the_think_time() -> None:
    load = {"requests": 100, "server_demand_s": 1e-3, "doubts": [], "rate": 1000, "mean_s": 0.005}
    load |= {"percentiles_s": {}, "generator_cpu_s": 0.01, "failed": 0, "judged": True}
    runs = [
        {"users": 10, "think_s": 0.005, "load": load | {"late_s": late_s}}
        for late_s in (4e-5, 5e-5, 9e-5)
    ]
    found = records.sweep(runs, server_cores=1, generator_cores=1)
    assert found.think_s == pytest.approx(0.00505)


def test_the_bottleneck_is_called_saturated_only_if_it_was() -> None:
    points = [
        Point(users=n, rate=rate, response_s=n / rate, demand_s={SERVER: 1e-3, GENERATOR: 2e-4})
        for n, rate in ((1, 500.0), (4, 990.0))
    ]
    full = Sweep(points=points, think_s=0, servers={SERVER: 1, GENERATOR: 1})
    assert "bottleneck is the server CPU" in answers.bottleneck_sentence(full)
    assert "It was saturated (99%)" in answers.bottleneck_sentence(full)
    half = Sweep(points=points[:1], think_s=0, servers={SERVER: 1, GENERATOR: 1})
    assert "busy for 50%" in answers.bottleneck_sentence(half)


def test_the_bands_are_as_wide_as_the_noise() -> None:
    training = sweep(
        repair(2, 0.001, 0.005), TRAINING, think_s=0.005, servers=2, service_s=0.001, seed=2
    )
    model = next(m for m in curves.MODELS if m.name == "M/M/m//N, fitted")
    low, high = ensemble(model, training, draws=40, seed=1).band(np.array([40.0]))
    assert (high - low)[0] / 2000 == pytest.approx(4 * 0.03, rel=0.35)


@pytest.mark.parametrize("repeats", [1, 2, 3])
def test_an_interval_has_a_width_for_any_number_of_repeats(repeats: int) -> None:
    truth = repair(1, 0.001, 0.005)
    known: Any = {"think_s": 0.005, "servers": 1, "service_s": 0.001, "repeats": repeats}
    found = answers.capacity(choice.choose(sweep(truth, TRAINING, seed=2, **known), draws=10))
    assert found.most_rate
    assert 0.002 < found.most_rate.width < 0.2


def test_every_model_has_a_row_in_the_documentation() -> None:
    page = Path(__file__).resolve().parent.parent.parent / "docs/capacity.md"
    rows = [line.split("|")[1] for line in page.read_text().splitlines() if line.startswith("| ")]
    assert [m.name for m in curves.MODELS if not any(m.name in row for row in rows)] == []


def test_scores_of_known_cases() -> None:
    measured = np.array([10.0, 20.0])
    assert mape(np.array([11.0, 18.0]), measured) == pytest.approx(0.1)
    point = np.tile(np.array([11.0, 18.0]), (50, 1))
    assert crps(point, measured) == pytest.approx(1.5)  # of a point: its absolute error
    normal = np.random.default_rng(1).standard_normal((20_000, 1))
    assert crps(normal, np.array([0.0])) == pytest.approx(0.2337, abs=0.005)
    assert skill(1.0, 4.0) == pytest.approx(0.75)
