# SPDX-License-Identifier: MIT
"""The section of a sweep: the answer for the first screen, then each question with its answer.

The answer names only numbers that the models or the measurements support. Where there is no
forecast, it is what was measured, and the mark of trust says why there is no more.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from weir_lab.capacity import disturbance
from weir_lab.capacity.answers import Capacity, Interval, bottleneck_sentence, first_limit
from weir_lab.capacity.findings import RATE, Findings
from weir_lab.capacity.sweep import Point, Sweep
from weir_lab.capacity.trust import GREEN, RED, WORSE_MAX, YELLOW
from weir_lab.report import sweeps
from weir_lab.report.page import Fold, Grade, Headline, Mark, Number, Section, Table

WIDE = 0.5  # of the value: such an interval is named instead of it
UNKNOWN = "-"
WORDS = {GREEN: "Reliable", YELLOW: "Use it with care", RED: "Do not rely on it"}
LINEAR_GOOD = 0.2  # an error of linear regression that a straight world explains
AMPLIFIED = 3.0  # cycle / response time; above it, the report says what this means for errors
CONNECTS = (
    "Each request has a connection of its own here. The mean has the time to connect, percentiles "
    "do not have it."
)
NO_LIMIT = "No measurement is valid, so the bottleneck is not known."
FIFTH = 5  # the goal: the forecast's error is this many times below linear regression's


@dataclass(frozen=True, kw_only=True)
class Studied:
    """A sweep with its models, ready to be reported."""

    name: str  # of the files
    server: str
    found: Findings
    records: Sequence[Mapping[str, Any]]

    @property
    def sweep(self) -> Sweep:
        """Every point."""
        return self.found.sweep

    @property
    def carried(self) -> Capacity:
        """The answers."""
        return self.found.capacity

    @property
    def held_out(self) -> Sweep:
        """The valid points that the models have not seen."""
        return self.found.held_out

    @property
    def valid(self) -> list[Point]:
        """The points that count."""
        void = [p for p, _ in self.found.void]
        return [p for p in self.sweep.points if p not in void]

    @property
    def connects(self) -> bool:
        """Whether `weir load` opened a connection for each request: see CONNECTS."""
        return any(
            not r.get("keep_alive", True) and r["load"].get("judged")
            for r in self.records
            if "load" in r
        )

    @property
    def has_forecast(self) -> bool:
        """Whether there is a forecast beyond what was measured."""
        return self.found.forecast is not None


def rounded(value: float) -> str:
    """A number for a sentence, to three digits."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{round(value, 2 - math.floor(math.log10(abs(value)))):,.{digits}f}"


def users_text(value: float) -> str:
    """A number of users for a sentence."""
    count = max(1, round(value))
    return "1 user" if count == 1 else f"{whole(count)} users"


def whole(value: float) -> str:
    """A whole number, to three digits."""
    return f"{round(value, min(0, 2 - math.floor(math.log10(max(1, abs(value)))))):,.0f}"


def most_measured(points: Sequence[Point]) -> Point | None:
    """The valid point with the highest throughput."""
    return max(points, key=lambda p: p.rate, default=None)


def within_measured(points: Sequence[Point], limit_s: float) -> int | None:
    """The largest measured level whose 99th percentile is within the limit."""
    for level in sorted({p.users for p in points}, reverse=True):
        here = [p.p99_s for p in points if p.users == level and p.p99_s]
        if here and median(here) <= limit_s:
            return level
    return None


def sentence(studied: Studied) -> str:
    """The answer in one sentence."""
    if not studied.valid:
        count = studied.sweep.runs
        return (
            f"None of the {count} measurements of {studied.server} is valid, so nothing is known."
            if count
            else f"Nothing of {studied.server} was measured."
        )
    top = most_measured(studied.valid)
    assert top
    if not studied.has_forecast:
        return (
            f"{studied.server} served up to {rounded(top.rate)} requests per second, at "
            f"{users_text(top.users)}. There is no forecast beyond that."
        )
    if studied.found.purchase:
        return studied.found.purchase.sentence
    most, knee = studied.carried.most_rate, studied.carried.saturation_users
    limit = first_limit(studied.found.training)
    then = f"; then the {limit.resource} is the limit" if limit else ""
    where = ""
    if knee and math.isfinite(knee.value):
        at = f"at about {users_text(knee.value)}"
        if knee.width > WIDE:
            at = f"between {whole(knee.low)} and {users_text(knee.high)}"
        where = f" It saturates {at}{then}."
    if most and math.isfinite(most.value):
        rate = rounded(most.value)
        if most.width > WIDE:
            rate = f"{rounded(most.low)} to {rounded(most.high)}"
        return f"{studied.server} carries at most {rate} requests per second.{where}"
    return f"{studied.server} has no highest throughput within what was measured.{where}"


