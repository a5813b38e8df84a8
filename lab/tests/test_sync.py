# SPDX-License-Identifier: MIT
"""Computations about counters and caches, against theory, by hand, and by brute force."""

import json
import math
import random
import re
from collections import Counter
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sharing import PLAN, WAYS_NS, counted, played, timed
from weir_lab.analysis import caching, crowd, eviction, trace
from weir_lab.analysis.caching import Plan
from weir_lab.analysis.middle import middle
from weir_lab.experiments import parse, sync
from weir_lab.report import caches, counters, recorded
from weir_lab.report.page import Report
from weir_lab.rim.errors import LabError

# ---- traces ----


@pytest.mark.parametrize("exponent", [0.0, 0.6, 1.0, 1.2])
def test_requests_follow_zipfs_law(exponent: float) -> None:
    requests, objects = 200_000, 50
    counts = np.bincount(trace.zipf(objects, exponent, requests, seed=3), minlength=objects)
    shares = trace.zipf_shares(objects, exponent)
    assert shares.sum() == pytest.approx(1)
    assert shares[9] / shares[0] == pytest.approx(10**-exponent)
    surprise = float(((counts - requests * shares) ** 2 / (requests * shares)).sum())
    assert surprise < 49 + 5 * math.sqrt(2 * 49)  # chi-squared with 49 degrees of freedom


def test_the_same_seed_gives_the_same_requests() -> None:
    assert (trace.zipf(100, 1.0, 500, seed=1) == trace.zipf(100, 1.0, 500, seed=1)).all()
    assert (trace.zipf(100, 1.0, 500, seed=1) != trace.zipf(100, 1.0, 500, seed=2)).any()


def test_a_scan_requests_other_objects_and_leaves_the_trace_unchanged() -> None:
    before = np.arange(10, dtype=np.uint32) % 3
    after = trace.with_scans(before, 3, scan=2, between=3).tolist()
    assert after == [0, 1, 2, 3, 4, 0, 1, 2, 5, 3]


def test_a_plan_scans_one_request_of_five() -> None:
    scanned = PLAN.trace(caching.SCAN) >= PLAN.objects
    assert scanned.mean() == pytest.approx(1 / caching.SCAN_PART, abs=0.01)


# ---- policies ----


def hits_of(policy: str, requests: str, capacity: int) -> str:
    """The hits and misses as `.` and `x`."""
    found = eviction.POLICIES[policy]([ord(c) for c in requests], capacity)
    return "".join("x" if hit else "." for hit in found)


@pytest.mark.parametrize(
    ("policy", "requests", "hits"),
    [
        ("fifo", "abcabca", "......."),  # never there when it is wanted
        ("fifo", "abacab", "..x..."),  # a hit does not help a
        ("lru", "abacab", "..x.x."),  # it does here: b leaves for c
        ("lru", "abcabc", "......"),
        # a is marked: c's coming spares it and takes b; then the hand stands at c.
        ("sieve", "abacab", "..x.x."),
        # no object is marked: c takes a, a takes b.
        ("sieve", "abca", "...."),
        ("belady", "abcab", "...x."),  # for c, b leaves: a is wanted sooner
        ("belady", "abab", "..xx"),
    ],
)
def test_policies_agree_with_examples_worked_by_hand(policy: str, requests: str, hits: str) -> None:
    assert hits_of(policy, requests, 2) == hits


def test_the_hand_of_sieve_keeps_its_place() -> None:
    # Filled with a b c; a and b are asked for again. d: the hand spares a, spares b, takes c, and
    # has come to the end, so that it begins again at the oldest. e: a has no mark any more and
    # leaves; the hand stands at b. f takes b; d and e are there.
    assert hits_of("sieve", "abcabdefde", 3) == "...xx...xx"


def sieve_as_published(requests: list[int], capacity: int) -> list[bool]:
    """A plain, slow sieve: a list with the newest first, and an index for the hand."""
    queue: list[list[Any]] = []
    hand: list[Any] | None = None
    found = []
    for wanted in requests:
        entry = next((each for each in queue if each[0] == wanted), None)
        found.append(entry is not None)
        if entry:
            entry[1] = True
            continue
        if len(queue) == capacity:
            at = len(queue) - 1
            if hand is not None:
                at = next(place for place, each in enumerate(queue) if each is hand)
            while queue[at][1]:
                queue[at][1] = False
                at = at - 1 if at > 0 else len(queue) - 1
            hand = queue[at - 1] if at > 0 else None
            del queue[at]
        queue.insert(0, [wanted, False])
    return found


