# SPDX-License-Identifier: MIT
"""Load from several machines: clocks, the choice of hosts, their commands, void steps."""

import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir_lab.analysis import clocks
from weir_lab.analysis.clocks import Beginning, ClockError, Exchange, Offset
from weir_lab.experiments import parse, shared_step, spread
from weir_lab.experiments.shared_step import Part
from weir_lab.rim.errors import LabError
from weir_lab.rim.fleet import Host, Place, Wish, at_once, choose, unlike

# ---- clocks ----

MS = 1_000_000
NOW = 1_795_000_000_000_000_000


@st.composite
def conversations(draw: st.DrawFn) -> tuple[int, list[Exchange]]:
    """A true offset, and exchanges with any delay in each direction."""
    true_ns = draw(st.integers(-(10**15), 10**15))
    exchanges = []
    ours_ns = NOW
    for _ in range(draw(st.integers(1, 20))):
        there, back, pause = (draw(st.integers(0, 50 * MS)) for _ in range(3))
        exchanges.append(
            Exchange(
                asked_ns=ours_ns,
                there_ns=ours_ns + there + true_ns,
                answered_ns=ours_ns + there + back,
            )
        )
        ours_ns += there + back + pause
    return true_ns, exchanges


@given(conversations())
def test_the_true_offset_is_never_out_of_bounds(drawn: tuple[int, list[Exchange]]) -> None:
    true_ns, exchanges = drawn
    found = clocks.offset(exchanges)
    assert found.low_ns <= true_ns <= found.high_ns
    assert abs(found.value_ns - true_ns) <= found.error_ns
    quickest = min(e.answered_ns - e.asked_ns for e in exchanges)
    whole = exchanges[-1].answered_ns - exchanges[0].asked_ns
    assert found.error_ns <= quickest / 2 + clocks.DRIFT_MAX * whole + 2


@given(conversations(), st.floats(-clocks.DRIFT_MAX, clocks.DRIFT_MAX), st.integers(0, 10**10))
def test_a_clock_that_drifts_stays_within_bounds(
    drawn: tuple[int, list[Exchange]], drift: float, later_ns: int
) -> None:
    true_ns, exchanges = drawn

    def drifted(ns: int) -> int:
        return round((ns - NOW) * drift)

    drifting = [
        Exchange(
            asked_ns=e.asked_ns,
            there_ns=e.there_ns + drifted(e.there_ns - true_ns),
            answered_ns=e.answered_ns,
        )
        for e in exchanges
    ]
    at_ns = exchanges[-1].answered_ns + later_ns
    found = clocks.offset(drifting).at(at_ns)
    assert found.low_ns - 2 <= true_ns + drifted(at_ns) <= found.high_ns + 2


@given(conversations(), st.sampled_from([-1, 1]))
def test_a_clock_that_was_set_is_detected(
    drawn: tuple[int, list[Exchange]], direction: int
) -> None:
    before = clocks.offset(drawn[1])
    step_ns = direction * (2 * before.error_ns + 2 * MS)
    after = Offset(
        low_ns=before.low_ns + step_ns, high_ns=before.high_ns + step_ns, at_ns=before.at_ns + MS
    )
    with pytest.raises(ClockError):
        before.also(after)


offsets = st.integers(-(10**12), 10**12)


@given(st.lists(st.tuples(offsets, st.integers(0, 20 * MS), st.integers(0, MS)), min_size=2))
def test_hosts_that_start_together_by_different_clocks_have_no_skew(
    hosts: list[tuple[int, int, int]],
) -> None:
    began = [
        Beginning(
            began_ns=NOW + late + off,
            lasted_ns=1000 * MS,
            offset=Offset(low_ns=off - error, high_ns=off + error, at_ns=NOW),
        )
        for off, late, error in hosts
    ]
    lates = [late for _, late, _ in hosts]
    found = clocks.skew(began)
    assert found.likely_ns == max(lates) - min(lates)
    errors = sorted((error for _, _, error in hosts), reverse=True)
    assert found.likely_ns <= found.most_ns <= found.likely_ns + errors[0] + errors[1]
    share = 1000 / (1000 + found.likely_ns / MS)
    assert clocks.overlap(began) == pytest.approx(2 * share - 1)


def test_a_single_host_has_no_skew() -> None:
    alone = Beginning(began_ns=NOW, lasted_ns=MS, offset=Offset(low_ns=-MS, high_ns=MS, at_ns=NOW))
    assert clocks.skew([alone]).most_ns == 0
    assert clocks.overlap([alone]) == 1


# ---- the choice of hosts, and their commands ----


def workers(*hosts: str, **more: object) -> dict[str, dict[str, Any]]:
    return {
        f"tcp://{host}:{number}": {"host": host, "name": f"tcp://{host}:{number}", **more}
        for number, host in enumerate(hosts, 4000)
    }


def test_one_of_several_workers_on_a_host_is_used_with_a_note() -> None:
    chosen = choose(workers("10.0.0.2", "10.0.0.1", "10.0.0.2"), Wish())
    assert [p.label for p in chosen.places] == ["10.0.0.1", "10.0.0.2"]
    assert chosen.notes == ["10.0.0.2 has 2 workers; one of them is used (--workers-per-host)"]
    both = choose(workers("10.0.0.2", "10.0.0.2"), Wish(per_host=2))
    assert [p.label for p in both.places] == ["10.0.0.2", "10.0.0.2 #2"]
    assert both.notes == []


