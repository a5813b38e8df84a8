# SPDX-License-Identifier: MIT
"""The study of models beside a slow disk: its sentences, its table, and its refusals."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from touring import MACHINE
from weir_lab.experiments import remake, slow_disk
from weir_lab.report.page import Grade, Report
from weir_lab.rim import store as stored

MODELS = ("epoll", "prefork", "thread")
QUESTION = slow_disk.Question(servers=MODELS, slow_disk_ms=200, slow_clients=(4, 32), rounds=3)


def fast(p99_ms: float | None, per_s: float) -> dict[str, float | None]:
    p99_s = None if p99_ms is None else p99_ms / 1000
    return {"p50_s": 0.0001, "p99_s": p99_s, "per_s": per_s}


def run(p99_ms: float | None, per_s: float, files: float) -> dict[str, Any]:
    return {
        "alone": fast(1.0, 1000),
        "beside": fast(p99_ms, per_s),
        "slow": {"answers": 10, "refused": 1, "per_s": files, "median_s": 0.8},
    }


USUAL = {
    ("epoll", 4): run(1.1, 990, 4.0),
    ("prefork", 4): run(1.2, 1000, 3.9),
    ("thread", 4): run(1.3, 1000, 4.1),
    ("epoll", 32): run(1.1, 990, 4.0),
    ("prefork", 32): run(5.0, 500, 16.0),
    ("thread", 32): run(1.3, 1000, 32.0),
}


def report_of(tmp_path: Path, records: Mapping[tuple[str, int], dict[str, Any]]) -> Report:
    plan = {"command": "compare", "seed": 1, **QUESTION.__dict__}
    kept = stored.open_store(tmp_path, plan, MACHINE, fresh=True)
    for (model, number), record in records.items():
        for each in range(QUESTION.rounds):
            kept.add(QUESTION.key(number, each, model), {"server": model, **record})
    return remake.run(tmp_path)


def test_names_the_models_on_which_others_notice_nothing(tmp_path: Path) -> None:
    (section,) = report_of(tmp_path, USUAL).sections
    first, second, *rest = section.findings
    assert "Beside 4 clients of a disk that answers after 200 ms" in first
    assert "served as before on epoll, prefork and thread" in first
    assert "served as before on epoll and thread" in second
    assert "They notice the disk on prefork (99th percentile 5.00 times, rate 50 %)." in second
    assert rest == [
        "4 clients of the disk get about 4.10 files per second on every model.",
        "Of 32 clients of the disk, thread answers the most: 32.0 files per second. epoll answers "
        "the least: 4.00.",
    ]
    assert section.headline.mark
    assert section.headline.mark.grade is Grade.GREEN


def test_a_rate_that_falls_counts_although_the_percentile_does_not_grow(tmp_path: Path) -> None:
    records = {**USUAL, ("epoll", 4): run(1.0, 500, 4.0)}
    (section,) = report_of(tmp_path, records).sections
    assert "They notice the disk on epoll (99th percentile 1.00 times, rate 50 %)" in (
        section.headline.sentence
    )


def test_a_model_that_answers_nobody_is_named(tmp_path: Path) -> None:
    records = {**USUAL, ("epoll", 4): run(None, 0, 4.0)}
    report = report_of(tmp_path, records)
    assert "epoll (without an answer in some round)" in report.sections[0].headline.sentence
    (table,) = report.sections[0].tables
    assert table.rows[0][3:6] == ["-", "-", "-"]


def test_the_table_and_the_pictures_have_every_model(tmp_path: Path) -> None:
    (section,) = report_of(tmp_path, USUAL).sections
    (table,) = section.tables
    assert [row[:2] for row in table.rows] == [
        [model, str(number)] for number in (4, 32) for model in MODELS
    ]
    assert table.rows[4][2:6] == ["1.00", "5.00", "5.00", "0.50"]
    assert {row[-1] for row in table.rows} == {"3"}
    names = [picture.name for picture in section.pictures]
    assert names == ["slow-disk-p99", "slow-disk-rate", "slow-disk-files"]
    for picture in section.pictures:
        assert {row[1].rpartition(", ")[2] for row in picture.rows} == set(MODELS)
    beside = [row for row in section.pictures[0].rows if "beside 32" in row[1]]
    assert [row[2] for row in beside] == pytest.approx([1.1, 5.0, 1.3])


def test_without_results_nothing_is_claimed(tmp_path: Path) -> None:
    failed = {key: {"error": "weir did not start"} for key in USUAL}
    report = report_of(tmp_path, failed)
    assert report.sections[0].headline.sentence == "Nothing could be measured."
    assert len(report.notes) == len(USUAL) * QUESTION.rounds
