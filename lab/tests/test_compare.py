# SPDX-License-Identifier: MIT
"""Comparisons: equals are found equal, others are not, and what was not measured is not judged."""

import math
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from bench import servers
from weir_lab.analysis import interleave, ratio
from weir_lab.experiments import compare
from weir_lab.report import comparison as compared
from weir_lab.report import suitability
from weir_lab.report.comparison import COMPARED, Comparison, Run
from weir_lab.report.spans import Spans
from weir_lab.rim import wording
from weir_lab.rim.errors import LabError
from weir_lab.rim.store import Store

WORKS = ("keep-alive 308 B x 64", "close 308 B x 64")
COMPARISONS = 200
DRAWS = 1200  # of the bootstrap: fewer than a report's, for the sake of time


def record(cpu_us: float = 10.0, **changes: object) -> dict[str, object]:
    """A run of a second."""
    load = {
        "requests": 10_000,
        "failed": 0,
        "seconds": 1.0,
        "rate": 10_000.0,
        "server_demand_s": cpu_us / 1e6,
        "generator_cpu_s": 0.1,
        "percentiles_s": {"50": 0.001, "99": 0.002},
        "judged": True,
        "doubts": [],
        "histogram": "",
    }
    return {
        "server": "epoll",
        "version": "1",
        "server_cpu_s": 0.1,
        "memory_kib": 1000.0,
        "memory_idle_kib": 900.0,
        "memory_load_kib": 1200.0,
        "began_unix_s": 0.0,
        "keep_alive": True,
        "path": "/308.bin",
        "users": 64,
        "load": load | changes,
    }


def comparison(
    figures: Mapping[str, Sequence[float]],
    changes: Mapping[str, Mapping[str, object]] | None = None,
    works: Sequence[str] = WORKS[:1],
) -> Comparison:
    """Servers with a CPU per request for each round."""
    runs = [
        Run(
            work=work,
            server=server,
            round=number,
            record=record(cpu, **(changes or {}).get(server, {})),
        )
        for work in works
        for server, each in figures.items()
        for number, cpu in enumerate(each)
    ]
    return Comparison(servers=list(figures), works=list(works), runs=runs)


def machine(seed: int) -> Callable[[], float]:
    """The slowdown of each run by the machine: drift, and sometimes another program."""
    drawn = random.Random(seed)
    drift = drawn.gauss(0, 0.08)

    def slowdown() -> float:
        nonlocal drift
        drift = 0.9 * drift + drawn.gauss(0, 0.08 * math.sqrt(1 - 0.9**2))
        tail = drawn.gauss(0, 1) / math.sqrt(drawn.gammavariate(1.5, 2) / 3)  # Student's t, 3 df
        outlier = drawn.expovariate(4) if drawn.random() < 0.05 else 0.0
        return math.exp(drift + 0.02 * tail + outlier)

    return slowdown


def drawn_comparison(seed: int, factor: float) -> Comparison:
    """A server against itself, with `factor` times the CPU, in interleaved rounds."""
    slowdown = machine(seed)
    runs = []
    for work in WORKS:
        for number, order in enumerate(interleave.rounds(["a", "b"], 6, seed)):
            for server in order:
                slow = slowdown()
                each = record(
                    10 * slow * (factor if server == "b" else 1.0),
                    rate=10_000 / slowdown(),
                    percentiles_s={"99": 0.002 * slowdown() ** 2},
                )
                each["memory_load_kib"] = 1200.0 * slowdown() ** 0.1
                runs.append(Run(work=work, server=server, round=number, record=each))
    return Comparison(servers=["a", "b"], works=WORKS, runs=runs, seed=seed)


def differs(found: Comparison, names: Sequence[str] = COMPARED) -> bool:
    return any(each.is_shown for name in names for each in found.judged(name).values())


def test_a_server_differs_from_itself_in_at_most_one_comparison_of_twenty(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ratio, "DRAWS", DRAWS)
    wrong = sum(differs(drawn_comparison(seed, 1.0)) for seed in range(COMPARISONS))
    assert wrong <= COMPARISONS // 20


def test_a_server_with_half_as_much_again_of_cpu_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ratio, "DRAWS", DRAWS)
    found = sum(differs(drawn_comparison(seed, 1.5), ["cpu"]) for seed in range(40))
    assert found >= 32


def test_a_server_named_twice_is_compared_with_itself() -> None:
    assert compare.numbered(["epoll", "pool", "epoll"]) == ("epoll", "pool", "epoll#2")
    assert compare.numbered(["epoll", "epoll#2", "epoll"]) == ("epoll", "epoll#2", "epoll#3")


def test_runs_with_failed_requests_do_not_count() -> None:
    figures = {"epoll": [10, 10.1, 10.2], "quick": [1, 1.01, 1.02]}
    found = comparison(figures, {"quick": {"failed": 3}})
    assert found.judged("cpu") == {}
    assert len(found.of(WORKS[0], "quick", void=True)) == 3
    assert compared.memory_table(found).rows[1][-2] == "3"


