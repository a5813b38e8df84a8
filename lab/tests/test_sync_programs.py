# SPDX-License-Identifier: MIT
"""bench/sync and bench/cache, and `weir-lab sync` from outside."""

import json
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from command import LAB, WEIR
from waiting import LIMIT_S, pausing, processes, wait_until
from weir_lab.analysis import caching, eviction
from weir_lab.analysis.caching import Plan
from weir_lab.experiments import sync
from weir_lab.experiments.experiment import Options
from weir_lab.rim import machine, programs
from weir_lab.rim.errors import LabError
from weir_lab.rim.store import Record

BUILD = WEIR.parent
CACHE, SYNC = BUILD / "bench/cache", BUILD / "bench/sync"
TIMEOUT_S = 240  # ends a hang only: on a busy machine importing the lab takes long

pytestmark = [
    pytest.mark.skipif(not CACHE.exists(), reason="bench/cache is not built"),
    pytest.mark.timeout(300),
]

PLAN = Plan(workers=(1, 3), cores=2, objects=500, requests=12_000, exponents=(0.6, 1.0))
STRICT = ("lru", "rwlock", "semaphore", "stamps")


def replay(contestant: str, name: str, capacity: int, folder: Path, *words: object) -> Record:
    """The record of bench/cache for a trace of the plan."""
    path = folder / name
    PLAN.trace(name).tofile(path)
    workers, passes = words or (1, 1)
    return programs.answer(CACHE, contestant, path, PLAN.warm, capacity, workers, passes)


@pytest.mark.parametrize("capacity", [8, 50, 250, 500])
@pytest.mark.parametrize("name", PLAN.names)
def test_weir_has_the_hits_of_its_simulation(name: str, capacity: int, tmp_path: Path) -> None:
    requests = PLAN.trace(name).tolist()
    for policy in caching.OURS:
        hits = eviction.POLICIES[policy](requests, capacity)
        found = replay(policy, name, capacity, tmp_path)
        assert found["warm_hits"] == int(hits[: PLAN.warm].sum())
        assert found["hits"] == int(hits[PLAN.warm :].sum())
        assert (found["requests"], found["refused"]) == (PLAN.measured, 0)


@pytest.mark.parametrize("contestant", STRICT)
def test_all_strict_lru_caches_have_the_same_hits(contestant: str, tmp_path: Path) -> None:
    hits = eviction.lru(PLAN.trace(caching.SCAN).tolist(), 50)
    found = replay(contestant, caching.SCAN, 50, tmp_path)
    assert found["warm_hits"] + found["hits"] == int(hits.sum())


