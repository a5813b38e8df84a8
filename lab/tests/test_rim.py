# SPDX-License-Identifier: MIT
"""The output of generators, and stores that survive failures and interruptions."""

import errno
import json
import os
import re
import resource
import socket
import subprocess
from pathlib import Path

import pytest

from bench import process
from weir_lab.experiments import again, parse, published
from weir_lab.experiments.experiment import InterruptedExperimentError, Step, perform
from weir_lab.rim import generators, machine, runs
from weir_lab.rim.errors import LabError
from weir_lab.rim.store import FILE, Store, open_store, read

AB = """\
Document Path:          /index.html
Concurrency Level:      10
Time taken for tests:   0.033 seconds
Complete requests:      2000
Failed requests:        3
   (Connect: 0, Receive: 0, Length: 3, Exceptions: 0)
Non-2xx responses:      2
Keep-Alive requests:    1990
Total transferred:      23544000 bytes
Requests per second:    61353.46 [#/sec] (mean)
Time per request:       0.163 [ms] (mean)
Time per request:       0.016 [ms] (mean, across all concurrent requests)

Connection Times (ms)
              min  mean[+/-sd] median   max
Connect:        0    0   0.1      0       1
Total:          0    7   0.2      6      20
"""
AB_TABLE = "Percentage served,Time in ms\n0,0.025\n50,0.150\n99,0.802\n100,1.580\n"


def load_step(**changes: object) -> str:
    """A result of weir load with one step."""
    step = {
        "answers": 1000,
        "answers_reused": 990,
        "answers_per_second": 500.0,
        "measured_ns": 2_000_000_000,
        "response_mean_ns": 1.5e6,
        "little": {"connect_ns": 5e5, "late_ns": 2e4},
        "received_bytes": 566_000,
        "classes": {"1xx": 0, "2xx": 990, "3xx": 0, "4xx": 10, "5xx": 0},
        "errors": {"reset_before": 2, "connect_refused": 0},
        "response": {"p50_ns": 1_400_000, "p99_ns": None, "p99_9_ns": None, "hdr_v2_ns": "HIST"},
        "generator": {"cpu_ns_per_answer": 8000.0},
        "server": {"demand_ns": 7000.0},
        "doubts": [
            {"name": "lag", "reason": "Late.", "makes_invalid": True},
            {"name": "few_answers", "reason": "Few.", "makes_invalid": False},
        ],
    }
    return json.dumps({"steps": [step | changes]})


def test_the_output_of_ab_is_read() -> None:
    found = generators.parse_ab(AB, AB_TABLE, ["ab"], 0.5)
    assert (found.requests, found.failed, found.kept_alive) == (2000, 5, 1990)
    assert found.rate == 61353.46
    assert found.mean_s == pytest.approx(0.000163)
    assert found.percentiles_s == pytest.approx({"50": 0.00015, "99": 0.000802})
    assert found.total_ms == {"min": 0, "mean": 7, "sd": 0.2, "median": 6, "max": 20}


def test_other_output_of_ab_is_an_error() -> None:
    with pytest.raises(LabError, match="ab printed no line"):
        generators.parse_ab("apr_socket_recv: Connection reset by peer (104)", "", ["ab"], 0)


def test_the_output_of_weir_load_is_read() -> None:
    found = generators.parse_weir_load(load_step(), ["weir", "load"], 0.5)
    assert found.failed == 12
    assert found.mean_s == pytest.approx(0.002)
    assert found.percentiles_s == {"50": 0.0014}
    assert found.generator_cpu_s == pytest.approx(0.008)
    assert found.server_demand_s == pytest.approx(7e-6)
    assert found.doubts == ["Late."]
    assert found.doubt_names == ["lag"]
    assert found.late_s == pytest.approx(2e-5)
    assert generators.parse_weir_load(load_step(server=None), [], 0).server_demand_s == 0


@pytest.mark.parametrize("text", ["", "{}", '{"steps": []}', '{"steps": [{"answers": 1}]}'])
def test_other_output_of_weir_load_is_an_error(text: str) -> None:
    with pytest.raises(LabError, match="cannot be read"):
        generators.parse_weir_load(text, [], 0)


def test_a_missing_program_is_named_with_its_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(LabError, match="h2oo is missing: apt-get install h2oo"):
        machine.need("h2oo")


def new_store(folder: Path, *, fresh: bool = False, **plan: object) -> Store:
    return open_store(folder, plan, {"kernel": "Linux"}, fresh=fresh)


DIED = LabError("the server died")


def steps(
    done: list[str], keys: str, fails: str = "", stops: str = "", error: Exception = DIED
) -> list[Step]:
    def one(key: str) -> Step:
        def measure() -> dict[str, object]:
            if key == fails:
                raise error
            if key == stops:
                raise KeyboardInterrupt
            done.append(key)
            return {"rate": 1}

        return Step(key=key, seconds=1, measure=measure)

    return [one(key) for key in keys]


