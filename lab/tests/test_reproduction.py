# SPDX-License-Identifier: MIT
"""Conclusions from results: checks of statements, warm-up, halving, pages in docs/."""

from pathlib import Path

import numpy as np
import pytest

from weir_lab.capacity import records
from weir_lab.experiments import (
    capacity,
    documents_de,
    experiment,
    published,
    reproduce,
    reproduction,
    sweeping,
    sync,
)
from weir_lab.report.page import Fold, Grade, Headline, Report, Section, Table
from weir_lab.rim import runs
from weir_lab.rim.errors import LabError
from weir_lab.rim.machine import Placement
from weir_lab.rim.runs import World
from weir_lab.rim.store import Record, Store

PINNED = Placement(server=1, generator=0)


def run(users: int = 100, **load: object) -> Record:
    """A run of ab as a record; complete, unless `load` changes it."""
    answered = 200
    counted = load.pop("counted", answered)
    return {
        "users": users,
        "think_s": 0.0,
        "counted": counted,
        "counted_200": load.pop("counted_200", counted),
        "server_cpu_s": 0.0,
        "load": {
            "requests": answered,
            "failed": 0,
            "kept_alive": answered,
            "rate": 1000.0,
            "mean_s": users / 1000.0,
            "percentiles_s": {},
            "server_demand_s": 1e-3,
            "generator_cpu_s": answered * 1e-4,
            "judged": True,
            "doubts": [],
            **load,
        },
    }


def store(**found: Record) -> Store:
    """A store with these records; `_` in a key stands for a slash."""
    by_key = {key.replace("_", "/"): record for key, record in found.items()}
    return Store(path=Path("nowhere"), head={}, records=by_key)


def test_counts_agree_only_where_requests_and_statuses_do_in_every_run() -> None:
    assert reproduction.counts([run(), run()], "").holds is True
    assert reproduction.counts([run(), run(counted=199)], "").holds is False
    assert reproduction.counts([run(), run(counted_200=199)], "").holds is False
    apart = [run(counted=199), run(counted=201)]  # which a sum would hide
    assert reproduction.counts(apart, "").holds is False
    assert reproduction.counts([run(), run(counted=None)], "").holds is None
    assert reproduction.counts([], "").holds is None


def test_keep_alive_works_only_if_every_answer_kept_its_connection() -> None:
    assert reproduction.stays_open([run()], "").holds is True
    assert reproduction.stays_open([run(kept_alive=199)], "").holds is False
    assert reproduction.stays_open([], "").holds is None


def test_a_reset_that_ended_ab_is_found_without_a_result() -> None:
    reset = {"error": "ab ended with 104 and said: Connection reset by peer (104)"}
    assert reproduction.survives(store(b_500_0=run(500)), ["b/500/"], "").holds is True
    failed = reproduction.survives(store(b_500_0=run(500, failed=1)), ["b/500/"], "")
    assert failed.holds is False
    ended = reproduction.survives(store(b_500_0=run(500), b_500_1=reset), ["b/500/"], "")
    assert ended.holds is False
    assert "reset by peer" in ended.seen
    assert reproduction.survives(store(), ["b/500/"], "").holds is None


def test_each_point_of_a_document_works_or_not_or_is_open() -> None:
    right = reproduction.Check(reported="it runs", holds=True, seen="2 of 2")
    wrong = reproduction.Check(reported="it counts", holds=False, seen="1 of 2")
    undecided = reproduction.Check(reported="it is fast", holds=None, seen="0.9 to 1.1")
    fold = reproduction.checked("x", [wrong, right, undecided])
    assert [row[1] for row in fold.tables[0].rows] == ["does not work", "works", "open"]
    assert fold.findings == ["Of 3: 1 works, 1 does not work, 1 open."]
    assert reproduction.mark([right]).grade is Grade.GREEN
    assert reproduction.mark([right, undecided]).grade is Grade.YELLOW
    assert "Open: it is fast (0.9 to 1.1)" in reproduction.mark([right, undecided]).reason
    broken = reproduction.mark([wrong, right, undecided])
    assert broken.grade is Grade.RED
    assert "it counts (1 of 2)" in broken.reason


