# SPDX-License-Identifier: MIT
"""How far to trust the forecast of a sweep: the only place that grades it.

A grade is green, yellow or red. Red means that the forecast was clearly off where it was tested, or
that there is none. Yellow means that something speaks against it. Reports show the grade with the
sentence about the test and the first reason.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weir_lab.capacity import answers
from weir_lab.capacity.forecast import Forecast
from weir_lab.capacity.score import Scored
from weir_lab.capacity.sweep import GENERATOR, SERVER, Point, Sweep, differs, without_middle

GREEN, YELLOW, RED = "green", "yellow", "red"
ERROR_SMALL, ERROR_LARGE = 0.05, 0.10  # of the forecast on held-out levels
WORSE_MAX = 0.01  # than "as the last step"
COVERED_MIN = 0.8  # of the held-out runs, by the 95 % band
VOID_MAX = 0.1  # of the points
SCATTER_USUAL, SCATTER_MAX = 0.06, 0.25  # between two runs of one level
WIDTH_USUAL = 0.25  # half of the band, relative
LIMIT_BUSY = 0.9  # utilisation at the last levels: such a resource is the limit


@dataclass(frozen=True, kw_only=True)
class Trust:
    """A grade, with its reasons as sentences."""

    grade: str  # GREEN, YELLOW or RED
    tested: str = ""  # how far the forecast was off; empty where nothing tested it
    reasons: Sequence[str] = ()  # against the forecast, the worst first


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """All that a grade rests on."""

    sweep: Sweep  # every point
    held_out: Sweep  # the valid points that the models have not seen
    void: Sequence[tuple[Point, str]]  # with the reason
    scored: Scored | None  # of throughput
    refusal: str = ""  # why there is no forecast
    doubt: str = ""  # against the measurement as a whole
    missing: int = 0  # points that are not measured yet
    not_tested: Sequence[str] = ()  # why each void run of the held-out levels is void


def judge(found: Forecast | None, known: Evidence) -> Trust:
    """The grade of a sweep and of its forecast."""
    if len(known.void) == len(known.sweep.points):
        why = f"Every point is void: {known.void[0][1]}." if known.void else ""
        reasons = [*_unanswered(known.sweep), *([why] if why else [])]
        return Trust(grade=RED, reasons=reasons or ["There is no measurement."])
    if found is None:
        why = known.refusal or "No model describes the measurements."
        reasons = [why, *_unanswered(known.sweep), known.doubt]
        return Trust(grade=RED, reasons=[r for r in reasons if r])
    first = [*_unanswered(known.sweep), *_missing(known)]
    severe = [known.doubt] if known.doubt else []
    mild = _untested(known) if known.scored is None else []
    apart = differs(known.held_out) or differs(found.training) or found.scatter
    error = known.scored.forecast.mape if known.scored else 0.0
    if apart > SCATTER_USUAL or ERROR_SMALL < error <= apart:
        (severe if apart > SCATTER_MAX else mild).append(_scatter(apart, error))
    if known.scored:
        mild += _misses(known.scored)
    mild += [*_gaps(known), *_limits(found, known.sweep)]
    is_red = bool(severe) or error > ERROR_LARGE
    is_green = not (first or mild or error > ERROR_SMALL)
    return Trust(
        grade=RED if is_red else GREEN if is_green else YELLOW,
        tested=_tested(known.held_out, error) if known.scored else "",
        reasons=[*first, *severe, *mild],
    )


def _unanswered(sweep: Sweep) -> list[str]:
    """Runs without an answer: a server may have crashed, or may have refused every user."""
    found = sorted(sweep.unanswered, key=lambda run: run.users)
    if not found:
        return []
    count = f"{len(found)} of {sweep.runs} runs had no answer"
    first, last = found[0].users, found[-1].users
    if first == last:
        users = "1 user" if last == 1 else f"{last:,} users"
        return [f"{count}, at {users}: {found[0].why}."]
    return [f"{count}, at {first:,} to {last:,} users; the first because {found[0].why}."]


def _missing(known: Evidence) -> list[str]:
    if not known.missing:
        return []
    count = "1 point is" if known.missing == 1 else f"{known.missing} points are"
    return [
        f"The experiment was interrupted: {count} not measured yet. The same command continues."
    ]


def _tested(held_out: Sweep, error: float) -> str:
    levels = held_out.levels
    loads = f"{levels[0]:,} to {levels[-1]:,} users" if len(levels) > 1 else f"{levels[0]:,} users"
    return f"At {loads}, which it had not seen, the forecast was off by {error:.1%}."


def _untested(known: Evidence) -> list[str]:
    if known.held_out.points:
        why = "the two runs of each held-out level contradict each other"
    elif known.not_tested:
        count, first = len(known.not_tested), known.not_tested[0]
        why = f"all {count} runs at held-out levels are void, the first because {first}"
        if count == 1:
            why = f"the only run at a held-out level is void: {first}"
    else:
        why = "no level was held out"
    return [f"The forecast was not tested: {why}."]


def _scatter(apart: float, error: float) -> str:
    """The runs differ by so much that the forecast may not be at fault."""
    text = f"Two runs of the same load usually differ by {apart:.0%} on this machine"
    if ERROR_SMALL < error <= apart:
        return f"{text}; a forecast cannot be closer."
    return f"{text}."


def _misses(scored: Scored) -> list[str]:
    reasons = []
    if scored.forecast.mape > scored.constant + WORSE_MAX:
        reasons.append(
            f"The last training level alone would have been off by only {scored.constant:.1%}."
        )
    if scored.forecast.coverage < COVERED_MIN:
        reasons.append(f"Its 95 % band held only {scored.forecast.coverage:.0%} of the runs.")
    return reasons


def _gaps(known: Evidence) -> list[str]:
    """Points that do not count."""
    reasons = []
    if len(known.void) > VOID_MAX * len(known.sweep.points):
        reasons.append(
            f"{len(known.void)} of {len(known.sweep.points)} points are void, the first because "
            f"{known.void[0][1]}."
        )
    if known.scored and (unclear := without_middle(known.held_out)):
        count = "1 level was" if len(unclear) == 1 else f"{len(unclear)} levels were"
        reasons.append(f"{count} not scored, because two runs of one level contradict each other.")
    return reasons


def _limits(found: Forecast, sweep: Sweep) -> list[str]:
    """What the measurements do not show."""
    reasons = []
    busy = {
        name: answers.utilisation(found.training, name)
        for name in (SERVER, GENERATOR)
        if found.training.has_demand(name)
    }
    generator = busy.get(GENERATOR, 0.0)
    if generator >= LIMIT_BUSY and generator > busy.get(SERVER, 0.0):
        reasons.append(
            f"The generator was the limit: its CPU was busy for {generator:.0%} of the time. The "
            "forecast is of both together; the server alone could do more."
        )
    if not answers.has_seen_the_knee(found.training):
        known = "" if SERVER in busy else ", and the server's CPU is not known"
        reasons.append(
            f"Throughput still grows at {found.last:,.0f} users: the knee was not seen{known}."
        )
    end = found.rate(np.array([float(sweep.levels[-1])]))
    width = float((end.high - end.low)[0] / 2 / end.value[0])
    if width > WIDTH_USUAL:
        reasons.append(f"The band is wide: {width:.0%} at {sweep.levels[-1]:,} users.")
    return reasons