def rated(bound: Sequence[str], rates: Mapping[str, float]) -> compared.Judged:
    """The judgement of b's rate, where the generator limited some servers."""
    runs = [
        Run(
            work=WORKS[0],
            server=server,
            round=number,
            record=record(
                rate=rate * (1 + number / 1000) * (1 if server == "a" else 1 + number % 2 / 1000),
                generator_cpu_s=0.95 if server in bound else 0.5,
            ),
        )
        for server, rate in rates.items()
        for number in range(6)
    ]
    found = Comparison(servers=list(rates), works=WORKS[:1], runs=runs)
    return found.judged("rate")[WORKS[0], "b"]


def test_rates_that_the_generator_limited_are_not_judged() -> None:
    assert rated([], {"a": 100, "b": 90}).is_shown
    assert rated(["a", "b"], {"a": 100, "b": 90}).why_not.endswith("of both")
    assert rated(["b"], {"a": 100, "b": 90}).why_not.endswith("of b")
    faster = rated(["a"], {"a": 100, "b": 90})
    assert faster.is_shown
    assert faster.at_least


def test_figures_that_the_generator_doubts_are_not_judged() -> None:
    doubts = {"doubts": ["Little's law: ..."]}
    found = comparison({"epoll": [10, 11, 12], "pool": [11, 12, 12]}, {"pool": doubts})
    assert found.judged("rate")[WORKS[0], "pool"].why_not == "weir load doubts its figures of pool"
    assert found.judged("cpu")[WORKS[0], "pool"].why_not == ""
    assert compared.memory_table(found).rows[1][-1] == "doubted"


def test_figures_that_are_not_judged_are_named() -> None:
    busy = {"generator_cpu_s": 0.99}
    found = comparison({"epoll": [10, 11, 12], "pool": [11, 12, 12]}, {"epoll": busy, "pool": busy})
    assert "not judged for pool, as the generator was the limit of both" in " ".join(
        compared.findings(found, "rate")
    )


def test_findings_have_one_sentence_for_each_work() -> None:
    near = [10, 10.1, 9.9, 10.05, 9.95, 10]
    dear = [20, 20.2, 19.9, 20.1, 19.8, 20]
    found = comparison({"epoll": near, "percore": near[::-1], "thread": dear}, works=WORKS)
    sentences = compared.findings(found, "cpu")
    assert len(sentences) == 2
    assert "thread 2.00 times (1." in sentences[0]
    assert "no difference shown between epoll and percore" in sentences[0]


def test_the_least_cpu_suits_and_among_equals_the_least_memory() -> None:
    near = [10, 10.3, 9.9, 10.1, 9.8, 10]
    dear = [20, 20.2, 19.9, 20.1, 19.8, 20]
    runs = []
    for server, each, kib in (("a", near, 9000), ("b", near[::-1], 2000), ("c", dear, 100)):
        for number, cpu in enumerate(each):
            one = record(cpu)
            one["memory_load_kib"] = kib
            runs.append(Run(work=WORKS[0], server=server, round=number, record=one))
    found = Comparison(servers=["a", "b", "c"], works=WORKS[:1], runs=runs)
    advice = suitability.advise(found, ["a", "b", "c"])
    assert advice
    assert advice.best.name == "b"
    assert [c.name for c in advice.equals] == ["a"]
    assert [c.name for c in advice.others if c.uses_more_cpu] == ["c"]
    said = " ".join(suitability.sentences(advice, {"b": "small machines"}, "here"))
    assert "b suits this machine best (here)" in said
    assert "It is good for small machines." in said


def test_the_manual_has_words_for_every_model() -> None:
    models = Path(__file__).resolve().parent.parent.parent / "src" / "model" / "models.def"
    names = re.findall(r"^MODEL\((\w+)", models.read_text(), re.MULTILINE)
    words = wording.good_for()
    assert set(names) == words.keys()
    assert all(len(sentence) > 10 for sentence in words.values())


@pytest.mark.parametrize(("name", "flag"), [("nginx", "-v"), ("caddy", "version")])
def test_a_peers_version_is_read_without_a_start(tmp_path: Path, name: str, flag: str) -> None:
    program = tmp_path / name
    program.write_text('#!/bin/sh\n[ "$*" = ' + flag + " ] && echo 1.22.1 || echo serving 9.9.9\n")
    program.chmod(0o755)
    assert servers.peer_version(str(program)) == "1.22.1"


def store_of(question: compare.Question, cpu: Callable[[int, str], float]) -> Store:
    """Results of repeated comparisons."""
    records = {
        question.key(repeat, work, number, server): record(cpu(repeat, server) + number / 100)
        for repeat in range(question.repeats)
        for work in question.works()
        for number in range(question.rounds)
        for server in question.servers
    }
    head = {"machine": {"load_average_at_start": 0.0}, "plan": {"seed": 1}}
    return Store(path=Path("none"), head=head, records=records)