def _interval(found: Interval | None) -> tuple[str, str]:
    """A value and its interval as text; whole numbers from 10 on."""
    if found is None or not math.isfinite(found.value):
        return UNKNOWN, "not known"

    is_count = sweeps.is_whole(found)

    def said(value: float) -> str:
        return f"{value:.1f}" if abs(value) < 10 and not is_count else whole(value)

    if found.high == 0:
        return "0", "not even one"
    if found.is_least and found.low == found.value:
        return f"\N{GREATER-THAN OR EQUAL TO} {said(found.value)}", "the search ended there"
    if math.isfinite(found.low) and math.isinf(found.high):
        least = "\N{GREATER-THAN OR EQUAL TO} " if found.is_least else ""
        return f"{least}{said(found.value)}", f"{said(found.low)} or more (95 %)"
    if math.isfinite(found.low) and math.isfinite(found.high):
        return said(found.value), f"{said(found.low)} to {said(found.high)} (95 %)"
    return said(found.value), ""


def numbers(studied: Studied) -> list[Number]:
    """N*, the highest throughput, and the users within the objective."""
    carried = studied.carried
    knee, knee_note = _interval(carried.saturation_users)
    if knee == UNKNOWN:
        knee_note = "not known without a forecast" if not studied.has_forecast else "no knee"
    unit = "" if knee == UNKNOWN else "users"
    found = [Number(name="Saturates at N*", value=knee, unit=unit, note=knee_note)]
    most, most_note = _interval(carried.most_rate)
    name = "Maximum"
    if most == UNKNOWN and (top := most_measured(studied.valid)):
        name, most = "Highest measured", rounded(top.rate)
        most_note = f"at {users_text(top.users)}"
    found.append(Number(name=name, value=most, unit="requests/s", note=most_note))
    limit_s = carried.p99_limit_s
    if limit_s is None:
        none = Number(name="Users within an objective", value=UNKNOWN, note="no valid percentile")
        return [*found, none]
    within, note = _interval(carried.users_within_p99)
    if within == UNKNOWN:
        level = within_measured(studied.valid, limit_s)
        within, note = (f"{level:,}", "as measured") if level else (UNKNOWN, "no level measured")
    objective = f"Users with p99 within {sweeps.plain(limit_s * 1e3)} ms"
    objective += ", without connecting" if studied.connects else ""
    found.append(Number(name=objective, value=within, unit="users", note=note))
    return found


def mark(studied: Studied) -> Mark:
    """How far the answer can be trusted, with the weightiest reason."""
    trust = studied.found.trust
    word = WORDS[trust.grade]
    if studied.valid and not studied.has_forecast:
        word = "Measured, no forecast"
    reason = " ".join(each for each in (trust.tested, *trust.reasons[:1]) if each)
    return Mark(grade=Grade(trust.grade), word=word, reason=reason)


def headline(studied: Studied) -> Headline:
    """The first screen."""
    pictures = []
    if studied.sweep.points:
        pictures = [
            sweeps.throughput(studied.name, studied.found),
            sweeps.response(studied.name, studied.found),
        ]
    return Headline(
        sentence=sentence(studied),
        mark=mark(studied),
        numbers=numbers(studied),
        title="Throughput and response time by users",
        pictures=pictures,
        caption=(
            "Each mark is one run against a freshly started server. The forecast was fitted to "
            "the filled marks and tested on the hollow ones."
            + (f" {CONNECTS}" if studied.connects else "")
        ),
    )


