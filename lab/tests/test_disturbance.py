# SPDX-License-Identifier: MIT
"""Runs that lost CPU: how the loss is measured, and what follows from it. No server is needed."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import measured
from measured import report_of
from weir_lab.capacity import disturbance, records
from weir_lab.capacity.disturbance import Lost
from weir_lab.capacity.sweep import why_void
from weir_lab.experiments import again
from weir_lab.experiments.experiment import InterruptedExperimentError, Step, perform
from weir_lab.rim import cores
from weir_lab.rim.errors import LabError
from weir_lab.rim.machine import Placement
from weir_lab.rim.store import FILE, Store, open_store, read

STAT = """cpu  900 20 300 5000 10 0 40 {both} 0 0
cpu0 400 10 100 2500 5 0 20 {first} 0 0
cpu1 500 10 200 2500 5 0 20 {second} 0 0
intr 12345
"""


def stat(first: int, second: int) -> str:
    return STAT.format(both=first + second, first=first, second=second)


def with_loss(stolen: float, foreign: float | None = 0.0, rate: float = 1.0) -> dict[str, Any]:
    group = {"of": "server", "cores": [1], "stolen": stolen, "foreign": foreign}
    return {"lost": [group], "load": {"rate": rate}}


def test_the_times_of_a_core_are_those_of_its_line() -> None:
    tick_s = cores.TICK_S
    assert cores.times([1], stat(3, 7)) == cores.Times(stolen_s=7 * tick_s, used_s=710 * tick_s)
    both = cores.times([0, 1], stat(3, 7))
    assert both
    assert both.stolen_s == pytest.approx(10 * tick_s)
    assert cores.times([0, 2], stat(3, 7)) is None


@pytest.fixture
def seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file in the place of /proc/stat."""
    path = tmp_path / "stat"
    path.write_text(stat(0, 0))
    monkeypatch.setattr(cores, "STAT", path)
    return path


def test_a_run_knows_how_much_each_of_its_cores_lost(seen: Path) -> None:
    watch = cores.Watch(Placement(server=1, generator=0))
    seen.write_text(stat(0, 50).replace("cpu0 400", "cpu0 500"))
    watch.stop()
    watch.seconds, watch.children_s = 2.0, 0.25
    server, generator = watch.lost(0.0)
    assert server == {"of": "server", "cores": [1], "stolen": 25 * cores.TICK_S, "foreign": 0.0}
    assert generator["stolen"] == 0
    assert generator["foreign"] == pytest.approx((100 * cores.TICK_S - 0.25) / 2)


def test_a_server_elsewhere_has_no_known_cores(seen: Path) -> None:
    watch = cores.Watch(Placement(server=1, generator=0), is_server_known=False)
    seen.write_text(stat(20, 0))
    watch.stop()
    watch.seconds = 2.0
    found = watch.lost(0.0)
    assert [(each["of"], each["foreign"]) for each in found] == [("generator", None)]
    assert disturbance.lost({"lost": found}).stolen == pytest.approx(10 * cores.TICK_S)


def test_a_machine_without_these_counts_has_no_losses(seen: Path) -> None:
    seen.unlink()
    watch = cores.Watch(Placement(server=1, generator=0))
    watch.stop()
    assert watch.lost(0.0) == []
    assert disturbance.reason({"lost": []}, Lost()) == ""
    assert disturbance.reason({}, Lost()) == ""  # of an older version


def test_a_run_is_disturbed_by_the_hypervisor_or_by_other_processes() -> None:
    assert disturbance.reason(with_loss(0.04, 0.09), Lost()) == ""
    assert disturbance.reason(with_loss(0.6), Lost()) == "the hypervisor took 60% of the CPU"
    taken = disturbance.reason(with_loss(0.01, 0.2), Lost())
    assert taken == "other processes took 20% of the CPU"


def test_a_loss_that_all_runs_share_disturbs_none() -> None:
    always = [with_loss(0.2 + 0.001 * n) for n in range(12)]
    calm = disturbance.usual(always)
    assert [disturbance.reason(r, calm) for r in always] == [""] * 12
    assert disturbance.reason(with_loss(0.3), calm)
    assert "The hypervisor took 20% of the CPU even in" in disturbance.sentences(always)[0]
    assert disturbance.usual(always[:3]) == Lost()  # too few to show what is usual


def test_where_most_runs_are_disturbed_the_calm_ones_remain() -> None:
    mixed = [with_loss(0.0)] * 4 + [with_loss(0.3)] * 8
    calm = disturbance.usual(mixed)
    assert [bool(disturbance.reason(r, calm)) for r in mixed] == [False] * 4 + [True] * 8