def lru_by_stamps(requests: list[int], capacity: int) -> list[bool]:
    used: dict[int, int] = {}
    found = []
    for now, wanted in enumerate(requests):
        found.append(wanted in used)
        if wanted not in used and len(used) == capacity:
            del used[min(used, key=lambda each: used[each])]
        used[wanted] = now
    return found


def most_hits(requests: tuple[int, ...], capacity: int) -> int:
    """The most hits over all possible evictions."""

    @cache
    def best(at: int, held: frozenset[int]) -> int:
        if at == len(requests):
            return 0
        wanted = requests[at]
        if wanted in held:
            return 1 + best(at + 1, held)
        if len(held) < capacity:
            return best(at + 1, held | {wanted})
        return max(best(at + 1, (held - {victim}) | {wanted}) for victim in held)

    return best(0, frozenset())


@pytest.mark.parametrize("capacity", [1, 2, 3, 7])
def test_policies_agree_with_plain_implementations(capacity: int) -> None:
    dice = random.Random(capacity)
    for _ in range(150):
        requests = [min(dice.randrange(9), dice.randrange(9)) for _ in range(60)]
        assert eviction.sieve(requests, capacity).tolist() == sieve_as_published(requests, capacity)
        assert eviction.lru(requests, capacity).tolist() == lru_by_stamps(requests, capacity)


def test_no_policy_beats_belady_and_brute_force_reaches_it() -> None:
    dice = random.Random(1)
    some = [tuple(dice.randrange(5) for _ in range(12)) for _ in range(200)]
    for requests in [*product(range(3), repeat=6), *some]:
        for capacity in (1, 2, 3):
            found = int(eviction.belady(requests, capacity).sum())
            assert found == most_hits(requests, capacity)
            for simulate in eviction.POLICIES.values():
                assert int(simulate(requests, capacity).sum()) <= found


@pytest.mark.parametrize("policy", eviction.POLICIES)
def test_objects_that_all_fit_are_missed_once_each(policy: str) -> None:
    requests = trace.zipf(30, 0.8, 2_000, seed=1).tolist()
    hits = eviction.POLICIES[policy](requests, 30)
    assert len(requests) - int(hits.sum()) == len(Counter(requests))


@pytest.mark.parametrize("exponent", [0.6, 1.0, 1.2])
def test_lru_has_the_hit_ratio_of_theory(exponent: float) -> None:
    objects, capacity = 1_000, 100
    requests = trace.zipf(objects, exponent, 120_000, seed=5).tolist()
    hits = eviction.lru(requests, capacity)[20_000:]
    expected = trace.lru_in_theory(trace.zipf_shares(objects, exponent), capacity)
    assert hits.mean() == pytest.approx(expected, abs=0.01)


def test_theory_holds_at_both_ends() -> None:
    shares = trace.zipf_shares(100, 0.0)
    assert trace.lru_in_theory(shares, 100) == 1
    assert trace.lru_in_theory(shares, 25) == pytest.approx(0.25)  # all alike: its share


# ---- figures ----


def test_a_median_lies_in_its_interval_which_covers_the_truth() -> None:
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(200):
        found = middle([float(v) for v in rng.normal(10, 1, size=8)])
        assert found.low <= found.value <= found.high
        covered += found.low <= 10 <= found.high
    assert covered >= 180


def test_one_run_has_an_infinite_interval() -> None:
    alone = middle([3.0])
    assert (alone.value, alone.low, alone.high) == (3.0, -math.inf, math.inf)


def test_blocks_are_the_requests_after_the_warm_up() -> None:
    assert PLAN.warm + PLAN.measured == PLAN.requests
    record = caching.play(PLAN, caching.SCAN, 20)
    requests = PLAN.trace(caching.SCAN).tolist()
    hits = eviction.lru(requests, PLAN.capacity(20))
    assert len(record["blocks"]["lru"]) == caching.BLOCKS
    assert sum(record["blocks"]["lru"]) == int(hits[PLAN.warm :].sum())
    assert record["warm_hits"]["lru"] == int(hits[: PLAN.warm].sum())
    assert caching.hit_ratio(record, "lru") == pytest.approx(float(hits[PLAN.warm :].mean()))


