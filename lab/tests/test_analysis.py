# SPDX-License-Identifier: MIT
"""Statistics of noisy measurements."""

import numpy as np
import pytest

from weir_lab.analysis import interleave, steady
from weir_lab.analysis.ratio import confidence_for, ratio


def figures(rng: np.random.Generator, rounds: int, mean: float, noise: float) -> dict[int, float]:
    return dict(enumerate(mean * np.exp(noise * rng.standard_normal(rounds))))


def test_rounds_are_interleaved_in_a_random_order() -> None:
    planned = interleave.rounds(["a", "b", "c"], 4, seed=3)
    assert planned[0] == planned[1][::-1] == planned[2] == planned[3][::-1]
    assert sorted(planned[0]) == ["a", "b", "c"]
    firsts = {tuple(interleave.rounds(["a", "b", "c"], 1, seed=s)[0]) for s in range(40)}
    assert len(firsts) == 6


def test_a_steady_drift_favours_no_server() -> None:
    taken: dict[str, list[int]] = {"a": [], "b": []}
    order = [name for each in interleave.rounds(["a", "b"], 4, seed=1) for name in each]
    for place, name in enumerate(order):
        taken[name].append(place)
    assert sum(taken["a"]) == sum(taken["b"])


@pytest.mark.parametrize("rounds", [4, 6, 10])
def test_a_server_is_not_found_to_differ_from_itself(rounds: int) -> None:
    rng = np.random.default_rng(rounds)
    runs, looks = 100, 6
    claims = 0
    for _ in range(runs):
        found = [
            ratio(
                figures(rng, rounds, 10, 0.05),
                figures(rng, rounds, 10, 0.05),
                confidence=confidence_for(looks),
            )
            for _ in range(looks)
        ]
        claims += any(r.is_shown for r in found if r)
    assert claims / runs <= 1 / 20


def test_a_difference_that_is_there_is_shown_with_its_size() -> None:
    rng = np.random.default_rng(1)
    found = ratio(figures(rng, 8, 12, 0.02), figures(rng, 8, 10, 0.02))
    assert found
    assert found.is_shown
    assert found.low < 1.2 < found.high
    assert "1.2" in found.sentence("a", "b", "CPU")


def test_a_factor_common_to_a_round_cancels() -> None:
    slowdown = np.exp(np.random.default_rng(2).standard_normal(6))
    found = ratio(
        {n: 11 * m for n, m in enumerate(slowdown)}, {n: 10 * m for n, m in enumerate(slowdown)}
    )
    assert found
    assert found.value == pytest.approx(1.1)
    assert found.high - found.low < 1e-6


def test_too_few_rounds_show_nothing() -> None:
    found = ratio({0: 100.0, 1: 110.0}, {0: 1.0, 1: 1.0})
    assert found
    assert not found.is_shown
    assert "too few rounds" in found.sentence("a", "b", "CPU")
    assert ratio({0: 1.0}, {1: 1.0}) is None


def test_a_beginning_that_differs_from_the_rest_is_cut() -> None:
    rng = np.random.default_rng(1)
    series = np.concatenate((np.linspace(0, 100, 30), np.full(170, 100))) + rng.normal(0, 1, 200)
    cut = steady.mser(list(series))
    assert cut is not None
    assert 20 <= cut <= 40


def test_a_series_that_never_settles_has_no_cut() -> None:
    assert steady.mser([float(n) for n in range(100)]) is None
    assert steady.mser([1.0] * 10) is None


@pytest.mark.parametrize("count", [16, 20, 60])
def test_a_steady_run_is_not_cut(count: int) -> None:
    rng = np.random.default_rng(3)
    cuts = [steady.beginning(list(rng.normal(1000, 30, count))) for _ in range(300)]
    assert sum(cut is None for cut in cuts) <= 3
    assert sum(cut == 0 for cut in cuts) >= 270


def test_a_slow_beginning_is_cut_and_a_drift_to_the_end_is_no_beginning() -> None:
    rng = np.random.default_rng(5)
    slow = [500.0, 700.0, 900.0, *rng.normal(1000, 20, 21)]
    assert steady.beginning(slow) == 3
    assert steady.beginning(list(np.linspace(1000, 2000, 24) + rng.normal(0, 20, 24))) is None


def test_batch_means_cover_the_mean_of_dependent_values() -> None:
    rng = np.random.default_rng(4)
    covered = 0
    for _ in range(200):
        series, value = [], 0.0
        for _ in range(1000):
            value = 0.8 * value + float(rng.standard_normal())
            series.append(value + 50)
        found = steady.batch_means(series)
        covered += found.low <= 50 <= found.high
    assert covered >= 170
    assert steady.batch_means([1.0, 2.0]).correlated