def test_a_disturbed_run_of_a_sweep_is_void_and_says_why() -> None:
    runs = [r for r in measured.lines("pool-ka") if str(r.get("key", ""))[0:1].isdigit()]
    runs[3] |= with_loss(0.6) | {"load": runs[3]["load"]}
    found = records.sweep(runs, server_cores=1, generator_cores=1)
    reasons = [why for p in found.points if (why := why_void(found, p))]
    assert reasons == ["the hypervisor took 60% of the CPU"]


def new_store(folder: Path) -> Store:
    return open_store(folder, {"a": 1}, {"kernel": "Linux"}, fresh=False)


class Machine:
    """Measurements whose losses are given in advance, for each key in turn."""

    def __init__(self, losses: dict[str, Sequence[float | Exception]]) -> None:
        self.left: dict[str, Iterator[float | Exception]] = {k: iter(v) for k, v in losses.items()}
        self.order: list[str] = []

    def steps(self) -> list[Step]:
        return [Step(key=k, seconds=1, measure=partial(self.measure, k)) for k in self.left]

    def measure(self, key: str) -> dict[str, Any]:
        self.order.append(key)
        loss = next(self.left[key], 0.0)
        if isinstance(loss, BaseException):
            raise loss
        return with_loss(loss, rate=len(self.order))


def test_a_disturbed_run_is_measured_again_after_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = Machine({"a": [0.0], "b": [0.6, 0.0], "c": [0.0], "d": [0.0]})
    perform(store := new_store(tmp_path), machine.steps(), "test")
    assert machine.order == ["a", "b", "c", "d", "b"]
    assert disturbance.lost(store.records["b"]).stolen == 0
    assert [run["rate"] for run in store.records["b"]["again"]] == [2]
    said = disturbance.sentences(list(store.records.values()))
    why = "because the hypervisor took up to 60% of the CPU."
    assert said == [f"1 of 4 runs was measured again, {why}"]
    assert f"1 run is measured again, {why}" in " ".join(capsys.readouterr().err.split())


def test_the_try_with_the_least_loss_is_kept_and_the_tries_are_bounded(tmp_path: Path) -> None:
    machine = Machine({"a": [0.0], "b": [0.6, 0.2, 0.4], "c": [0.0], "d": [0.0]})
    perform(store := new_store(tmp_path), machine.steps(), "test")
    assert machine.order.count("b") == 1 + again.TRIES_MAX
    assert store.records["b"]["load"]["rate"] == 5  # the second try
    assert disturbance.reason(store.records["b"], Lost()) == "the hypervisor took 20% of the CPU"


def test_where_every_run_is_disturbed_half_as_many_are_measured_again(tmp_path: Path) -> None:
    machine = Machine({key: [0.3, 0.3, 0.3] for key in "abcdef"})
    perform(new_store(tmp_path), machine.steps(), "test")
    assert len(machine.order) == 6 + 3


def test_a_further_try_that_fails_keeps_the_first_run(tmp_path: Path) -> None:
    machine = Machine({"a": [0.6, LabError("the server died"), 0.0], "b": [0.0]})
    perform(store := new_store(tmp_path), machine.steps(), "test")
    assert machine.order == ["a", "b", "a", "a"]
    assert store.records["a"]["again"][0] == {"error": "the server died"}
    assert disturbance.lost(store.records["a"]).stolen == 0


def test_an_interruption_between_tries_keeps_all_points_and_the_bound(tmp_path: Path) -> None:
    losses: dict[str, Sequence[Any]] = {"a": [0.6, 0.6, KeyboardInterrupt()], "b": [0.0]}
    with pytest.raises(InterruptedExperimentError, match="2 of 2 points are in"):
        perform(new_store(tmp_path), Machine(losses).steps(), "test")
    then = Machine({"a": [0.5, 0.0], "b": []})
    perform(store := new_store(tmp_path), then.steps(), "test")
    assert then.order == ["a"]  # one try was left
    assert disturbance.lost(store.records["a"]).stolen == 0.5
    assert [line.get("key") for line in read(tmp_path / FILE)] == [None, "a", "b"]
    perform(new_store(tmp_path), (last := Machine({"a": [], "b": []})).steps(), "test")
    assert last.order == []


def test_the_report_has_a_line_about_the_runs_that_were_measured_again(tmp_path: Path) -> None:
    found = measured.lines("pool-ka")
    for each in found[5:8]:
        each |= {"lost": [], "again": [with_loss(0.6)]}
    texts = [f for fold in report_of(found, tmp_path).sections[0].folds for f in fold.findings]
    lines = [text for text in texts if "measured again" in text]
    assert len(lines) == 1
    assert lines[0].startswith("3 of 56 runs were measured again, because the hypervisor took up")
