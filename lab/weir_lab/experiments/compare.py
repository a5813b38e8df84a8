# SPDX-License-Identifier: MIT
"""Comparison of servers on the same work: interleaved rounds, fresh starts, ratios."""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from scipy import stats

from bench import apache, servers
from weir_lab.analysis import interleave
from weir_lab.analysis.ratio import Ratio, confidence_for
from weir_lab.experiments.experiment import (
    Options,
    Step,
    environment,
    perform,
    store_for,
    world,
)
from weir_lab.report import beside, suitability
from weir_lab.report import comparison as compared
from weir_lab.report.chart import RATIO_FAR, Chart, Picture
from weir_lab.report.comparison import COMPARED, FIGURES, Comparison, Run
from weir_lab.report.page import (
    Fold,
    Grade,
    Headline,
    Mark,
    Report,
    Section,
    Table,
    findings_first,
)
from weir_lab.rim import machine, runs, wording
from weir_lab.rim.errors import LabError
from weir_lab.rim.generators import FULL, RESUME
from weir_lab.rim.runs import Work, World
from weir_lab.rim.store import Record, Store

START_S = 0.8
WARMUP_S = 0.3
AGAIN = "#"  # `epoll#2` is epoll a second time, compared with itself
REACH_MAX = 2.5  # standard deviations; wider intervals show only large differences
TLS_SAID = {"": "", RESUME: " TLS", FULL: " TLS, full handshakes"}
CHANCE = 0.05  # the probability that a comparison of equals shows a difference


@dataclass(frozen=True, kw_only=True)
class Question:
    """The servers and the works of a comparison."""

    servers: tuple[str, ...]  # the first is what the others are compared with
    sizes: tuple[int, ...] = (308,)
    users: tuple[int, ...] = (64,)
    keep_alive: tuple[bool, ...] = (True, False)
    streams: tuple[int, ...] = ()  # of works over HTTP/2, which replace those over HTTP/1.1
    tls: tuple[str, ...] = ("",)  # as Work.tls
    rounds: int = 6
    seconds: float = 1.0
    generator: str = "ab"
    repeats: int = 1  # of the whole comparison

    def works(self) -> dict[str, Work]:
        """Every work, by its name."""
        if self.streams:
            return {
                f"HTTP/2 {size} B x {users}, {n} at once{TLS_SAID[tls]}": Work(
                    path=f"/{size}.bin", users=users, streams=n, tls=tls
                )
                for tls, size, users, n in product(self.tls, self.sizes, self.users, self.streams)
            }
        return {
            f"{'keep-alive' if kept else 'close'} {size} B x {users}{TLS_SAID[tls]}": Work(
                path=f"/{size}.bin", users=users, keep_alive=kept, tls=tls
            )
            for tls, kept, size, users in product(self.tls, self.keep_alive, self.sizes, self.users)
        }

    def key(self, repeat: int, work: str, number: int, server: str) -> str:
        """The key of a record."""
        again = f"again {repeat + 1}/" if self.repeats > 1 else ""
        return f"{again}{work}/{number}/{server}"

    @property
    def kinds(self) -> list[str]:
        """The servers, each once."""
        return list(dict.fromkeys(s.partition(AGAIN)[0] for s in self.servers))


def numbered(names: Sequence[str]) -> tuple[str, ...]:
    """Names each server uniquely: a repeated epoll becomes epoll#2."""
    found: list[str] = []
    for name in names:
        number = 2
        unique = name
        while unique in found:
            unique = f"{name.partition(AGAIN)[0]}{AGAIN}{number}"
            number += 1
        found.append(unique)
    return tuple(found)


def is_model(name: str) -> bool:
    """Whether the name is a model of weir."""
    name = name.partition(AGAIN)[0]
    return name not in servers.PEERS and not name.startswith("apache-")


def steps(here: World, question: Question, seed: int) -> list[Step]:
    """All rounds of one work, then of the next work; all of it again for each repeat."""
    generate = runs.generator(question.generator, here.weir)
    load: dict[str, object] = {"seconds": question.seconds}
    if question.generator == "load":
        load["warmup_s"] = WARMUP_S
    found = []
    for repeat in range(question.repeats):
        for work_name, work in question.works().items():
            order = interleave.rounds(question.servers, question.rounds, seed + repeat)
            for number, server in ((n, s) for n, each in enumerate(order) for s in each):

                def measure(server: str = server, work: Work = work) -> Record:
                    chosen = runs.product(here, server.partition(AGAIN)[0])
                    return runs.run(here, chosen, work, load, generate, weigh=True)

                found.append(
                    Step(
                        key=question.key(repeat, work_name, number, server),
                        seconds=question.seconds + START_S,
                        measure=measure,
                    )
                )
    return found


