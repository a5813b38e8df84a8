# SPDX-License-Identifier: MIT
"""The grade of a sweep: one place decides it, and names the weightiest reason."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import measured
from measured import report_of
from synthetic import HELD_OUT, TRAINING, repair, sweep
from weir_lab.capacity import findings, records
from weir_lab.capacity.findings import Findings
from weir_lab.capacity.score import Score, Scored
from weir_lab.capacity.sweep import Sweep, differs
from weir_lab.capacity.trust import GREEN, RED, YELLOW, Evidence, Trust, judge


def points(noise: float, repeats: int = 3) -> Sweep:
    truth = repair(2, 0.001, 0.0)
    known: Any = {"think_s": 0, "servers": 2, "seed": 1, "service_s": 0.001}
    return sweep(truth, TRAINING + HELD_OUT, noise=noise, repeats=repeats, **known)


@cache
def found(noise: float) -> Findings:
    return findings.find(points(noise), train_to=TRAINING[-1])


def judged(noise: float, error: float, **others: object) -> Trust:
    """The grade of a sweep whose runs differ by `noise` and whose forecast is off by `error`."""
    known = found(noise)
    facts: dict[str, Any] = {"coverage": 0.95, "constant": 0.3, **others}
    score = Score(mape=error, coverage=facts.pop("coverage"), width=0.1)
    scored = Scored(forecast=score, linear=0.5, constant=facts.pop("constant"))
    whole = {"sweep": known.sweep, "held_out": known.held_out, "void": [], "scored": scored}
    return judge(known.forecast, Evidence(**{**whole, **facts}))


@pytest.mark.parametrize(("error", "grade"), [(0.04, GREEN), (0.06, YELLOW), (0.11, RED)])
def test_the_error_on_held_out_levels_decides_the_grade(error: float, grade: str) -> None:
    trust = judged(0.01, error)
    assert trust.grade == grade
    assert trust.reasons == []
    text = f"At 25 to 60 users, which it had not seen, the forecast was off by {error:.1%}."
    assert trust.tested == text


def test_a_red_grade_by_the_scatter_of_the_machine_says_so() -> None:
    apart = differs(found(0.16).held_out)
    assert apart
    assert 0.12 < apart < 0.2
    noisy = judged(0.16, 0.11)
    assert noisy.grade == RED
    assert noisy.reasons[0] == (
        f"Two runs of the same load usually differ by {apart:.0%} on this machine; a forecast "
        "cannot be closer."
    )
    assert "cannot be closer" not in " ".join(judged(0.16, 0.6).reasons)
    assert "cannot be closer" not in " ".join(judged(0.01, 0.11).reasons)


@pytest.mark.parametrize(
    ("fact", "reason"),
    [
        ({"constant": 0.02}, "The last training level alone would have been off by only 2.0%."),
        ({"coverage": 0.7}, "Its 95 % band held only 70% of the runs."),
        ({"missing": 3}, "3 points are not measured yet."),
        ({"scored": None}, "The forecast was not tested"),
    ],
)
def test_a_fact_against_a_good_forecast_makes_it_yellow(fact: dict[str, Any], reason: str) -> None:
    trust = judged(0.01, 0.04, **fact)
    assert trust.grade == YELLOW
    assert reason in trust.reasons[0]


def test_more_than_a_tenth_of_void_points_are_a_reason() -> None:
    known = found(0.01).sweep.points
    few, many = ([(p, "it rained") for p in known[:count]] for count in (5, 12))
    assert judged(0.01, 0.04, void=few).grade == GREEN
    trust = judged(0.01, 0.04, void=many)
    assert trust.grade == YELLOW
    assert trust.reasons == ["12 of 84 points are void, the first because it rained."]
    every = [(p, "it rained") for p in known]
    assert judged(0.01, 0.04, void=every).reasons == ["Every point is void: it rained."]


def test_without_a_steady_state_the_grade_is_red() -> None:
    trust = judged(0.01, 0.01, doubt="There is no steady state.")
    assert (trust.grade, trust.reasons[0]) == (RED, "There is no steady state.")


def test_two_runs_that_contradict_are_no_test_and_the_reason_says_so() -> None:
    whole = points(0.01, repeats=2)
    torn = [
        replace(p, rate=p.rate / 3, response_s=p.response_s * 3)
        if p.users > TRAINING[-1] and p.repeat
        else p
        for p in whole.points
    ]
    seen = findings.find(replace(whole, points=torn), train_to=TRAINING[-1])
    assert seen.scores == {}
    assert "the two runs of each held-out level contradict each other" in " ".join(
        seen.trust.reasons
    )
    one = [p for p in torn if p.users != 25] + [p for p in whole.points if p.users == 25]
    part = findings.find(replace(whole, points=one), train_to=TRAINING[-1])
    assert "7 levels were not scored" in " ".join(part.trust.reasons)


@pytest.mark.parametrize("name", measured.NAMES)
def test_the_report_shows_this_grade_and_no_other(name: str, tmp_path: Path) -> None:
    headline = report_of(measured.lines(name), tmp_path).sections[0].headline
    assert headline.mark
    runs = [r for r in measured.lines(name) if str(r.get("key", "")).split("/")[0].isdigit()]
    swept = records.sweep(runs, server_cores=1, generator_cores=1)
    trust = findings.find(swept, train_to=20).trust
    assert headline.mark.grade.value == trust.grade
    assert headline.mark.reason.startswith(trust.tested)


def died(record: dict[str, Any]) -> None:
    """The server crashed in this run, as the store keeps it: no users and no load."""
    kept = {name: record[name] for name in ("kind", "key")}
    record.clear()
    record.update(kept, error="the server ended: exit status 139")


def refused(record: dict[str, Any]) -> None:
    """Nothing was answered in this run."""
    record["load"].update(rate=0.0, mean_s=0.0, requests=0, failed=50, percentiles_s={})


def changed(name: str, above: int, how: Callable[[dict[str, Any]], None]) -> list[dict[str, Any]]:
    """The lines of a measured sweep whose runs above this level are changed."""
    found = measured.lines(name)
    for record in found:
        if str(record.get("key", ""))[:1].isdigit() and record["users"] > above:
            how(record)
    return found


@pytest.mark.parametrize(
    ("how", "why"),
    [
        (died, "the server ended: exit status 139"),
        (refused, "no request was answered, and 50 failed"),
    ],
)
def test_runs_without_an_answer_are_a_reason_and_rows_of_the_table(
    how: Callable[[dict[str, Any]], None], why: str, tmp_path: Path
) -> None:
    (section,) = report_of(changed("pool-ka", 35, how), tmp_path).sections
    assert section.headline.mark
    assert section.headline.mark.grade.value == YELLOW
    assert section.headline.mark.reason.endswith(
        f" 10 of 56 runs had no answer, at 40 to 60 users; the first because {why}."
    )
    tables = {table.name: table for fold in section.folds for table in fold.tables}
    last = [row for row in tables["capacity-levels"].rows if int(row[0]) > 35]
    assert [row[0] for row in last] == ["40", "45", "50", "55", "60"]
    assert all(row[1:3] == ["2", "-"] and row[-1] == why for row in last)
    assert "nan" not in str(tables["capacity-precision"].rows)


def failing(record: dict[str, Any]) -> None:
    """One request of twenty failed in this run."""
    record["load"]["failed"] = round(record["load"]["requests"] * 0.05)


@pytest.mark.parametrize(("how", "why"), [(failing, "requests failed"), (died, "the server ended")])
def test_where_all_held_out_runs_are_void_the_reason_is_not_that_there_are_none(
    how: Callable[[dict[str, Any]], None], why: str
) -> None:
    runs = [r for r in changed("pool-ka", 20, how) if str(r.get("key", ""))[:1].isdigit()]
    swept = records.sweep(runs, server_cores=1, generator_cores=1)
    (said,) = [r for r in findings.find(swept, train_to=20).trust.reasons if "not tested" in r]
    assert "all 16 runs at held-out levels are void, the first because" in said
    assert why in said


def test_where_no_run_had_an_answer_the_reason_and_the_table_say_so(tmp_path: Path) -> None:
    (section,) = report_of(changed("pool-ka", 0, died), tmp_path).sections
    assert section.headline.sentence.startswith("None of the 56 measurements of pool is valid")
    assert section.headline.mark
    assert section.headline.mark.grade.value == RED
    assert "56 of 56 runs had no answer" in section.headline.mark.reason
    (table,) = [table for fold in section.folds for table in fold.tables]
    assert len(table.rows) == 28