def test_only_unequal_policies_differ() -> None:
    rng = np.random.default_rng(1)
    claims = 0
    for _ in range(200):
        blocks = rng.binomial(1000, 0.5, size=(2, caching.BLOCKS)).tolist()
        record = {"requests": 10_000, "blocks": {"a": blocks[0], "b": blocks[1]}}
        claims += caching.advantage(record, "a", "b", 0.95).is_shown
    assert claims <= 20
    blocks = rng.binomial(1000, [[0.5] * 10, [0.7] * 10]).tolist()
    record = {"requests": 10_000, "blocks": {"a": blocks[0], "b": blocks[1]}}
    assert caching.advantage(record, "a", "b", 0.95).high < 0


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"timed_sizes": (1.0,)}, "8 objects at least"),
        ({"sizes": (101.0,)}, "all 200 at most"),
        ({"requests": 39}, "too few"),
        ({"exponents": (-1.0,)}, "between 0 and 3"),
        ({"sizes": ()}, "no cache sizes"),
    ],
)
def test_a_wrong_plan_is_refused(changed: dict[str, Any], said: str) -> None:
    whole = {**{name: getattr(PLAN, name) for name in Plan.__dataclass_fields__}, **changed}
    assert said in caching.why_not(Plan(**whole))
    assert caching.why_not(PLAN) == ""


def test_numbers_are_read_or_refused() -> None:
    assert parse.numbers("1,0.6,1") == (0.6, 1.0)
    assert parse.numbers("") == ()
    with pytest.raises(LabError, match="no list of numbers"):
        parse.numbers("1,x")


# ---- what is said ----


SAME = dict.fromkeys(caching.CONTESTANTS, 100.0)


def test_caches_of_equal_cost_show_no_difference() -> None:
    said = " ".join(caches.time_findings(timed(SAME, 0.05), PLAN))
    assert said.count("no difference from sieve shown") == 8
    assert said.count("one by one, of 2: no difference shown in 2") == 4
    assert "not quiet" not in said


def test_a_cache_that_costs_more_is_shown_with_its_ratio() -> None:
    said = caches.time_findings(timed({**SAME, "lru": 300.0, "semaphore": 50.0}, 0.001), PLAN)
    assert any("lru (weir's): 3.00 times that" in line and "more in 2." in line for line in said)
    assert any("semaphore: 0.50 times that" in line and "less in 2." in line for line in said)
    # A miss in five, each with a file to be read: 300 + 1000 against 100 + 1000.
    assert any("µs" in line and "lru 1.18 times that of sieve" in line for line in said)


def test_each_condition_has_the_same_weight() -> None:
    records = timed({**SAME, "lru": 200.0}, 0.0)
    for key, record in records.items():
        if key.startswith("time/scan/20/lru/"):
            record["ns"] *= 4
    cells = [caching.cell(records, PLAN, name, 20, 2) for name in PLAN.names]
    found = caching.on_the_whole(cells, "lru", "sieve", caching.WALL, 0.95)
    assert found
    assert found.value == pytest.approx(4)  # of 2 and 8
    assert caching.on_the_whole(cells, "lru", "nosuch", caching.WALL, 0.95) is None


def test_cpu_time_is_compared_on_a_busy_machine() -> None:
    said = caches.time_findings(timed(SAME, 0.05, busy=2.0), PLAN)
    assert "had a core for 50% of the time" in said[0]
    assert all("CPU time of an operation" in line for line in said[1:5])


def test_single_workers_show_whether_the_machine_is_busy() -> None:
    quiet, shared = {"ns": 100, "cpu_ns": 99}, {"ns": 100, "cpu_ns": 60}
    assert crowd.believable([quiet], caching.WALL, caching.CPU) is caching.WALL
    assert crowd.believable([shared], caching.WALL, caching.CPU) is caching.CPU
    assert crowd.believable([], caching.WALL, caching.CPU) is caching.WALL
    assert crowd.warning([quiet]) is None


