# SPDX-License-Identifier: MIT
"""Whole sweeps on a made-up machine: interrupted at any step, with dying servers, and finished."""

import math
import os
import random
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

import touring
from weir_lab.capacity import findings, records
from weir_lab.capacity.findings import RATE
from weir_lab.experiments import capacity, pilot
from weir_lab.experiments.capacity import Question
from weir_lab.experiments.experiment import InterruptedExperimentError, Options, Step
from weir_lab.rim import machine, quota, runs
from weir_lab.rim.errors import GoneError, LabError
from weir_lab.rim.machine import Placement
from weir_lab.rim.runs import World
from weir_lab.rim.store import load

QUESTION = Question(server="pool", think_s=0.04, seconds=1, repeats=1, pilot_s=4, halve=True)
DISTURBED = "00/0"  # the end of the keys whose first try loses CPU
SERVER_S, GENERATOR_S = 14e-6, 21e-6  # for each request: the generator would be the limit


@dataclass(kw_only=True)
class Machine:
    """Records of runs, by the key of their step; the tries of each key are counted."""

    fails_at: int = -1  # the number of the run that raises the error
    error: BaseException = field(default_factory=KeyboardInterrupt)
    measured: list[str] = field(default_factory=list)  # the keys of the finished runs
    server_s: float = SERVER_S
    generator_s: float = GENERATOR_S

    def step(self, _here: World, question: Question, users: int, key: str, **how: object) -> Step:
        """A step in the place of one that starts a server."""

        def measure() -> dict[str, Any]:
            if len(self.measured) == self.fails_at:
                self.fails_at = -1
                raise self.error
            self.measured.append(key)
            work = how["work"]
            assert isinstance(work, pilot.Work)
            return self.record(question, users, key, work)

        return Step(key=key, seconds=1, measure=measure)

    def record(self, question: Question, users: int, key: str, work: pilot.Work) -> dict[str, Any]:
        """Every run of a key has the same rate. Some first tries have lost CPU."""
        demand_s = self.server_s / work.share
        most = min(1 / demand_s, 1 / self.generator_s)
        rate = min(users / (question.think_s + 1e-4 + demand_s), most)
        drawn = random.Random(key)
        found = touring.run(users, rate, drawn, think_s=question.think_s, demand_s=self.server_s)
        if question.url and question.pid is None:
            found["load"]["server_demand_s"] = 0.0
        found["load"]["generator_cpu_s"] = self.generator_s * found["load"]["requests"]
        stolen = 0.6 if key.endswith(DISTURBED) and self.measured.count(key) == 1 else 0.0
        lost = {"of": "server", "cores": [1], "stolen": stolen, "foreign": 0.0}
        return {**found, "server_share": work.share, "lost": [lost]}


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machine:
    """A made-up machine in the place of servers, generators and control groups."""
    here = Machine()
    nowhere = World(build=tmp_path, root=tmp_path, work=tmp_path, placement=PLACEMENT)
    monkeypatch.setattr(capacity, "_step", here.step)
    monkeypatch.setattr(capacity, "world", lambda *_words: nullcontext(nowhere))
    monkeypatch.setattr(capacity, "check", lambda _question: None)
    monkeypatch.setattr(capacity, "one_request", lambda _question: None)
    monkeypatch.setattr(capacity, "section", lambda *_words: None)
    monkeypatch.setattr(runs, "product", lambda *_words: None)
    monkeypatch.setattr(runs, "generator", lambda *_words: None)
    monkeypatch.setattr(machine, "facts", lambda *_words: {})
    monkeypatch.setattr(quota, "is_possible", lambda: True)
    monkeypatch.setattr(os, "fsync", lambda _file: None)  # thousands of records
    return here


PLACEMENT = Placement(server=1, generator=0)


def sweep(folder: Path, question: Question = QUESTION) -> None:
    """Runs the experiment, or continues it."""
    capacity.run(Options(build=folder, out=folder, placement=PLACEMENT), question)


def results(folder: Path) -> tuple[Any, dict[str, Any]]:
    """The decision of the pilot, and all records by their keys."""
    store = load(folder)
    return store.head["setup"], store.records


def test_a_sweep_interrupted_at_any_step_ends_with_the_same_results(
    made_up: Machine, tmp_path: Path
) -> None:
    sweep(tmp_path / "whole")
    whole, order = results(tmp_path / "whole"), list(made_up.measured)
    kinds = {key.split("/")[0] for key in order}
    assert {"probe", "pilot", "halved", "whole"} < kinds
    assert whole[0]["share"] < 1  # so that a part of a core is a step of the pilot, too
    assert len(order) > len(set(order))  # some runs were measured again
    for place in range(len(order)):
        made_up.measured, made_up.fails_at = [], place
        folder = tmp_path / str(place)
        with pytest.raises(InterruptedExperimentError):
            sweep(folder)
        sweep(folder)
        assert results(folder) == whole, order[place]
        assert sorted(made_up.measured) == sorted(order), order[place]


