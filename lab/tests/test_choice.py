# SPDX-License-Identifier: MIT
"""The rule of choice on simulated servers of many kinds; docs/decisions/017 has the long form."""

import numpy as np
import pytest

from population import KINDS, QUIET, Trial, trials

EACH = 3


@pytest.fixture(scope="module")
def found() -> dict[str, list[Trial]]:
    """A few trials of each kind of server."""
    return {kind: trials(kind, QUIET, EACH) for kind in KINDS}


def kept(found: dict[str, list[Trial]]) -> list[Trial]:
    """All trials with a prediction."""
    return [t for each in found.values() for t in each if not t.refused]


def test_without_knee_and_cpu_nothing_is_predicted(found: dict[str, list[Trial]]) -> None:
    assert all(t.refused for t in found["neither knee nor CPU"])


def test_servers_that_can_be_predicted_are(found: dict[str, list[Trial]]) -> None:
    others = [t for kind, each in found.items() if kind != "neither knee nor CPU" for t in each]
    assert sum(t.refused for t in others) <= len(others) / 20


def test_the_chosen_model_is_a_fifth_as_far_off_as_linear_regression(
    found: dict[str, list[Trial]],
) -> None:
    met = [t.beats_linear for t in kept(found)]
    assert np.mean(met) >= 0.9


def test_it_is_no_worse_than_the_last_step_within_a_hundredth(
    found: dict[str, list[Trial]],
) -> None:
    met = [t.is_no_worse_than_constant for t in kept(found)]
    assert np.mean(met) >= 0.75
    mine, constant = (np.mean([getattr(t, n) for t in kept(found)]) for n in ("chosen", "constant"))
    assert mine < constant / 2


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "neither knee nor CPU"])
def test_no_kind_of_server_has_a_large_median_error(
    found: dict[str, list[Trial]], kind: str
) -> None:
    assert np.median([t.chosen for t in found[kind] if not t.refused]) <= 0.06