def test_a_cache_that_differs_from_its_simulation_has_a_bug() -> None:
    assert "predict, in 4 of 4" in caches.hit_findings(played(agree=True), PLAN)[0]
    assert "one of them has a bug" in caches.hit_findings(played(agree=False), PLAN)[0]


def test_hits_are_compared_and_measured_against_the_optimum() -> None:
    said = " ".join(caches.hit_findings(played(agree=True), PLAN))
    assert "sieve hits more often than lru in 2" in said
    assert "Of the hits of a cache that knows the future: sieve" in said


def test_sections_leave_out_failed_points() -> None:
    assert caches.hit_section({}, PLAN).pictures == []
    assert caches.time_section({}, PLAN).findings == ["Nothing was measured."]
    assert counters.section({}, (1, 2), 1).findings == ["Nothing was measured."]


def test_lost_updates_and_protection_are_reported() -> None:
    section = counters.section(counted(250, WAYS_NS), (1, 2), 1)
    said = " ".join(section.findings)
    assert "Without protection 2 threads lose 25% of the updates" in said
    assert "With protection none is lost in 96 runs" in said
    assert re.search(r"named semaphore 2[456]\.\d \(2[456]", said)
    assert "atomic addition no difference shown, 1.0 (" in said
    lost = next(picture for picture in section.pictures if picture.name == "sync-lost")
    assert "line,processes,2,25" in lost.csv


def test_runs_without_lost_updates_are_called_chance() -> None:
    said = " ".join(counters.findings(counted(0, WAYS_NS), (1, 2), 1))
    assert "lost no update in these runs, by chance" in said
    records = counted(0, WAYS_NS)
    records[counters.key("none", "threads", 2, 3)]["counted"] = 600
    said = " ".join(counters.findings(records, (1, 2), 1))
    assert "lose up to 40% of the updates of a shared counter; in 5 of 6 runs none" in said


def test_protection_that_loses_updates_is_a_bug() -> None:
    records = counted(250, WAYS_NS)
    records[counters.key("atomic", "threads", 2, 0)]["counted"] = 999
    assert "lost in 1 of 96 runs: a bug" in " ".join(counters.findings(records, (1, 2), 1))


def test_a_plan_survives_as_json() -> None:
    question = sync.question(quick=True, sizes=(10.0,), exponents=(1.0,), workers=(1, 3))
    assert question.caches.timed_sizes == (10.0,)
    assert question.caches.names == ["zipf-1", "scan"]
    assert json.loads(json.dumps(question.caches.__dict__))["workers"] == [1, 3]


def test_the_key_of_a_step_names_its_conditions(tmp_path: Path) -> None:
    replayer = sync.Bench(program=tmp_path / "cache", folder=tmp_path, plan=PLAN)
    keys = [step.key for step in sync.cache_steps(replayer)]
    assert len(keys) == len(set(keys)) == 2 * 2 + 6 * 2 * 2 * 5
    orders = [key.split("/")[3] for key in keys if key.startswith("time/zipf-0.8/20/")]
    firsts = [orders[n] for n in range(0, len(orders), 10)]
    assert firsts[0] == firsts[2]
    assert firsts[0] != firsts[1]  # rounds are reversed


def test_a_page_gets_findings_between_its_marks() -> None:
    section = counters.section(counted(250, WAYS_NS), (1, 2), 1)
    report = Report(
        title="x",
        sections=[section],
        environment={"cores": 2, "load average at start": 0.123, "weir": "1"},
    )
    part = recorded.as_part(report, ["sync-how"])
    assert part.startswith(
        "- cores: 2\n- load average at start: 0.12\n\n### Shared counters\n\n- Without protection"
    )
    assert "| step | worker A |" in part
    assert "named semaphore | threads" not in part
    page = f"before\n{recorded.BEGIN.format(command='sync')}\nold\n{recorded.END}\nafter\n"
    new = recorded.put(page, "sync", part)
    assert new
    assert new.startswith("before\n")
    assert new.endswith("<!-- end -->\nafter\n")
    assert "old" not in new
    assert recorded.put(new, "sync", part) == new
    assert recorded.put("no marks", "sync", part) is None