def comparison(store: Store, question: Question, seed: int, repeat: int = 0) -> Comparison:
    """The measurements of one repeat."""
    works = list(question.works())
    found = [
        Run(work=work, server=server, round=number, record=record)
        for work in works
        for server in question.servers
        for number in range(question.rounds)
        if (record := store.records.get(question.key(repeat, work, number, server)))
        and "error" not in record
    ]
    return Comparison(servers=question.servers, works=works, runs=found, seed=seed)


def where(store: Store) -> str:
    """The machine of the measurement, in a few words."""
    facts = store.head["machine"]
    return f"{facts.get('processor', 'this processor')}; {facts.get('placement', '')}"


def advice(store: Store, found: Comparison) -> list[str]:
    """The model that suits, where several were measured."""
    models = [s for s in found.servers if is_model(s) and AGAIN not in s]
    if len(models) < 2:
        return []
    advised = suitability.advise(found, models)
    if advised is None:
        return ["No model was measured under every work."]
    said = suitability.sentences(advised, wording.good_for(), where(store))
    if "on core" in str(store.head["machine"].get("placement")):
        said.append(
            "The server had one core. If it will have more, compare again with --shared: how the "
            "model uses them counts, too."
        )
    return said


QUESTIONS = {
    "cpu": "Which server uses less CPU?",
    "rate": "Which server answers more requests per second?",
    "p99": "Which server answers sooner?",
    "memory": "Which server uses less memory?",
}


def section(store: Store, question: Question, seed: int) -> Section:
    """The servers in the order of their CPU, then each figure, then how sound it is."""
    found = comparison(store, question, seed)
    ranked = suitability.advise(found, found.servers)
    folds = []
    if suits := advice(store, found):
        folds.append(Fold(title="Which model suits this machine?", findings=suits))
    shown = {
        "cpu": beside.figure_picture(found, "cpu"),
        "rate": beside.figure_picture(found, "rate"),
        "memory": beside.figure_picture(found, "memory"),
    }
    more = {"rate": beside.load_pictures(found), "p99": beside.percentile_pictures(found)}
    for name, asked in QUESTIONS.items():
        pictures = [beside.ratio_picture(found, name), shown.get(name), *more.get(name, [])]
        findings = compared.findings(found, name)
        folds.append(Fold(title=asked, findings=findings, pictures=[p for p in pictures if p]))
    sound = [beside.busy_picture(found), beside.session_picture(found)]
    with_load = "weir load" if question.generator == "load" else "ab"
    folds += [
        Fold(
            title="Is the measurement sound?",
            findings=[*few_rounds(question), *busy_machine(store), *lost_runs(store)],
            pictures=[p for p in sound if p],
            tables=[compared.memory_table(found)],
        ),
        Fold(
            title="All figures",
            tables=[compared.ratio_table(found), compared.figure_table(found)],
        ),
        Fold(
            title="How was it measured?",
            text=[
                f"{question.rounds} rounds of {question.seconds:g} s for each work, every server "
                "started again in each, in the order A B C, C B A. The load is a closed loop "
                f"without thinking, by {with_load}. A ratio is that of the rounds' geometric "
                f"means. Its interval has a confidence of {100 * found.confidence:.2f} %, so that "
                f"all {found.looks} together have 95 %."
            ],
        ),
    ]
    return Section(
        title="Servers compared", headline=_headline(store, question, found, ranked), folds=folds
    )


def _headline(
    store: Store, question: Question, found: Comparison, ranked: suitability.Advice | None
) -> Headline:
    """The ranked table, and what it shows."""
    if ranked is None:
        why = "No server has a valid run under every work. The last part gives the reasons."
        return Headline(
            sentence="Nothing can be compared.",
            mark=Mark(grade=Grade.RED, word="Do not rely on it", reason=why),
        )
    return Headline(
        sentence=suitability.ranking_sentence(ranked),
        mark=_mark(store, question, found, ranked),
        numbers=suitability.numbers(ranked.cheapest),
        tables=[suitability.table(ranked, wording.good_for())],
    )