def test_marked_workers_are_preferred() -> None:
    all_of_them = workers("10.0.0.1") | workers("10.0.0.2", resources={"LOADGEN": 1})
    assert [p.host for p in choose(all_of_them, Wish()).places] == ["10.0.0.2"]


def test_the_worker_on_the_servers_host_generates_no_load() -> None:
    all_of_them = workers("10.0.0.1") | workers("10.0.0.9", name="www")
    chosen = choose(all_of_them, Wish(server_host="www"))
    assert chosen.server is not None
    assert chosen.server.host == "10.0.0.9"
    assert [p.host for p in chosen.places] == ["10.0.0.1"]


def test_a_different_version_of_python_is_named() -> None:
    ours = {"python": "3.11", "dask": "2026.8.0"}
    assert unlike("anna", ours, dict(ours)) == ""
    said = unlike("anna", {"python": "3.12", "dask": "2026.8.0"}, ours)
    assert said.startswith("anna has Python 3.12 and Dask 2026.8.0, here are Python 3.11")


def test_a_host_that_does_not_answer_delays_no_other_host() -> None:
    released = threading.Event()
    try:
        with pytest.raises(LabError, match="slow did not answer"):
            at_once({"quick": lambda: True, "slow": released.wait}, 0.1)
    finally:
        released.set()


def test_a_host_gets_its_part_and_the_start_by_its_own_clock() -> None:
    asked = shared_step.Question(words=("http://h/", "--think", "40ms"), duration="2s")
    argv = asked.command("30", 1, 3, NOW)
    assert argv[:5] == ["weir", "load", "http://h/", "--think", "40ms"]
    assert " ".join(argv[5:]) == f"--users 30 --duration 2s --shard 1/3 --start-at {NOW} --json"
    paced = shared_step.Question(rates="500,2000.5", users=9, requests=100)
    assert paced.levels == ("500", "2000.5")
    assert "--rate 500 --users 9 --requests 100 --shard 0/1" in " ".join(
        paced.command("500", 0, 1, NOW)
    )


@pytest.mark.parametrize(
    ("words", "local", "said"),
    [
        ("http://h/", 0, "give the scheduler's address"),
        ("tcp://h:8786 http://h/", 2, "give the scheduler's address"),
        ("tcp://h:8786 http://h/ --shard=0/2", 0, "--shard cannot be used here"),
    ],
)
def test_wrong_words_are_refused(words: str, local: int, said: str) -> None:
    with pytest.raises(LabError, match=said):
        spread.split(words.split(), local=local)


def test_times_are_written_as_for_weir() -> None:
    found = [parse.seconds("-", t) for t in ("0", "5us", "1.5s", "2m")]
    assert found == pytest.approx([0, 5e-6, 1.5, 120])
    with pytest.raises(LabError, match="is no time"):
        parse.seconds("--wait", "10")


def part(
    label: str, began_ms: float, ahead_ms: float, *, set_ms: float = 0, doubt: str = ""
) -> Part:
    """A host with this late start and clock offset; `set_ms`: its clock was set meanwhile."""

    def known(ms: float, at_ns: int) -> Offset:
        return Offset(
            low_ns=round((ms - 0.1) * MS), high_ns=round((ms + 0.1) * MS), at_ns=NOW + at_ns
        )

    step = {
        "began_unix_ns": NOW + round((began_ms + ahead_ms) * MS),
        "measured_ns": 1000 * MS,
        "doubts": [{"name": doubt, "makes_invalid": True, "reason": f"About {doubt}."}]
        if doubt
        else [],
    }
    return Part(
        host=Host(place=Place(address="tcp://h:1", host="h", label=label), facts={}),
        command=(),
        result={"steps": [step]},
        before=known(ahead_ms, -1000 * MS),
        after=known(ahead_ms + set_ms, 2000 * MS),
    )


def doubted(*parts: Part, said: str = "") -> list[str]:
    whole = {"doubts": [{"name": said, "makes_invalid": True}]}
    return shared_step.doubts(parts, whole, NOW, 0.05, timed=True)


def test_clocks_that_are_hours_apart_void_no_step() -> None:
    far = part("anna", 0, 7_200_000)
    assert doubted(far, part("bert", 2, -86_400_000)) == []
    assert abs(far.by_our_clock()["steps"][0]["began_unix_ns"] - NOW) < MS


def test_the_reasons_of_a_void_step_are_listed() -> None:
    good = part("anna", 0, 5)
    assert (
        "may have begun 50.7 ms apart"
        in doubted(good, part("bert", 40, 9), part("cleo", 49.5, 0))[0]
    )
    assert doubted(good, part("bert", 0, 9, set_ms=80)) == ["bert: a clock was set meanwhile"]
    late = doubted(part("anna", 300, 5), part("bert", 301, 9))
    assert late == ["the last host began 301.0 ms after the common start"]
    assert "all hosts measured together for only 74%" in doubted(good, part("bert", 150, 9))[2]
    lame = part("bert", 0, 9, doubt="generator_cpu")
    assert doubted(good, lame) == ["bert: About generator_cpu."]
    assert doubted(good, lame, said="generator_cpu") == []