@pytest.mark.parametrize(
    ("differing", "said"),
    [(1, "as expected"), (20, "more differences than chance explains")],
)
def test_repeats_count_the_differences_found(differing: int, said: str) -> None:
    question = compare.Question(
        servers=("epoll", "epoll#2"), keep_alive=(True,), rounds=4, repeats=20
    )
    store = store_of(question, lambda n, server: 12 if n < differing and "#" in server else 10)
    section = compare.report(store, question).sections[0]
    assert f"{20 - differing} of 20 comparisons show no difference" in section.findings[0]
    assert said in section.findings[0]
    assert len(section.tables[0].rows) == 20
    assert len(section.pictures) == 1


def test_few_rounds_for_many_ratios_give_a_warning() -> None:
    many = compare.Question(servers=tuple("abcdefghij"), rounds=3)
    (said,) = compare.few_rounds(many)
    enough = int(re.findall(r"--rounds (\d+)", said)[0])
    assert 5 < enough < 20
    assert compare.few_rounds(replace(many, rounds=enough)) == []
    assert compare.few_rounds(compare.Question(servers=("a", "b"))) == []


def test_the_ranked_table_draws_an_interval_for_each_server() -> None:
    near = [10, 10.3, 9.9, 10.1, 9.8, 10]
    dear = [20, 20.2, 19.9, 20.1, 19.8, 20]
    found = comparison({"c": dear, "a": near, "b": near[::-1]})
    ranked = suitability.advise(found, found.servers)
    assert ranked
    table = suitability.table(ranked, {})
    assert [row[0] for row in table.rows][-1] == "c"
    spans = [span for span in table.spans if span]
    assert len(spans) == 3
    assert [span.shown for span in spans] == [False, False, True]
    assert spans[2].low < spans[2].value < spans[2].high
    said = suitability.ranking_sentence(ranked)
    assert "uses the least CPU per request" in said
    assert "c 2.0" in said
    drawn = Spans(table.spans, table.at)
    places = [drawn.place(span.value) for span in spans]
    assert places[0] == min(places)
    assert places[2] == max(places)
    assert "<rect" in drawn.draw(spans[2])
    assert "<circle" in drawn.draw(spans[0])


def test_equal_servers_are_called_equal() -> None:
    near = [10, 10.3, 9.9, 10.1, 9.8, 10]
    ranked = suitability.advise(comparison({"a": near, "b": near[::-1]}), ["a", "b"])
    assert ranked
    assert suitability.ranking_sentence(ranked).startswith("No difference in CPU per request")


def test_a_percentile_that_some_runs_lack_is_none_and_not_zero() -> None:
    """A run with few answers has no 99th percentile."""
    near = [10, 10.3, 9.9, 10.1]
    found = comparison({"a": near, "b": near[::-1]})
    first, *rest = found.runs
    load = first.record["load"] | {"percentiles_s": {"50": 0.003}}
    found = replace(found, runs=[replace(first, record={**first.record, "load": load}), *rest])
    assert found.middle(WORKS[0], "a", "p50") is not None
    assert found.middle(WORKS[0], "a", "p99") is None
    ranked = suitability.advise(found, found.servers)
    assert ranked
    figures = {row[0]: row[4] for row in suitability.table(ranked, {}).rows}
    assert figures["a"] == "-"
    assert figures["b"] != "-"


def test_a_figure_that_no_round_has_is_said_to_be_not_judged() -> None:
    none = {"percentiles_s": {"50": 0.001}}
    figures = {"a": [10.0, 10.1, 9.9], "b": [10.0, 9.9, 10.1]}
    found = comparison(figures, {"b": none})
    assert compared.findings(found, "p99") == [
        "99th percentile: not judged, because no round has it of both servers."
    ]
    more = comparison({**figures, "c": [10.0, 9.9, 10.1]}, {"b": none})
    (said,) = compared.findings(more, "p99")
    assert "no difference shown between a and c" in said
    assert said.endswith("not judged for b, as no round has it of both servers.")


def test_works_over_http_2_name_their_streams() -> None:
    question = compare.Question(servers=("epoll", "nginx"), users=(8,), streams=(1, 16))
    works = question.works()
    assert list(works) == ["HTTP/2 308 B x 8, 1 at once", "HTTP/2 308 B x 8, 16 at once"]
    assert [work.streams for work in works.values()] == [1, 16]
    assert all(work.keep_alive for work in works.values())


@pytest.mark.parametrize(
    ("question", "why"),
    [
        (compare.Question(servers=("epoll", "caddy"), streams=(1,)), "leave out caddy"),
        (
            compare.Question(servers=("epoll", "h2o"), streams=(1,), keep_alive=(False,)),
            "leave out --close",
        ),
    ],
)
def test_http_2_has_no_work_that_a_server_cannot_do(question: compare.Question, why: str) -> None:
    with pytest.raises(LabError, match=why):
        compare.check_question(question)
