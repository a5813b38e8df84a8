# SPDX-License-Identifier: MIT
"""The forecast on simulated servers of many kinds; docs/decisions/024 has the long form."""

import numpy as np
import pytest

from made_up import KINDS
from population import BUSY, QUIET, Trial, trials

EACH = 5
HARD = {
    "neither knee nor CPU",
    "a lock",
    "generator-limited",
    "thinking, demand falls",
}  # no rule can know their future


@pytest.fixture(scope="module")
def found() -> dict[str, list[Trial]]:
    """A few trials of each kind of server."""
    return {kind: trials(kind, QUIET, EACH, first=5000) for kind in KINDS}


def kept(found: dict[str, list[Trial]]) -> list[Trial]:
    """All trials with a forecast."""
    return [t for each in found.values() for t in each if not t.refused]


def test_every_server_has_a_forecast(found: dict[str, list[Trial]]) -> None:
    assert all(not t.refused for each in found.values() for t in each)


def test_the_forecast_is_a_fifth_as_far_off_as_linear_regression(
    found: dict[str, list[Trial]],
) -> None:
    assert np.mean([t.beats_linear for t in kept(found)]) >= 0.9


def test_it_is_no_worse_than_the_last_step_within_a_hundredth(
    found: dict[str, list[Trial]],
) -> None:
    assert np.mean([t.is_no_worse_than_constant for t in kept(found)]) >= 0.75
    mine, constant = (np.mean([getattr(t, n) for t in kept(found)]) for n in ("error", "constant"))
    assert mine < constant / 2


@pytest.mark.parametrize("kind", sorted(set(KINDS) - HARD))
def test_no_kind_of_server_has_a_large_median_error(
    found: dict[str, list[Trial]], kind: str
) -> None:
    assert np.median([t.truth for t in found[kind]]) <= 0.06


def test_on_a_busy_machine_the_bands_hold_the_measurements() -> None:
    kinds = ("wake-ups vanish", "thinking, knee seen", "flat from the first user")
    found = [t for kind in kinds for t in trials(kind, BUSY, EACH, first=5000)]
    assert 0.85 <= np.mean([t.covered for t in found]) <= 1.0