def tested_findings(studied: Studied) -> list[str]:
    """The errors of the forecast and of two simple rules, and whether the goals are met."""
    if not studied.has_forecast or RATE not in studied.found.scores:
        return [f"There is no forecast. {studied.found.refusal}"] if studied.found.refusal else []
    scored = studied.found.scores[RATE]
    mine, linear, constant = scored.forecast.mape, scored.linear, scored.constant
    training, held_out = (
        f"{levels[0]:,} to {users_text(levels[-1])}" if len(levels) > 1 else users_text(levels[0])
        for levels in (studied.found.training.levels, studied.held_out.levels)
    )
    fifth = "It is met" if mine <= linear / FIFTH else "It is missed"
    if linear <= LINEAR_GOOD:
        fifth = f"It applies where linear regression is off by more than {LINEAR_GOOD:.0%}"
    worse = "met" if mine <= constant + WORSE_MAX else "missed"
    return [
        f"The forecast is from {training}. At {held_out}, which it had not seen, it was off by "
        f"{mine:.1%}.",
        f"Linear regression was off by {linear:.1%}. To expect the throughput of the last training "
        f"level was off by {constant:.1%}.",
        f"Goal: at most a fifth of linear regression's error. {fifth}.",
        f"Goal: not worse than the last training level by more than 1 point. It is {worse}.",
    ]


def amplified_finding(studied: Studied) -> list[str]:
    """Why response times cannot be forecast as closely as throughput, where users mostly think."""
    points = studied.held_out.points
    if not studied.has_forecast or not points:
        return []
    times = median(p.users / p.rate / p.response_s for p in points)
    if times < AMPLIFIED:
        return []
    return [
        f"The response time is a small part of the cycle here, so an error of 1 % of the "
        f"throughput is {times:.0f} % of the response time (Little's law)."
    ]


def void_finding(studied: Studied) -> list[str]:
    """How many points do not count, with the most frequent reason."""
    reasons = [why for _, why in studied.found.void]
    reasons += [run.why for run in studied.sweep.unanswered]
    if not reasons:
        return []
    often = max(sorted(set(reasons)), key=reasons.count)  # the same one each time
    return [
        f"{len(reasons)} of {studied.sweep.runs} points are void. A frequent reason: "
        f"{often}. The table gives them all."
    ]


def waiting_finding(studied: Studied) -> list[str]:
    """The users within the objective, and the cores for the users asked about."""
    carried = studied.carried
    bought = [studied.found.purchase.sentence] if studied.found.purchase else []
    if carried.p99_limit_s is None or not carried.users_within_p99:
        return bought
    found = carried.users_within_p99
    within = sweeps.interval_text(found, " users")
    limit = f"{sweeps.plain(carried.p99_limit_s * 1e3)} ms"
    up_to = "at least" if found.is_least else "up to"
    without = ", without the time to connect," if studied.connects else ""
    return [
        f"99 % of requests are answered within {limit}{without} for {up_to} {within}.",
        *bought,
    ]


def section(
    studied: Studied,
    *,
    title: str,
    limit: Sequence[str] = (),
    method: Sequence[str] = (),
    tables: Sequence[Table] = (),
) -> Section:
    """The whole section; `limit` are findings about the bottleneck, `method` how it was done."""
    if not studied.sweep.runs:
        return Section(title=title, headline=headline(studied))
    if not studied.sweep.points:
        measured = Fold(
            title="What was measured?", tables=[sweeps.levels(studied.name, studied.sweep)]
        )
        return Section(title=title, headline=headline(studied), folds=[measured])
    known = studied.found.training if studied.found.training.points else studied.sweep
    name, sweep = studied.name, studied.sweep
    return Section(
        title=title,
        headline=headline(studied),
        folds=[
            Fold(
                title="How long do users wait?",
                findings=waiting_finding(studied),
                text=[
                    "Up to N*, users hardly delay each other. Beyond it, each further user makes "
                    "all users wait.",
                    *([CONNECTS] if studied.connects else []),
                ],
                pictures=[
                    sweeps.latency_throughput(name, sweep),
                    *sweeps.percentiles(name, studied.records),
                ],
            ),
            Fold(
                title="What is the limit?",
                findings=[bottleneck_sentence(known) if studied.valid else NO_LIMIT, *limit],
                pictures=[sweeps.utilisation(name, sweep)],
            ),
            Fold(
                title="How good is the forecast?",
                findings=[*tested_findings(studied), *amplified_finding(studied)],
                pictures=[sweeps.prediction(name, studied.found)],
                tables=[sweeps.scores(name, studied.found), sweeps.models(name, studied.found)],
            ),
            Fold(
                title="What was measured?",
                findings=[*disturbance.sentences(studied.records), *void_finding(studied)],
                pictures=sweeps.seconds(name, studied.records),
                tables=[sweeps.levels(name, sweep, connects=studied.connects), *tables],
            ),
            *([Fold(title="How was it measured?", text=method)] if method else []),
        ],
    )