def _mark(store: Store, question: Question, found: Comparison, ranked: suitability.Advice) -> Mark:
    limited = [s for w in found.works for s in found.servers if found.limit(w, s)]
    doubts = [*few_rounds(question), *busy_machine(store), *lost_runs(store)]
    if ranked.left_out:
        doubts.append(f"Not under every work: {', '.join(ranked.left_out)}.")
    if limited:
        names = ", ".join(dict.fromkeys(limited))
        doubts.append(
            f"The generator was the limit of {names}: CPU per request is judged, rates are not."
        )
    if doubts:
        return Mark(grade=Grade.YELLOW, word="Use it with care", reason=doubts[0])
    why = (
        f"{question.rounds} rounds with fresh starts in turn. All {found.looks} intervals hold "
        "together with 95 %."
    )
    return Mark(grade=Grade.GREEN, word="Reliable", reason=why)


def repeated_section(store: Store, question: Question, seed: int) -> Section:
    """The number of repeats that show a difference."""
    rows, worst = [], []
    shown_in = 0
    done = 0
    for repeat in range(question.repeats):
        found = comparison(store, question, seed + repeat, repeat)
        judged = {
            (work, server, name): each
            for name in COMPARED
            for (work, server), each in found.judged(name).items()
        }
        if not judged:
            continue
        done += 1
        shown = {key: each.ratio for key, each in judged.items() if each.is_shown}
        shown_in += bool(shown)
        rest = sum(bool(each.why_not) for each in judged.values())
        said = "; ".join(
            f"{FIGURES[name].title} of {server}, {work}: "
            f"{r.value:.2f} ({r.low:.2f} to {r.high:.2f})"
            for (work, server, name), r in shown.items()
        )
        rows.append([str(repeat + 1), str(len(judged) - rest), str(rest), said or "none"])
        worst.append(
            (
                f"{repeat + 1}",
                {k: e.ratio for k, e in judged.items() if k[2] == "cpu" and e.ratio.low > 0},
            )
        )
    picture = _repeated_picture(question, worst)
    return findings_first(
        "The same comparison, repeated",
        [_repeated_verdict(question, done, shown_in)],
        method=[
            f"{question.repeats} comparisons of {question.rounds} rounds of "
            f"{question.seconds:g} s, each judged on its own with intervals that hold together "
            "with 95 %. Of equals, one comparison in twenty may show a difference by chance."
        ],
        pictures=[picture] if picture else [],
        tables=[
            Table(
                name="repeats",
                title="Every comparison",
                head=["comparison", "ratios judged", "not judged", "differences shown"],
                rows=rows,
            )
        ],
    )


def _repeated_verdict(question: Question, done: int, shown_in: int) -> str:
    if not done:
        return "No comparison has enough rounds to be judged."
    text = f"{done - shown_in} of {done} comparisons show no difference"
    if len(question.kinds) > 1:
        return f"{text}."
    chance = float(stats.binom.sf(shown_in - 1, done, CHANCE)) if shown_in else 1.0
    if chance < CHANCE:
        return (
            f"{text} between {question.kinds[0]} and itself. There are more differences than "
            f"chance explains (p = {chance:.3f}). Trust no difference found on this machine now."
        )
    return f"{text} between {question.kinds[0]} and itself, as expected."


def _repeated_picture(
    question: Question, found: Sequence[tuple[str, dict[tuple[str, str, str], Ratio]]]
) -> Picture | None:
    keys = list(dict.fromkeys(k for _, each in found for k in each if k[2] == "cpu"))
    if not keys:
        return None
    chart = Chart(
        name="repeats",
        title="CPU per request in every comparison",
        x=f"times {question.servers[0]}",
        y="comparison",
        log_x=True,
        size=(7.2, 1.2 + 0.14 * len(found) * len(keys)),
    )
    for number, key in enumerate(keys):
        style = number % 7
        rows = [
            (place + (number - (len(keys) - 1) / 2) * 0.7 / len(keys), r.value, r.low, r.high, name)
            for place, (name, each) in enumerate(found)
            if (r := each.get(key))
        ]
        if rows:
            places, values, lows, highs, names = zip(*rows, strict=True)
            label = f"{key[1]}, {key[0]}"
            chart.whiskers(label, places, values, lows, highs, style, names)
    chart.rows_named([name for name, _ in found])
    chart.at(1.0)
    far = RATIO_FAR
    ends = [
        min(max(end, 1 / far), far)
        for _, each in found
        for r in each.values()
        for end in (r.low, r.high)
    ]
    chart.around(1.0, min(ends), max(ends))
    return chart.finish("An interval that excludes 1 shows a difference.", from_zero=False)


def files(question: Question) -> dict[str, bytes]:
    """A file of each size, of incompressible bytes."""
    return {f"{size}.bin": random.Random(size).randbytes(size) for size in question.sizes}