def series(middle: float, noise: float, rounds: int, seed: int) -> dict[int, float]:
    """Throughput by round, with noise."""
    rng = np.random.default_rng(seed)
    return {n: middle * float(np.exp(noise * rng.standard_normal())) for n in range(rounds)}


def judged(gains: dict[str, float], noise: float, rounds: int, seed: int = 1) -> bool | None:
    pairs = {
        name: (
            series(gain, noise, rounds, seed + 2 * n),
            series(1.0, noise, rounds, seed + 2 * n + 1),
        )
        for n, (name, gain) in enumerate(gains.items())
    }
    return reproduction.is_faster(pairs, "slower", "it is")[0].holds


@pytest.mark.parametrize(("rounds", "said"), [(1, "; 1 round is"), (2, "; 2 rounds are")])
def test_rounds_that_are_too_few_are_counted(rounds: int, said: str) -> None:
    pairs = {"10": (series(2.0, 0.1, rounds, 1), series(1.0, 0.1, rounds, 2))}
    seen = reproduction.is_faster(pairs, "slower", "it is")[0].seen
    assert seen.endswith(f"{said} too few to show it")


def test_a_statement_about_speed_is_shown_or_refuted_or_open() -> None:
    levels = ("10", "50", "100", "500", "1000")
    assert judged(dict.fromkeys(levels, 1.5), 0.02, 4) is True
    assert judged(dict.fromkeys(levels, 0.7), 0.02, 4) is False
    assert judged(dict.fromkeys(levels, 1.0), 0.1, 4) is None
    assert judged(dict.fromkeys(levels, 1.5), 0.02, 2) is None  # too few rounds for an interval
    assert judged({**dict.fromkeys(levels, 1.5), "10": 0.5}, 0.01, 6) is False  # at one level
    assert reproduction.is_faster({}, "slower", "it is")[0].holds is None


def test_noise_at_one_level_breaks_no_statement() -> None:
    levels = dict.fromkeys(("10", "50", "100", "500", "1000"), 1.3)
    wrong = [judged(levels, 0.15, 4, seed) is False for seed in range(0, 2000, 20)]
    assert sum(wrong) <= 5


def pilot(rates: list[float]) -> Store:
    """A store with a pilot run of these rates by second."""
    series = [{"seconds": 1.0, "rate": rate, "errors": 0} for rate in rates]
    return store(pilot=run(series=series))


def test_the_warm_up_is_as_long_as_the_pilot_took_to_settle() -> None:
    rng = np.random.default_rng(1)
    level = [float(n) for n in rng.normal(1000, 10, 20)]
    assert sweeping.settled(pilot(level), 0.0).warmup_s == sweeping.WARMUP_S
    slow = sweeping.settled(pilot([300.0, 500.0, 800.0, *level]), 0.0)
    assert slow.warmup_s == 3
    assert "took 3 s to settle" in slow.why
    assert slow.doubt == ""
    drift = sweeping.settled(pilot([1000 - 25 * n + level[n] / 100 for n in range(20)]), 0.0)
    assert "there is no steady state" in drift.doubt
    assert sweeping.settled(store(), 0.04).warmup_s == pytest.approx(sweeping.WARMUP_S + 0.04)


def test_a_point_that_drifts_to_its_end_is_void() -> None:
    series = [{"seconds": 1.0, "rate": 1000.0 - 20 * n, "errors": 0} for n in range(20)]
    assert "no steady state" in records.point(run(series=series), 0).doubt
    assert records.point(run(series=series[:5]), 0).doubt == ""


def confirmed(whole: float, halved: float, demand_s: float = 1e-3, count: int = 3) -> str:
    """The sentence about so many pairs of runs with these rates."""
    pairs: dict[str, Record] = {}
    for n in range(count):
        for key, rate in (("whole", whole), ("halved", halved)):
            pairs[f"{key}_{n}"] = run(60, rate=rate, mean_s=60 / rate, server_demand_s=demand_s)
    question = capacity.Question(server="epoll", users=(1, 60), train_to=1)
    return capacity.confirmation(store(**pairs), question, PINNED)


