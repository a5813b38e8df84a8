# SPDX-License-Identifier: MIT
"""The results of `weir load`: other programs read the same numbers from them, and the results of
several machines can be merged."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hdrh.histogram import HdrHistogram

from tests.e2e.running import TOP, WEIR, Server, start
from tests.waiting import LIMIT_S

DURATIONS = ("response", "intended", "connect", "first_byte", "lag")
PARTS = {"p50": 0.5, "p75": 0.75, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99_9": 0.999}

Json = dict[str, Any]


@pytest.fixture
def served(tmp_path: Path, site: Path) -> Iterator[Server]:
    server = start([str(site), "--listen", "127.0.0.1:0", "--model", "epoll"], tmp_path / "stderr")
    yield server
    server.stop()


def load(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [WEIR, "load", *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


def no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


def parsed(done: subprocess.CompletedProcess[str]) -> Json:
    """The printed object. It must agree with the exit status."""
    assert done.stderr == ""
    assert done.stdout.count("\n") == 1
    result: Json = json.loads(done.stdout, parse_constant=no_constant)
    assert result["exit_status"] == done.returncode
    assert result["valid"] == all(step["valid"] for step in result["steps"])
    assert result["valid"] == (done.returncode != 4)
    if result["valid"]:
        assert (done.returncode == 3) == (result["slos_met"] is False)
    return result


def decoded(durations: Json) -> HdrHistogram:
    return HdrHistogram.decode(durations["hdr_v2_ns"])


def is_quantile(whole: HdrHistogram, part: float, ns: int, within: float = 1e-3) -> bool:
    """Whether it is this quantile. Programs round the rank of a quantile in different ways."""
    total = whole.get_total_count()
    low, high = (
        whole.get_value_at_percentile(100 * min(max(part + by / total, 0), 1)) for by in (-1, 1)
    )
    return bool(low * (1 - within) <= ns <= high * (1 + within))


def names(value: object) -> set[str]:
    """The names of all members of all objects in a value."""
    if isinstance(value, list):
        return set().union(*map(names, value))
    if isinstance(value, dict):
        return set(value) | set().union(*map(names, value.values()))
    return set()


def document() -> str:
    return (TOP / "docs/load-json.md").read_text()


def listed_in_the_document() -> set[str]:
    """The names in the first column of its tables."""
    rows = re.findall(r"^\| (`.*?) \|", document(), re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`([\w]+)`", row)}


def test_the_document_describes_every_member(served: Server) -> None:
    url = served.url
    for loop in (["--think", "1ms"], ["--pace", "5ms"], ["--rate", "500"]):
        result = parsed(load(url, "-n", 300, *loop, "--json", "--slo", "p50<1s"))
        assert result["schema"] == 1
        (step,) = result["steps"]
        printed = names({**result, "steps": [{**step, "status": {}}]})
        documented = set(re.findall(r"`([\w]+)`", document()))
        assert printed <= documented
        missing = listed_in_the_document() - set(doubt_names()) - printed
        assert missing == set()
        assert step["answers"] == step["status"]["200"] == step["classes"]["2xx"] == 300
        assert step["little"]["applies"] == (loop[0] == "--think")


def doubt_names() -> list[str]:
    text = (TOP / "src/load/trust.h").read_text()
    return re.findall(r"LOAD_DOUBT\([\s\\]*(\w+), (?:true|false),", text)


def test_the_document_lists_every_error_and_every_doubt() -> None:
    text = (TOP / "src/load/result.h").read_text()
    errors = re.findall(r'LOAD_ERROR\((\w+), (\w+), "([^"]+)"\)', text)
    assert errors
    assert re.findall(r"^\| `(\w+)` \| (\w+) \| ([A-Z].+?) \|$", document(), re.MULTILINE) == errors
    doubts = document().split("## Doubts")[1].split("## ")[0]
    rows = re.findall(r"^\| (`.+?) \| (?:yes|no) \|", doubts, re.MULTILINE)
    assert sorted(re.findall(r"\w+", " ".join(rows))) == sorted(doubt_names())


def test_hdrhistogram_reads_the_histograms(served: Server, tmp_path: Path) -> None:
    hgrm, ndjson = tmp_path / "out.hgrm", tmp_path / "out.ndjson"
    result = parsed(
        load(served.url, "-u", 8, "-n", 20000, "--json", "--hgrm", hgrm, "--ndjson", ndjson)
    )
    (step,) = result["steps"]
    for name in DURATIONS:
        durations = step[name]
        whole = decoded(durations)
        assert whole.get_total_count() == durations["count"], name
        assert whole.significant_figures == 3
        if not durations["count"]:
            continue
        assert whole.get_max_value() == pytest.approx(durations["max_ns"], rel=1e-3)
        assert whole.get_mean_value() == pytest.approx(durations["mean_ns"], rel=1e-3, abs=1)
        for member, part in PARTS.items():
            if (printed := durations[f"{member}_ns"]) is not None:
                assert is_quantile(whole, part, printed), (name, member)
    response = decoded(step["response"])
    rows = re.findall(r"^ *([\d.]+) ([\d.]+) +(\d+) +([\d.]+)$", hgrm.read_text(), re.MULTILINE)
    assert len(rows) > 20
    for ms, part, count, _ in rows:
        assert is_quantile(response, float(part), round(float(ms) * 1e6))
        assert float(part) * 20000 - 1 <= int(count) <= 20000
    seconds = [json.loads(line) for line in ndjson.read_text().splitlines()]
    assert sum(second["answers"] for second in seconds) == 20000
    assert [second["second"] for second in seconds] == list(range(len(seconds)))


def test_the_cpu_time_of_the_server_gives_its_service_demand(served: Server) -> None:
    (step,) = parsed(load(served.url, "-n", 40000, "--server-pid", served.master.pid, "--json"))[
        "steps"
    ]
    server = step["server"]
    cpu_ns = step["server_user_ns"] + step["server_system_ns"]
    assert cpu_ns > 0  # it is counted in ticks of 10 ms
    assert server["demand_ns"] == pytest.approx(cpu_ns / step["answers"])
    assert server["cores_used"] == pytest.approx(cpu_ns / step["measured_ns"])
    assert server["one_core_answers_per_second"] == pytest.approx(1e9 / server["demand_ns"])
    assert server["saturation_users_one_core"] == pytest.approx(1)  # without a think time
    (unseen,) = parsed(load(served.url, "-n", 100, "--json"))["steps"]
    assert unseen["server"] is None


def test_every_format_has_the_same_numbers(served: Server, tmp_path: Path) -> None:
    saved = tmp_path / "one.json"
    done = load(served.url, "--steps", "1,3", "-n", 2000, "--json")
    saved.write_text(done.stdout)
    steps = parsed(done)["steps"]
    again = parsed(load("merge", saved, "--json"))["steps"]
    rows = list(csv.DictReader(io.StringIO(load("merge", saved, "--csv").stdout)))
    text = load("merge", saved).stdout
    assert len(rows) == len(again) == len(steps) == 2
    for step, same, row in zip(steps, again, rows, strict=True):
        for name in ("answers", "requests", "measured_ns", "received_bytes", "response", "status"):
            assert same[name] == step[name], name
        assert int(row["answers"]) == step["answers"]
        assert int(row["p99_ns"]) == step["response"]["p99_ns"]
        assert float(row["throughput_per_second"]) == pytest.approx(step["throughput_per_second"])
        assert row["valid"] == str(step["valid"]).lower()
        assert (row["protocol"], row["streams"]) == ("HTTP/1.1", "1")
    assert re.search(r"^ +users +requests/s", text, re.MULTILINE)
    assert max(map(len, text.splitlines())) <= 80
    one = load(served.url, "-n", 1000).stdout
    assert "closed loop, as measured" in one
    assert max(map(len, one.splitlines())) <= 80


def test_merged_shards_equal_one_run(served: Server, tmp_path: Path) -> None:
    plan = [served.url, "--think", "exp:2ms", "--users", "7", "--duration", "1s", "--json"]
    running = [
        subprocess.Popen(
            [WEIR, "load", *plan, "--shard", f"{i}/2", "--seed", str(i + 1)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        for i in range(2)
    ]
    files = [tmp_path / f"{i}.json" for i in range(2)]
    for process, file in zip(running, files, strict=True):
        file.write_text(process.communicate(timeout=LIMIT_S)[0])
        assert process.returncode in (0, 4)
    parts = [json.loads(file.read_text())["steps"][0] for file in files]
    result = parsed(load("merge", "--json", *files))
    (whole,) = result["steps"]
    assert result["merged_runs"] == 2
    assert whole["users"] == 7
    began = [part["began_unix_ns"] for part in parts]
    assert result["start_skew_ns"] == max(began) - min(began)
    for name in ("answers", "requests", "received_bytes", "connects"):
        assert whole[name] == sum(part[name] for part in parts), name
    for name in ("response", "first_byte", "connect", "lag"):
        both = decoded(parts[0][name])
        both.add(decoded(parts[1][name]))
        assert decoded(whole[name]).get_total_count() == both.get_total_count()
        for percent in (50, 90, 99, 99.9, 100):
            value = decoded(whole[name]).get_value_at_percentile(percent)
            assert value == both.get_value_at_percentile(percent), name
        assert whole[name]["min_ns"] == min(part[name]["min_ns"] for part in parts)
    for index, second in enumerate(whole["seconds"]):
        both = [part["seconds"][index] for part in parts if index < len(part["seconds"])]
        assert second["answers"] == sum(one["answers"] for one in both)
        added = decoded(both[0])
        for other in both[1:]:
            added.add(decoded(other))
        assert decoded(second).get_total_count() == added.get_total_count() == second["answers"]
        assert added.significant_figures == 2
        for percent in (50, 90, 99):
            printed = second[f"p{percent}_ns"]
            assert is_quantile(added, percent / 100, printed, within=1e-2)
    alone = parsed(load("merge", "--json", files[1]))
    assert not alone["valid"]
    assert "shards" in {doubt["name"] for doubt in alone["steps"][0]["doubts"]}


def test_files_that_cannot_be_merged_are_named(served: Server, tmp_path: Path) -> None:
    good, other, cut, text = (tmp_path / name for name in ("good", "other", "cut", "text"))
    good.write_text(load(served.url, "-n", 100, "--json").stdout)
    other.write_text(load(f"{served.url}/hello.txt", "-n", 100, "--json").stdout)
    cut.write_text(good.read_text()[:-1000])
    text.write_text(load(served.url, "-n", 100).stdout)
    damaged = tmp_path / "damaged"
    changed = json.loads(good.read_text())
    changed["steps"][0]["seconds"][0]["answers"] += 1
    damaged.write_text(json.dumps(changed))
    for files in (
        [cut],
        [damaged],
        [text],
        [tmp_path],
        [tmp_path / "none"],
        [good, other],
        [good, good],
    ):
        done = load("merge", *files)
        assert done.returncode == 1, files
        assert done.stdout == ""
        assert done.stderr.startswith(f"weir: load merge: {files[-1]}: ")
        assert done.stderr.count("\n") == 1
    for words in ([], ["--slo", "p99<10", good], ["--nonsense", good], ["--json", "--csv", good]):
        done = load("merge", *words)
        assert done.returncode == 2, words
        assert done.stdout == ""
        assert done.stderr.count("\n") == 1


def test_runs_against_different_sockets_are_not_merged(site: Path, tmp_path: Path) -> None:
    sockets = [tmp_path / "one.sock", tmp_path / "two.sock"]
    listen = [word for path in sockets for word in ("--listen", f"unix:{path}")]
    server = start([str(site), *listen], tmp_path / "stderr")
    files = [tmp_path / "one", tmp_path / "again", tmp_path / "two"]
    for file, path in zip(files, (sockets[0], *sockets), strict=True):
        file.write_text(load(f"unix:{path}:/hello.txt", "-n", 100, "--json").stdout)
    server.stop()
    assert load("merge", *files[:2]).stdout.startswith("unix:")
    refused = load("merge", files[0], files[2])
    assert refused.returncode == 1
    assert "has another load or server than the first file" in refused.stderr


def test_objectives_decide_the_exit_status_of_a_result(served: Server) -> None:
    missed = load(served.url, "-n", 1000, "--think", "1ms", "--slo", "p99<1us", "--json")
    assert parsed(missed)["slos_met"] is False
    assert missed.returncode in (3, 4)
    untold = load(served.url, "-n", 1000, "--think", "1ms", "--slo", "p99.99<1h", "--json")
    (step,) = parsed(untold)["steps"]
    assert untold.returncode == 4
    assert "few_for_slo" in {doubt["name"] for doubt in step["doubts"]}
    refused = load(f"{served.url}/nothing", "-n", 1000, "--think", "1ms", "--slo", "errors<50%")
    assert refused.returncode in (3, 4)
    assert "MISSED  errors<50%" in refused.stdout


def test_the_manual_lists_every_flag() -> None:
    manual = (TOP / "docs/man/weir-load.1").read_text()
    listed = re.findall(r"^\.It (?:Fl \w , )?Fl Fl ([\w-]+)", manual, re.MULTILINE)
    sources = [
        (TOP / path).read_text()
        for path in ("src/load/option.c", "src/program/output.c", "src/program/load.c")
    ]
    flags = [
        flag
        for source in sources
        for flag in re.findall(r"^ +\{ \"([\w-]+)\", (?:0|'\w'), ", source, re.MULTILINE)
    ]
    assert listed == [*flags, "help", "version"]