def check_question(question: Question) -> None:
    if len(question.servers) < 2:
        raise LabError("name two servers or more; `epoll epoll` compares one with itself")
    if min(*question.sizes, *question.users) < 1:
        raise LabError("each --size and each --users is 1 or more")
    crowd = [s for s in question.kinds if s.startswith("apache-")]
    if crowd and max(question.users) > apache.CONNECTIONS_MAX:
        raise LabError(f"{crowd[0]} is set up for {apache.CONNECTIONS_MAX} connections at most")
    if question.streams and question.keep_alive == (False,):
        raise LabError("--http2 keeps connections open; leave out --close")
    others = [s for s in question.kinds if not is_model(s) and s not in runs.HTTP2_PEERS]
    if question.streams and others:
        raise LabError(f"--http2 compares weir, nginx and h2o; leave out {', '.join(others)}")
    if question.generator == "ab":
        machine.need("ab")
        if question.seconds != int(question.seconds):
            raise LabError("ab measures whole seconds; weir load measures any")


def _try_all(here: World, question: Question) -> None:
    """Starts every server once and checks an answer, so that errors come first.

    Raises:
        LabError: a server did not start, or its answer is not the file.
    """
    for name in question.kinds:
        for work in question.works().values():
            with runs.running(here, runs.product(here, name), work):
                break


def measured(options: Options, question: Question) -> Store:
    """Measures the unfinished rounds."""
    check_question(question)
    machine.raise_descriptor_limit(max(question.users) * 2)
    plan = {"command": "compare", **question.__dict__, "placement": options.placement.sentence()}
    with world(options, files(question)) as here:
        for server in question.kinds:
            runs.product(here, server)  # raises for a missing server
        todo = steps(here, question, options.seed)
        store = store_for(options, plan, question.generator)
        if not all(store.has(step.key) for step in todo):
            _try_all(here, question)
        perform(store, todo, "compare")
        return store


def report(store: Store, question: Question) -> Report:
    """The report of the results; nothing is measured."""
    seed = int(store.head["plan"]["seed"])
    parts = repeated_section if question.repeats > 1 else section
    return Report(
        title=f"{', '.join(question.servers)} compared",
        sections=[parts(store, question, seed)],
        environment={**environment(store), **versions(store)},
        data=store.everything(),
        notes=[*busy_machine(store), *lost_runs(store)] if question.repeats > 1 else [],
    )


def versions(store: Store) -> dict[str, object]:
    """The version of every server."""
    found = {r["server"]: r["version"] for r in store.records.values() if "version" in r}
    return {"servers": ", ".join(f"{name} {number}" for name, number in found.items())}


def reach(rounds: int, looks: int) -> float:
    """The half-width of an interval, in standard deviations between rounds."""
    return float(stats.t.ppf((1 + confidence_for(looks)) / 2, rounds - 1)) / math.sqrt(rounds)


def few_rounds(question: Question) -> list[str]:
    """A warning where only large differences can be shown."""
    looks = len(question.works()) * (len(question.servers) - 1) * len(COMPARED)
    here = reach(question.rounds, looks)
    if here <= REACH_MAX:
        return []
    enough = next(n for n in range(question.rounds, 1000) if reach(n, looks) <= REACH_MAX)
    return [
        f"There are few rounds for {looks} ratios. The half-width of each interval is {here:.1f} "
        f"standard deviations between rounds. With --rounds {enough} it is "
        f"{reach(enough, looks):.1f}."
    ]


def lost_runs(store: Store) -> list[str]:
    """A sentence for each server with failed runs."""
    errors: dict[str, list[str]] = {}
    for key, record in store.records.items():
        if "error" in record:
            errors.setdefault(key.rpartition("/")[2], []).append(record["error"])
    return [
        f"{server} could not be measured in {len(found)} "
        f"{'run' if len(found) == 1 else 'runs'}; the last error: {found[-1]}"
        for server, found in errors.items()
    ]


def busy_machine(store: Store) -> list[str]:
    """A warning where other programs used the machine."""
    facts = store.head["machine"]
    load, cores = float(facts.get("load_average_at_start", 0)), int(facts.get("cores", 1))
    if load < max(0.5, cores / 4):
        return []
    return [
        f"Other programs used the machine at the start (load average {load:.1f} on {cores} cores). "
        "Intervals are wide, and rates are low."
    ]


def run(options: Options, question: Question) -> Report:
    """Compares and reports.

    Raises:
        LabError: a server is missing, or the question makes no sense.
    """
    return report(measured(options, question), question)