def test_an_interrupted_experiment_continues(tmp_path: Path) -> None:
    done: list[str] = []
    with pytest.raises(InterruptedExperimentError, match="2 of 4 points are in"):
        perform(new_store(tmp_path, a=1), steps(done, "abcd", stops="c"), "test")
    perform(new_store(tmp_path, a=1), steps(done, "abcd"), "test")
    assert done == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (DIED, "the server died"),
        (
            FileNotFoundError(2, "No such file or directory", "weir"),
            "weir: No such file or directory",
        ),
        (ConnectionResetError(104, "Connection reset by peer"), "Connection reset by peer"),
        (
            subprocess.TimeoutExpired("weir", 10),
            "Command 'weir' timed out after 10 seconds",
        ),
    ],
)
def test_a_server_that_dies_costs_only_its_point(
    error: Exception, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done: list[str] = []
    perform(store := new_store(tmp_path), steps(done, "abc", fails="b", error=error), "test")
    assert done == ["a", "c"]
    assert store.records["b"]["error"] == said
    assert f"b: {said}\n" in capsys.readouterr().err
    perform(new_store(tmp_path), steps(done, "abc"), "test")
    assert done == ["a", "c", "b"]  # what failed is tried again


def test_failures_of_the_system_end_the_experiment_in_plain_words(tmp_path: Path) -> None:
    error = PermissionError(13, "Permission denied", "/sys/fs/cgroup/lab")
    refused = [step for key in "abcd" for step in steps([], key, fails=key, error=error)]
    with pytest.raises(LabError, match=r"^/sys/fs/cgroup/lab: Permission denied; 0 of 4"):
        perform(new_store(tmp_path), refused, "test")


def test_a_further_try_that_fails_is_kept_in_plain_words(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    store.add("a", {"load": {}})
    (step,) = steps([], "a", fails="a", error=TimeoutError(110, "Connection timed out"))
    assert again.measure(store, "a", step.measure)["again"] == [{"error": "Connection timed out"}]


def test_a_truncated_line_is_dropped_and_its_point_measured_again(tmp_path: Path) -> None:
    done: list[str] = []
    perform(new_store(tmp_path), steps(done, "ab"), "test")
    file = tmp_path / FILE
    file.write_text(file.read_text()[:-9])
    perform(new_store(tmp_path), steps(done, "ab"), "test")
    assert done == ["a", "b", "b"]
    assert [record.get("key") for record in read(file)] == [None, "a", "b"]


def test_a_line_that_is_truncated_within_a_letter_is_dropped(tmp_path: Path) -> None:
    new_store(tmp_path).add("a", {})
    with (tmp_path / FILE).open("ab") as file:
        file.write('{"key": "µ'.encode()[:-1])
    assert list(new_store(tmp_path).records) == ["a"]
    assert [record.get("key") for record in read(tmp_path / FILE)] == [None, "a"]


def test_a_full_disk_costs_only_the_records_that_it_has_no_space_for(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    store.add("a", {})
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (store.path.stat().st_size + 100, before[1]))
    try:
        for key in ("b", "a"):
            with pytest.raises(LabError, match="File too large"):
                store.add(key, {"text": "x" * 1000})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not store.has("b")
    store.add("c", {})
    assert [record.get("key") for record in read(store.path)] == [None, "a", "c"]


@pytest.mark.parametrize(
    "line",
    [
        *(b"\xff\xfe", b"5", b"null", b'"key"', b'{"key": [1]}', b"[" * 100_000, b"{"),
        *(b'{"key": "a", "rate": %b}' % rate for rate in (b"NaN", b"-Infinity", b"1e999")),
    ],
)
def test_a_line_that_is_no_record_is_named(line: bytes, tmp_path: Path) -> None:
    store = new_store(tmp_path)
    store.path.write_bytes(store.path.read_bytes() + line + b"\n")
    with pytest.raises(LabError, match=re.escape(f"{store.path}:2")):
        read(store.path)


def test_the_results_of_another_plan_are_not_mixed_in(tmp_path: Path) -> None:
    perform(new_store(tmp_path, users=[1]), steps([], "a"), "test")
    with pytest.raises(LabError, match="--fresh"):
        new_store(tmp_path, users=[2])
    assert new_store(tmp_path, users=[2], fresh=True).records == {}


def test_a_running_server_of_another_user_is_measured_without_its_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The kernel tells anyone its CPU, but not its memory."""

    def refuse(_pid: int) -> float:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(process, "memory_kib", refuse)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        record = runs.against(
            generators.Load(url=url, users=1),
            machine.Placement(server=None, generator=None),
            os.getpid(),
            lambda _load, _core, _pid: generators.parse_ab(AB, AB_TABLE, ["ab"], 0.5),
        )
    assert record["server_cpu_s"] > 0
    assert record["memory_kib"] == 0


def test_levels_are_lists_and_ranges() -> None:
    assert parse.levels("1..3,10..30:10,5") == (1, 2, 3, 5, 10, 20, 30)
    for wrong in ("", "x", "0", "1..", "1..x"):
        with pytest.raises(LabError):
            parse.levels(wrong)


def test_the_published_figures_that_contradict_themselves_are_found() -> None:
    rows = [*published.A_CLOSE, *published.A_KEEP_ALIVE, *published.C, *published.D.values()]
    wrong = {row.label for row in rows if row.contradiction}
    assert wrong == {"favicon.ico", *(row.label for row in published.D.values())}


def test_a_range_of_levels_with_its_ends_exchanged_says_so() -> None:
    with pytest.raises(LabError, match=r"'5\.\.1' has no level: the first number is the larger"):
        parse.levels("1,5..1")
