# SPDX-License-Identifier: MIT
"""Each command from outside: a small run, and its errors."""

import csv
import json
import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bench import certificate
from bench.slowdisk import SlowDisk, SlowDiskError
from command import LAB, WEIR, LabHere
from measured import lines, put
from waiting import LIMIT_S, pausing, processes, wait_until
from weir_lab.experiments import remake
from weir_lab.experiments.experiment import announce
from weir_lab.report.capacity import NO_LIMIT
from weir_lab.report.page import prose

BUILD = ("--build", str(WEIR.parent))
TIMEOUT_S = 240  # ends a hang only: on a busy machine importing the lab takes long

pytestmark = [
    pytest.mark.skipif(not WEIR.exists(), reason="weir is not built"),
    pytest.mark.timeout(5 * TIMEOUT_S),  # some tests run the command several times
]
needs_ab = pytest.mark.skipif(not shutil.which("ab"), reason="ab is not installed")


def lab(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs weir-lab as a user does."""
    command = [str(LAB), *words, "--build", str(WEIR.parent), "--out", str(folder)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S, cwd=folder.parent
    )


def records(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]


def check_whole(done: subprocess.CompletedProcess[str], folder: Path) -> str:
    """Checks the report: its path is the last line, and no temporary folder is left."""
    assert done.returncode == 0, done.stderr
    page = Path(done.stdout.strip().splitlines()[-1])
    assert page == (folder / "report.html").resolve()
    assert list(folder.glob("run-*")) == []
    head = records(folder)[0]
    assert isinstance(head["machine"], dict)
    assert {"kernel", "processor", "commit", "descriptors", "command"} <= head["machine"].keys()
    text = page.read_text()
    for section in remake.run(folder).sections:  # the results alone say the same
        assert all(prose(finding) in text for finding in section.findings)
    return text


@needs_ab
def test_reproduce_prints_both_tables_and_counts_agree(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    done = lab("reproduce", "c", "sync", "--tiny", folder=folder)
    assert re.match(r"reproduce takes about .*: c \(event loop\) .*, sync ", done.stderr)
    text = check_whole(done, folder)
    assert "140,821" in text
    assert "What sharing a cache costs" in text
    assert (folder / "sync" / "report.html").exists()
    points = records(folder)[1:]
    assert len(points) == 6
    for point in points:
        load = point["load"]
        assert isinstance(load, dict)
        assert point["counted"] == load["requests"] == 200
        assert load["failed"] == 0
    again = lab("reproduce", "c", "sync", "--tiny", folder=folder)
    assert "6 of 6 points are measured already" in again.stderr
    assert records(folder)[1:] == points


def test_compare_gives_ratios_and_the_report_can_be_made_again(
    lab_here: LabHere, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    words = "compare epoll epoll percore --rounds 3 --seconds 0.3 --keep-alive --users 4"
    text = check_whole(lab(*words.split(), folder=folder), folder)
    with (folder / "ratios.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [r["server"] for r in rows if r["figure"] == "CPU per request"] == ["epoll#2", "percore"]
    assert all(float(r["times epoll"]) > 0 for r in rows if "1000" not in r["times epoll"])
    assert {r["difference"].partition("shown")[0] for r in rows} <= {"", "not "}
    assert "suits this machine best" in text
    points = records(folder)[1:]
    assert len(points) == 9
    for point in points:
        assert isinstance(point["memory_idle_kib"], float)
        assert isinstance(point["memory_load_kib"], float)
        load = point["load"]
        assert isinstance(load, dict)
        assert load["histogram"]
        assert isinstance(load["series"], list)  # no interval may end where the CPU is busy
    for name in ("ratios.csv", "compare.csv", "percentiles-1.csv", "figure-cpu.svg", "session.png"):
        assert (folder / name).stat().st_size > 100
    assert lab_here("report", str(folder), "--out", str(tmp_path / "again"))[0] == 0
    assert (tmp_path / "again" / "report.html").read_text() == text


def loads(folder: Path) -> list[dict[str, Any]]:
    return [point["load"] for point in records(folder)[1:] if isinstance(point["load"], dict)]


def test_compare_measures_over_tls(lab_here: LabHere, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    words = "compare epoll epoll --rounds 3 --seconds 0.3 --close --users 4 --tls full"
    text = check_whole(lab(*words.split(), "--tls", "resume", folder=folder), folder)
    assert "close 308 B x 4 TLS, full handshakes" in text
    assert len(loads(folder)) == 12
    assert all(load["requests"] > 0 and load["failed"] == 0 for load in loads(folder))
    for kind in ("full", "resume"):
        each = [load for load in loads(folder) if load["command"][-2] == kind]
        assert len(each) == 6
        assert all(load["command"][2].startswith("https://") for load in each)
    if shutil.which("caddy"):
        status, said = lab_here(*words.split(), "caddy", "--out", str(tmp_path / "a"), *BUILD)
        assert status == 1
        assert "caddy is not set up for TLS" in said


def test_compare_measures_models_beside_a_slow_disk(tmp_path: Path) -> None:
    folder, page = tmp_path / "out", tmp_path / "page.md"
    page.write_text("a\n<!-- written by weir-lab compare --slow-disk --record -->\n<!-- end -->\n")
    words = "compare epoll thread --slow-disk 10 --slow-clients 2 --rounds 3 --seconds 0.5"
    done = lab(*words.split(), "--record", str(page), folder=folder)
    if "needs /dev/fuse" in done.stderr:
        pytest.skip(done.stderr)
    text = check_whole(done, folder)
    assert "Beside 2 clients of a disk that answers after 10 ms" in text
    assert len(records(folder)) == 1 + 3 * 2
    assert "| epoll | 2 |" in page.read_text()
    for name in ("slow-disk.csv", "slow-disk-p99.png", "slow-disk-files.svg"):
        assert (folder / name).stat().st_size > 100


def test_a_machine_without_fuse_is_named(
    lab_here: LabHere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_source: Path, _mountpoint: Path) -> None:
        raise SlowDiskError("no slow disk can be mounted here: Operation not permitted")

    monkeypatch.setattr(SlowDisk, "mount", refuse)
    words = ("compare", "all", "--slow-disk", "10", "--out", str(tmp_path / "out"))
    status, said = lab_here(*words, *BUILD)
    assert status == 1
    assert "Operation not permitted. A slow disk needs /dev/fuse" in said
    assert not (tmp_path / "out/results.jsonl").exists()


def test_capacity_measures_a_server_over_https(lab_here: LabHere, tmp_path: Path) -> None:
    folder, root = tmp_path / "out", tmp_path / "root"
    root.mkdir()
    (root / "index.html").write_text("hello")
    own = certificate.make(tmp_path / "tls")
    pair = ("--tls-certificate", str(own.certificate), "--tls-key", str(own.key))
    with weir_serving(root, "--listen", "https://127.0.0.1:0", *pair) as (_, port):
        words = f"capacity --url https://127.0.0.1:{port}/ --users 1..4 --train-to 3 --as-given"
        sweep = [*words.split(), "--seconds", "0.5", "--repeats", "1", "--pilot", "0"]
        status, said = lab_here(*sweep, "--out", str(folder), *BUILD)
        assert status == 1
        assert "is self-signed" in said
        assert not (folder / "results.jsonl").exists()
        trusted = lab(*sweep, "--cacert", str(own.certificate), folder=folder)
        assert "over TLS, where later connections resume sessions" in check_whole(trusted, folder)
        assert [load["failed"] for load in loads(folder)] == [0, 0, 0, 0]


def test_capacity_starts_a_server_with_tls(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    words = "capacity epoll --users 1..4 --train-to 3 --as-given --tls resume --no-halve"
    done = lab(*words.split(), *"--seconds 0.5 --repeats 1 --pilot 0".split(), folder=folder)
    check_whole(done, folder)
    assert len(loads(folder)) == 4
    assert all(load["command"][2].startswith("https://") for load in loads(folder))


def test_a_comparison_repeated_counts_the_differences_it_found(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    words = "compare epoll epoll --rounds 3 --seconds 0.3 --keep-alive --users 4 --repeat 2"
    text = check_whole(lab(*words.split(), folder=folder), folder)
    assert re.search(r"[012] of 2 comparisons show no difference between epoll and itself", text)
    assert len(records(folder)) == 1 + 2 * 3 * 2


@needs_ab
def test_capacity_answers_or_refuses(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    done = lab(
        *"capacity epoll --close --generator ab --users 1,2,4,8 --train-to 4".split(),
        *"--seconds 1 --repeats 1 --no-halve".split(),
        folder=folder,
    )
    text = check_whole(done, folder)
    assert "Saturates at N*" in text
    assert "The bottleneck is the" in text or NO_LIMIT in text  # a busy machine measures nothing


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("reproduce z", "no document z"),
        ("compare epoll", "name two servers or more"),
        ("compare epoll nosuch", "weir has no model nosuch"),
        ("compare epoll pool --users 0", "--users is 1 or more"),
        ("compare epoll pool --generator ab --seconds 0.5", "ab measures whole seconds"),
        ("compare epoll nginx --slow-disk 9", "compares models of weir; leave out nginx"),
        ("compare epoll nosuch --slow-disk 9", "weir has no model nosuch; there are fork"),
        ("compare epoll pool --slow-disk 9 --tls full", "--slow-disk goes with --users"),
        ("compare epoll pool --slow-clients 9", "--slow-clients and --record go with"),
        ("capacity --users 5,x", "is no number of users"),
        ("capacity --generator wrk", "there is no generator wrk"),
        ("capacity --server-core 999", "core 999 is not allowed"),
        ("capacity --url http://127.0.0.1:1/", "http://127.0.0.1:1/ does not answer"),
        ("capacity --url http://[::1", "is no URL: Invalid IPv6 URL"),
        ("capacity --url nonsense", "no URL that begins with http:// or https://"),
        ("capacity --url http://127.0.0.1:1/ --tls full", "--url that begins with https://"),
        ("capacity --insecure", "--url that begins with https://"),
        ("capacity --url https://127.0.0.1:1/ --generator ab", "ab verifies no certificate"),
        ("capacity --url https://127.0.0.1:1/", "does not answer"),
        ("capacity --pid 1", "--pid needs --url"),
        ("capacity --think-ms 5 --generator ab", "ab has no think time"),
    ],
)
def test_an_error_is_one_line(lab_here: LabHere, tmp_path: Path, words: str, said: str) -> None:
    status, text = lab_here(*words.split(), "--out", str(tmp_path / "out"), *BUILD)
    assert status == 1
    assert said in text


def test_a_folder_without_results_has_no_report(lab_here: LabHere, tmp_path: Path) -> None:
    assert "has no results.jsonl" in lab_here("report", str(tmp_path))[1]
    (tmp_path / "results.jsonl").write_text('{"kind": "point"}\n')
    assert "does not begin with the plan" in lab_here("report", str(tmp_path))[1]
    head = {"schema": 1, "plan": {"command": "other"}, "machine": {}}
    (tmp_path / "results.jsonl").write_text(json.dumps(head) + "\n")
    status, said = lab_here("report", str(tmp_path))
    assert status == 1
    assert "there is no report of 'other' results" in said


@pytest.mark.parametrize("command", ["compare epoll percore", "capacity epoll", "tour --tiny"])
def test_a_weir_that_cannot_be_executed_is_named(
    lab_here: LabHere, tmp_path: Path, command: str
) -> None:
    (tmp_path / "weir").write_text("no program\n")
    (tmp_path / "weir").chmod(0o755)
    where = ["--build", str(tmp_path), "--out", str(tmp_path / "out")]
    status, text = lab_here(*command.split(), *where)
    assert status == 1
    assert f"{tmp_path / 'weir'}: Exec format error" in text


def test_a_folder_that_cannot_be_written_is_named(lab_here: LabHere, tmp_path: Path) -> None:
    put(lines("pool-ka"), tmp_path / "results")
    (tmp_path / "file").touch()
    place = str(tmp_path / "file" / "report")
    status, text = lab_here("report", str(tmp_path / "results"), "--out", place)
    assert (status, text) == (1, f"weir-lab: {place}: Not a directory")


def test_square_brackets_in_a_path_are_printed(
    lab_here: LabHere, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(lines("pool-ka"), tmp_path / "results")
    place = tmp_path / "of [new] and [" / "old]"
    command = [str(LAB), "report", str(tmp_path / "results"), "--out", str(place)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == str(place / "report.html")
    announce(f"results in {place}")
    assert capsys.readouterr().err == f"results in {place}\n"
    (tmp_path / "file [").touch()
    place = tmp_path / "file [" / "x]"
    status, text = lab_here("report", str(tmp_path / "results"), "--out", str(place))
    assert (status, text) == (1, f"weir-lab: {place}: Not a directory")


def test_a_missing_build_is_named(lab_here: LabHere, tmp_path: Path) -> None:
    nowhere = ["--build", str(tmp_path / "none"), "--out", str(tmp_path / "out")]
    status, text = lab_here("compare", "epoll", "percore", *nowhere)
    assert status == 1
    assert "run `make build`, or install weir" in text


def test_a_wrong_option_is_a_usage_error(lab_here: LabHere) -> None:
    assert lab_here("compare", "--nonsense")[0] == 2


def test_a_missing_tool_is_named_before_anything_is_measured(
    lab_here: LabHere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_words, **_named: None)
    folder = tmp_path / "out"
    for command in ("reproduce c --tiny", "capacity epoll --generator ab"):
        status, text = lab_here(*command.split(), "--out", str(folder), *BUILD)
        assert status == 1
        assert "ab is missing: apt-get install apache2-utils" in text
    assert not (folder / "results.jsonl").exists()


@contextmanager
def weir_serving(
    root: Path, *words: str, port: int = 0
) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A server that the lab did not start: its process and its port."""
    ready, ready_end = os.pipe()
    command = [str(WEIR), "serve", str(root), "--quiet", "--ready-fd", str(ready_end)]
    command += [*(words or ("--listen", f"127.0.0.1:{port}")), "--stats-listen", "off"]
    with subprocess.Popen(command, pass_fds=[ready_end]) as serving:
        os.close(ready_end)
        try:
            with os.fdopen(ready) as urls:
                found = re.search(r":(\d+)", urls.read().partition("//")[2])
            assert found
            yield serving, int(found[1])
        finally:
            serving.terminate()


def test_a_running_server_that_dies_costs_one_message_and_the_sweep_continues_later(
    tmp_path: Path,
) -> None:
    folder, root, build = tmp_path / "out", tmp_path / "root", tmp_path / "build"
    root.mkdir()
    (root / "index.html").write_text("hello")
    reached, resume = pausing(WEIR, build / "weir", 2, pattern="load*http*")

    def sweep(port: int) -> list[str]:
        words = f"capacity --url http://127.0.0.1:{port}/ --users 1..4 --train-to 3 --as-given"
        return [*words.split(), "--seconds", "0.5", "--repeats", "1", "--pilot", "0"]

    with weir_serving(root) as (serving, port):
        command = [str(LAB), *sweep(port), "--build", str(build), "--out", str(folder)]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as running:
            wait_until(reached.exists, "third point", while_runs=running)
            serving.terminate()
            serving.wait(60)
            resume.touch()
            _, said = running.communicate(timeout=LIMIT_S)
        assert running.returncode == 1
        one = " ".join(said.split())
        assert one.count("no longer answers") == 1
        assert "2 of 4 points are in" in one
        assert len([r for r in records(folder)[1:] if "error" not in r]) == 2
    with weir_serving(root, port=port):
        done = lab(*sweep(port), folder=folder)
    text = check_whole(done, folder)
    assert "2 of 4 points are measured already" in " ".join(done.stderr.split())
    assert "the lab did not start the server" in text
    assert len({str(r["key"]) for r in records(folder)[1:] if "error" not in r}) == 4


def test_a_running_server_that_dies_in_the_pilot_costs_one_probe(tmp_path: Path) -> None:
    folder, root, build = tmp_path / "out", tmp_path / "root", tmp_path / "build"
    root.mkdir()
    (root / "index.html").write_text("hello")
    reached, resume = pausing(WEIR, build / "weir", 1, pattern="load*http*")

    def sweep(port: int) -> list[str]:
        words = f"capacity --url http://127.0.0.1:{port}/ --think-ms 5 --seconds 0.5 --repeats 1"
        return [*words.split(), "--pilot", "0"]

    with weir_serving(root) as (serving, port):
        command = [str(LAB), *sweep(port), "--build", str(build), "--out", str(folder)]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as running:
            wait_until(reached.exists, "second probe", while_runs=running)
            serving.terminate()
            serving.wait(60)
            resume.touch()
            _, said = running.communicate(timeout=LIMIT_S)
        assert running.returncode == 1
        assert " ".join(said.split()).count("no longer answers") == 1
        first = [r for r in records(folder)[1:] if "error" not in r]
        assert [str(r["key"]).split("/")[0] for r in first] == ["probe"]
    with weir_serving(root, port=port) as (serving, port):
        done = lab(*sweep(port), "--pid", str(serving.pid), folder=folder)
        assert "has the results of another experiment" in " ".join(done.stderr.split())
        done = lab(*sweep(port), folder=folder)
    check_whole(done, folder)
    assert "takes about" in done.stderr
    head, *points = records(folder)
    assert points[0] == first[0]
    setup = head["setup"]
    assert isinstance(setup, dict)
    levels = [str(r["key"]).split("/")[0] for r in points if str(r["key"])[0].isdigit()]
    assert sorted(map(int, levels)) == setup["users"]
    assert len(levels) >= 5


def test_the_obvious_command_needs_no_levels_on_one_core(tmp_path: Path) -> None:
    """All cores but one are taken away, so that server and generator share it."""
    folder = tmp_path / "out"
    words = "capacity epoll --think-ms 2 --seconds 0.5 --repeats 1 --pilot 0"
    core = sorted(os.sched_getaffinity(0))[0]
    command = [str(LAB), *words.split(), *BUILD, "--out", str(folder)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
        cwd=tmp_path,
        preexec_fn=lambda: os.sched_setaffinity(0, {core}),
    )
    text = check_whole(done, folder)
    assert "share one core" in text
    head, *points = records(folder)
    setup = head["setup"]
    assert isinstance(setup, dict)
    assert setup["page_bytes"] == 308
    assert setup["share"] == 1
    assert not [r for r in points if "error" in r and "halved" not in str(r["key"])]
    assert len(setup["users"]) >= 5


@needs_ab
def test_a_port_in_use_ends_the_sweep_after_three_points(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    words = "capacity epoll --close --generator ab --users 1..8 --train-to 4 --repeats 1"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = lab(*words.split(), "--server-options", f"--listen {port}", folder=folder)
    assert done.returncode == 1
    said = " ".join(done.stderr.split())
    assert "0 of 8 points are in" in said
    assert "Address already in use" in said
    assert len(records(folder)) == 1 + 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_run_keeps_its_points_and_ends_its_server(
    number: signal.Signals, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    command = [str(LAB), "compare", "epoll", "percore", "--rounds", "20", "--close"]
    command += ["--build", str(WEIR.parent), "--out", str(folder)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as running:
        results = folder / "results.jsonl"
        wait_until(
            lambda: results.exists() and len(records(folder)) >= 3, "point", while_runs=running
        )
        running.send_signal(number)
        _, said = running.communicate(timeout=LIMIT_S)
    assert running.returncode == 130
    assert "of 40 points are in" in " ".join(said.split())
    assert len(records(folder)) >= 3
    assert list(folder.glob("run-*")) == []
    assert processes(str(folder)) == []


def test_nohup_keeps_an_experiment_running(lab_here: LabHere) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    assert lab_here("--version")[0] == 0
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