@pytest.mark.parametrize("contestant", caching.CONTESTANTS)
def test_several_workers_share_the_requests_and_the_cache(contestant: str, tmp_path: Path) -> None:
    found = replay(contestant, "zipf-1", 50, tmp_path, 3, 2)
    assert found["requests"] == 2 * PLAN.measured
    # How many hits there are depends on the order in which the kernel runs the workers.
    assert 0 < found["hits"] < found["requests"]
    assert found["hit_timed"] + found["miss_timed"] == found["timed"]
    assert found["timed"] == pytest.approx(found["requests"] / 31, abs=3)
    assert 0 <= found["p50_ns"] <= found["p90_ns"] <= found["p99_ns"] <= found["p999_ns"]
    assert found["ns"] > 0 < found["cpu_ns"]


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("nosuch", "trace", 0, 50, 1, 1),
        ("sieve", "trace", 0, 7, 1, 1),
        ("sieve", "trace", 0, 50, 0, 1),
        ("sieve", "trace", 0, 50, 65, 1),
        ("sieve", "trace", 0, 50, 1, 0),
        ("sieve", "nosuch", 0, 50, 1, 1),
        ("sieve", "trace", 3, 50, 1, 1),
        ("sieve", "empty", 0, 50, 1, 1),
    ],
)
def test_bench_cache_refuses_wrong_words(
    words: tuple[object, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    np.arange(3, dtype=np.uint32).tofile("trace")
    Path("empty").touch()
    with pytest.raises(LabError, match=r"usage: cache|No such file|no request is left"):
        programs.answer(CACHE, *words)


@pytest.mark.parametrize("words", [(), ("none", "thread", 2, 10), ("none", "threads", 65, 10)])
def test_bench_sync_refuses_wrong_words(words: tuple[object, ...]) -> None:
    with pytest.raises(LabError, match="usage: sync"):
        programs.answer(SYNC, *words)


def test_a_program_that_does_not_end_is_killed() -> None:
    with pytest.raises(LabError, match="did not end within 0 s"):
        programs.answer(SYNC, "semaphore", "processes", 4, 10**12, limit_s=0.3)
    mark = "\0".join(["semaphore", "processes", "4", str(10**12)])
    wait_until(lambda: not processes(mark), "end of the program and its processes")


def test_a_program_without_json_and_a_missing_program_are_named(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="printed no JSON"):
        programs.answer(Path("/bin/echo"), "hello")
    with pytest.raises(LabError, match="No such file"):
        programs.answer(tmp_path / "nosuch")


# ---- the command ----


def lab(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [str(LAB), "sync", *words, "--build", str(BUILD), "--out", str(folder)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S, cwd=folder.parent
    )


def points(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()][1:]


def test_counting_with_protection_loses_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    done = lab(*"counters --workers 1,4 --repeats 1 --additions 100000".split(), folder=folder)
    assert done.returncode == 0, done.stderr
    found = points(folder)
    assert len(found) == 5 * 2 * 2
    assert all(p["counted"] == p["expected"] for p in found if p["way"] != "none")
    assert all(p["counted"] == p["expected"] for p in found if p["workers"] == 1)
    page = (folder / "report.html").read_text()
    assert "With protection none is lost in 16 runs" in " ".join(page.split())


def test_caches_are_replayed_and_reported_and_the_command_continues(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    words = "caches --quick --workers 2 --repeats 3 --objects 200 --requests 4000".split()
    words += "--exponents 1 --sizes 5,20".split()
    done = lab(*words, folder=folder)
    assert done.returncode == 0, done.stderr
    page = Path(done.stdout.strip().splitlines()[-1])
    assert page == (folder / "report.html").resolve()
    assert list(folder.glob("run-*")) == []
    found = points(folder)
    assert len(found) == 2 * 2 + 2 * 2 * 5 * 3
    said = " ".join(done.stdout.split())
    assert "predict, in 4 of 4 cases" in said
    assert re.search(r"lru \(weir's\): .*(times that of|no difference from) sieve", said)
    for name in ("hits-zipf-1", "hits-scan", "time-zipf-1", "cpu-zipf-1", "time-scan", "ratio-lru"):
        assert {f"sync-{name}.{kind}" for kind in ("svg", "png", "csv")} <= {
            path.name for path in folder.iterdir()
        }
    again = lab(*words, folder=folder)
    assert "64 of 64 points are measured already" in " ".join(again.stderr.split())
    assert points(folder) == found


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"parts": ("nonsense",)}, "there is no part nonsense"),
        ({"workers": (1, 65)}, "workers are 1 to 64"),
        ({"sizes": (0.01,)}, "caches hold 8 objects at least"),
        ({"requests": 10}, "10 requests are too few"),
    ],
)
def test_a_wrong_question_starts_nothing(asked: dict[str, Any], said: str, tmp_path: Path) -> None:
    options = Options(build=BUILD, out=tmp_path / "out", placement=machine.pinned())
    with pytest.raises(LabError, match=said):
        sync.run(options, sync.question(**asked))
    assert not (tmp_path / "out").exists()


def test_a_build_without_the_programs_is_an_error(tmp_path: Path) -> None:
    options = Options(build=tmp_path, out=tmp_path / "out", placement=machine.pinned())
    with pytest.raises(LabError, match="run `make build` first"):
        sync.run(options, sync.question(quick=True))


def test_an_interrupted_replay_continues_where_it_was(tmp_path: Path) -> None:
    folder, build = tmp_path / "out", tmp_path / "build"
    words = "caches --quick --workers 1 --repeats 3 --objects 200 --requests 4000".split()
    words += "--exponents 1 --sizes 10,50".split()
    reached, _ = pausing(CACHE, build / "bench/cache", 12)
    (build / "bench/sync").symlink_to(SYNC)
    (build / "weir").symlink_to(BUILD / "weir")
    command = [str(LAB), "sync", *words, "--build", str(build), "--out", str(folder)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as running:
        wait_until(reached.exists, "pause in the middle", while_runs=running)
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=LIMIT_S)
    assert running.returncode == 130
    assert "the same command continues" in " ".join(said.split())
    assert list(folder.glob("run-*")) == []
    before = points(folder)
    done = lab(*words, folder=folder)
    assert done.returncode == 0, done.stderr
    assert f"{len(before)} of 64 points are measured already" in " ".join(done.stderr.split())
    assert points(folder)[: len(before)] == before