def test_a_server_that_dies_at_any_step_costs_no_other_point(
    made_up: Machine, tmp_path: Path
) -> None:
    sweep(tmp_path / "whole")
    (setup, whole), order = results(tmp_path / "whole"), list(made_up.measured)
    made_up.error = LabError("the server died")
    for place, key in enumerate(order):
        made_up.measured, made_up.fails_at = [], place
        folder = tmp_path / str(place)
        in_pilot = key.startswith("probe")
        is_fatal = in_pilot and not key.startswith("probe/308/0.")  # else it has fewer levels
        with pytest.raises(LabError, match="the server died") if is_fatal else nullcontext():
            sweep(folder)
        sweep(folder)
        then, known = results(folder)
        assert not [key for key, record in known.items() if "error" in record and not in_pilot]
        assert in_pilot or (then, known.keys()) == (setup, whole.keys()), key
        assert in_pilot or set(made_up.measured) == set(order), key


def test_a_running_server_that_goes_at_any_step_ends_the_sweep_and_all_points_are_kept(
    made_up: Machine, tmp_path: Path
) -> None:
    running = replace(QUESTION, url="http://127.0.0.1:1/")
    sweep(tmp_path / "whole", running)
    whole, order = results(tmp_path / "whole"), list(made_up.measured)
    assert {key.split("/")[0] for key in order} > {"probe", "pilot"}
    made_up.error = GoneError("the server no longer answers")
    for place, key in enumerate(order):
        made_up.measured, made_up.fails_at = [], place
        folder = tmp_path / str(place)
        with pytest.raises(LabError, match="no longer answers"):
            sweep(folder, running)
        assert made_up.measured == order[:place], key
        sweep(folder, running)
        assert results(folder) == whole, key
        assert sorted(made_up.measured) == sorted(order), key


def forecast_of(folder: Path) -> findings.Findings:
    """What the finished sweep in the folder shows."""
    setup, known = results(folder)
    runs_of = [record for key, record in known.items() if key[0].isdigit()]
    swept = records.sweep(runs_of, server_cores=1, generator_cores=1)
    return findings.find(swept, train_to=setup["train_to"])


@pytest.mark.parametrize("think_s", [0.0, 0.001, 0.005, 0.040])
@pytest.mark.parametrize("costs", [(5e-6, 8e-6), (60e-6, 20e-6), (400e-6, 60e-6)])
def test_the_obvious_command_ends_in_a_forecast(
    made_up: Machine, tmp_path: Path, think_s: float, costs: tuple[float, float]
) -> None:
    made_up.server_s, made_up.generator_s = costs
    sweep(tmp_path, replace(QUESTION, think_s=think_s))
    found = forecast_of(tmp_path)
    assert found.refusal == ""
    assert found.scores[RATE].forecast.mape <= 0.10


@pytest.mark.parametrize("think_s", [0.0, 0.005, 0.040])
def test_a_server_elsewhere_has_a_forecast_with_a_wider_band(
    made_up: Machine, tmp_path: Path, think_s: float
) -> None:
    made_up.server_s, made_up.generator_s = 60e-6, 20e-6
    width = {}
    for name, url in (("here", ""), ("elsewhere", "http://127.0.0.1:1/")):
        sweep(tmp_path / name, replace(QUESTION, think_s=think_s, url=url))
        found = forecast_of(tmp_path / name)
        assert found.refusal == ""
        assert found.scores[RATE].forecast.coverage >= 0.9
        width[name] = found.scores[RATE].forecast.width
    assert width["elsewhere"] >= 0.7 * width["here"]


@pytest.mark.usefixtures("made_up")
def test_without_control_groups_a_sweep_ends_with_fewer_levels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep(tmp_path / "with")
    monkeypatch.setattr(quota, "is_possible", lambda: False)
    sweep(tmp_path / "without", QUESTION)
    (limited, _), (fewer, known) = results(tmp_path / "with"), results(tmp_path / "without")
    assert limited["share"] < 1
    assert fewer["share"] == 1
    assert "levels end at" in fewer["did"]
    for users in fewer["users"]:
        load = known[f"{users}/0"]["load"]
        assert load["generator_cpu_s"] / load["requests"] * load["rate"] <= pilot.GENERATOR_MAX * (
            1 + 5 * touring.NOISE
        )
    assert math.isfinite(fewer["generator"])