def test_halving_confirms_the_cpu_only_where_throughput_falls_as_predicted() -> None:
    assert "confirmed as the limit" in confirmed(1000, 500)
    assert "predicts 62%: the CPU is confirmed" in confirmed(800, 500)
    assert "not the limit" in confirmed(1000, 990)
    assert "more than its share" in confirmed(1000, 300)
    assert "busy for 20%, is not the limit" in confirmed(1000, 990, demand_s=2e-4)
    assert "(50% to 50% in 3 pairs)" in confirmed(1000, 500)
    assert "50% of its throughput (1 pair)." in confirmed(1000, 500, count=1)


def test_a_halving_that_failed_gives_its_reason() -> None:
    question = capacity.Question(server="epoll", users=(1, 60), train_to=1)
    failed: Record = {"error": "no control group for CPU can be made here"}
    said = capacity.confirmation(store(halved_0=failed), question, PINNED)
    assert "could not be confirmed" in said
    assert "no control group" in said


def test_findings_replace_the_text_between_the_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A\n\n<!-- written by weir-lab x --record -->\nold\n<!-- end -->\n\nB\n")
    tables = [Table(name=name, title=name, head=["n"], rows=[[name]]) for name in ("d", "d-levels")]
    section = Section(
        title="D", headline=Headline(sentence="Fast."), folds=[Fold(title="All", tables=tables)]
    )
    report = Report(title="", sections=[section], environment={})
    experiment.record(report, page, "x", but=("-levels",))
    text = page.read_text()
    assert text.startswith("# A\n")
    assert text.endswith("<!-- end -->\n\nB\n")
    assert "- Fast." in text
    assert "| d |" in text
    assert "d-levels" not in text
    assert "old" not in text
    with pytest.raises(LabError, match="has no line"):
        experiment.record(report, page, "y")
    with pytest.raises(LabError, match="No such file"):
        experiment.record(report, tmp_path / "none", "x")


@pytest.fixture
def steps_only(monkeypatch: pytest.MonkeyPatch) -> World:
    """A world whose steps can be planned, where no server and no generator is needed."""
    monkeypatch.setattr(runs, "generator", lambda *_words: None)
    monkeypatch.setattr(runs, "has_load", lambda _weir: True)
    nowhere = Path("nowhere")
    return World(build=nowhere, root=nowhere, work=nowhere, placement=PINNED)


def test_all_documents_and_sync_take_less_than_an_hour(steps_only: World) -> None:
    documents_s = sum(d.expected_s(steps_only, reproduce.FULL) for d in reproduce.DOCUMENTS)
    sync_s = sync.expected_s(sync.question(seed=1))
    assert 20 * 60 < documents_s + sync_s < 55 * 60


def test_the_plan_is_stated_with_its_times(
    steps_only: World, capsys: pytest.CaptureFixture[str]
) -> None:
    expected_s = reproduce.announce_plan(steps_only, reproduce.DOCUMENTS, reproduce.FULL, 600.0)
    said = " ".join(capsys.readouterr().err.split())
    assert said.startswith(f"reproduce takes about {expected_s / 60:.1f} minutes: a (prefork) ")
    assert "d (fork and thread)" in said
    assert said.endswith("sync 10.0 minutes.")


def test_threads_are_measured_to_60_connections_by_both_generators(steps_only: World) -> None:
    keys = {step.key for step in documents_de.d_steps(steps_only, reproduce.FULL)}
    users = [*published.D_TRAINING, *published.D_HELD_OUT]
    assert users[-1] == 60
    for name in ("fork", "thread", "thread+load"):
        for size in published.D_SIZES:
            assert {f"d/{name}/{size}/{n}/0" for n in users} <= keys


def test_the_documents_own_number_of_users_is_a_level() -> None:
    assert published.E_USERS in documents_de.e_levels(530)
    assert published.E_USERS in documents_de.e_levels(1700)


def test_the_forecast_for_threads_comes_from_the_generator_that_costs_less() -> None:
    by_ab = {f"d_thread_small_{n}_0": run(n) for n in (1, 20, 25)}
    ((_, found),) = documents_de._d_curves(store(**by_ab))
    assert len(found) == 3
    by_load = {f"d_thread+load_small_{n}_0": run(n, rate=2000.0) for n in (1, 20, 25, 60)}
    ((_, found),) = documents_de._d_curves(store(**by_ab, **by_load))
    assert [r["load"]["rate"] for r in found] == [2000.0] * 4
