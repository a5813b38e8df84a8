# SPDX-License-Identifier: MIT
"""Documents d and e: throughput against connections and users, up to saturation."""

from collections.abc import Iterator, Mapping, Sequence

from weir_lab.analysis import interleave
from weir_lab.analysis.ratio import confidence_for, ratio
from weir_lab.capacity.answers import SATURATED, limits
from weir_lab.capacity.sweep import SERVER
from weir_lab.experiments import published, sweeping
from weir_lab.experiments.experiment import Options, Step
from weir_lab.experiments.reproduction import (
    Check,
    Perform,
    Rounds,
    Scale,
    by_round,
    checked,
    contradictions,
    every,
    health,
    is_faster,
    kept,
    mark,
    mean_ms_of,
    middle,
    number_text,
    one_run,
    quotient_text,
    rate_of,
)
from weir_lab.report import capacity as reported
from weir_lab.report import sweeps
from weir_lab.report.capacity import Studied, tested_findings
from weir_lab.report.cards import multiples
from weir_lab.report.chart import Chart, Picture
from weir_lab.report.page import Fold, Grade, Headline, Section, Table
from weir_lab.rim import machine, runs
from weir_lab.rim.errors import LabError
from weir_lab.rim.runs import Work, World
from weir_lab.rim.store import Record, Store

# ---- d: processes against threads, and predictions beyond 20 connections ----

D_SEED = 1  # of the order of levels
# A request costs ab more than a thread's answer costs the server, so that the curve of `thread` is
# measured by `weir load` as well.
D_LOADED = "thread+load"


def _d_levels(scale: Scale) -> list[int]:
    if not scale.curve:
        return [published.D_TRAINING[-1]]
    training = [n for n in published.D_TRAINING if n == 1 or n % scale.every == 0]
    return training + [n for n in published.D_HELD_OUT if (n // 5) % min(scale.every, 3) == 0]


def d_steps(here: World, scale: Scale) -> list[Step]:
    """Steps for every level, both servers and both sizes, in random order, then in reverse.

    Held-out levels are measured among the training levels, so that drift of the machine is the
    same for both. The two servers follow each other immediately.
    """
    levels = [str(n) for n in _d_levels(scale)]
    rounds = interleave.rounds(levels, max(2, scale.repeats), D_SEED)
    ways = [("fork", "ab", 2500), ("thread", "ab", 8000)]
    if scale.curve and runs.has_load(here.weir):
        ways.append((D_LOADED, "load", 10_000))
    return [
        one_run(
            here,
            scale,
            f"d/{name}/{size}/{users}/{repeat}",
            name.partition("+")[0],
            Work(path=f"/{size}.bin", users=int(users), keep_alive=False),
            published.D_REQUESTS,
            rate=rate,
            generator=generator,
        )
        for repeat, turn in enumerate(rounds)
        for users in turn
        for size in published.D_SIZES
        for name, generator, rate in (ways if repeat % 2 == 0 else ways[::-1])
    ]


def d_section(store: Store, options: Options) -> Section:
    """The table, standard deviations, and predictions beside measurements."""
    rows = []
    for (model, size), theirs in published.D.items():
        found = kept(store, f"d/{model}/{size}/20/")
        rows.append(
            [
                theirs.label,
                number_text(theirs.rate),
                number_text(middle(found, rate_of)),
                number_text(theirs.mean_ms, 3),
                number_text(middle(found, mean_ms_of), 3),
                number_text(middle(kept(store, f"d/{model}+load/{size}/20/"), rate_of)),
            ]
        )
    findings = [health(kept(store, "d/"), "fork and thread at 1 to 60 connections")]
    pairs = {}
    for size, length in published.D_SIZES.items():
        both = by_round(store, f"d/thread/{size}/20/"), by_round(store, f"d/fork/{size}/20/")
        pairs[f"{length:,} bytes"] = both
    for model in ("fork", "thread"):
        small, big = (middle(kept(store, f"d/{model}/{n}/20/"), rate_of) for n in ("small", "big"))
        there = published.D[model, "small"].rate / published.D[model, "big"].rate
        if small and big:
            findings.append(
                f"{model}, 1,000 against 10,000 bytes: {small / big:.2f} times the throughput "
                f"here, {there:.2f} in the document."
            )
    faster, times = is_faster(
        pairs, "a thread for each connection is faster than a process", "thread's throughput is"
    )
    checks, folds = [faster], []
    for (model, size), found in _d_curves(store):
        studied = sweeping.study(
            f"d-{model}-{size}",
            found,
            options.placement,
            server=model,
            train_to=published.D_TRAINING[-1],
        )
        checks.append(_d_line(studied, f"{model}, {published.D_SIZES[size]:,} bytes"))
        folds.append(_d_fold(studied, f"{model}, {published.D_SIZES[size]:,} bytes"))
    there = published.D["thread", "small"].rate / published.D["fork", "small"].rate
    said = f" Here it has {times.value:.1f} times." if times else ""
    head = ["", "req/s: document", "here", "mean ms: document", "here", "req/s: weir load"]
    first = Table(
        name="d",
        title="Processes and threads",
        head=head,
        rows=rows,
        note="Here with 20 connections, as the document's own figures say it had.",
    )
    curves = [_d_picture(store, size) for size in published.D_SIZES] if folds else []
    return Section(
        title="d: a process or a thread for each connection",
        headline=Headline(
            sentence=f"The document's thread for each connection has {there:.1f} times the "
            f"throughput of a process for each.{said}",
            mark=mark(checks),
            pictures=[_d_multiples(pairs)],
        ),
        folds=[
            checked("d", checks),
            *folds,
            Fold(
                title="All figures",
                findings=[*findings, *contradictions(list(published.D.values()))],
                text=[
                    "The document fitted a straight line to 1 to 20 connections and drew it to 60. "
                    "Here 25 to 60 are measured as well. They judge the line and the other models.",
                    "A request costs ab more CPU time than a thread's answer costs the server. So "
                    "the forecast for thread is made from a second sweep, with weir load.",
                ],
                pictures=curves,
                tables=[first],
            ),
        ],
    )


def _d_curves(store: Store) -> Iterator[tuple[tuple[str, str], list[Record]]]:
    """The sweeps that have held-out levels."""
    for model in ("fork", "thread"):
        for size in published.D_SIZES:
            by_load, by_ab = f"d/{model}+load/{size}/", f"d/{model}/{size}/"
            prefix = by_load if kept(store, by_load) else by_ab
            if any(r["users"] > published.D_TRAINING[-1] for r in kept(store, prefix)):
                yield (model, size), every(store, prefix)


def _d_line(studied: Studied, what: str) -> Check:
    """Whether the forecast does what the document's straight line was to do."""
    seen = max((point.users for point in studied.found.training.points), default=0)
    claim = f"{what}: throughput beyond {seen:,} users can be predicted"
    judged = reported.mark(studied)
    holds = {Grade.GREEN: True, Grade.YELLOW: None, Grade.RED: False}[judged.grade]
    if not studied.has_forecast:
        holds = None
    return Check(reported=claim, holds=holds, seen=judged.reason.rstrip("."))


def _d_fold(studied: Studied, what: str) -> Fold:
    """The forecast of one server and size."""
    name = studied.name
    return Fold(
        title=f"The forecast for {what}",
        findings=tested_findings(studied),
        pictures=[sweeps.prediction(name, studied.found)],
        tables=[
            sweeps.scores(name, studied.found),
            sweeps.models(name, studied.found),
            sweeps.levels(name, studied.sweep, connects=studied.connects),
            sweeping.precision(studied),
        ],
    )


def _d_multiples(pairs: Mapping[str, tuple[Rounds, Rounds]]) -> Picture:
    """Thread against fork, there and here."""
    found = {}
    for (size, length), (ours, base) in zip(published.D_SIZES.items(), pairs.values(), strict=True):
        there = published.D["thread", size].rate / published.D["fork", size].rate
        found[f"document, {length:,} bytes"] = (there, there, there)
        if times := ratio(ours, base, confidence=confidence_for(len(pairs))):
            found[f"here, {length:,} bytes"] = (times.value, times.low, times.high)
    return multiples(
        "d-thread", "Throughput of a thread for each connection", "times that of fork", found
    )


def _d_picture(store: Store, size: str) -> Picture:
    chart = Chart(
        name=f"d-{size}",
        title=f"Throughput of fork and thread, {published.D_SIZES[size]:,} bytes",
        x="connections",
        y="requests/s",
    )
    for model in ("fork", "thread"):
        by_users: dict[int, list[float]] = {}
        for record in kept(store, f"d/{model}/{size}/"):
            by_users.setdefault(record["users"], []).append(rate_of(record))
        users = sorted(by_users)
        means = [sum(by_users[n]) / len(by_users[n]) for n in users]
        deviations = [_deviation(by_users[n]) for n in users]
        if users:
            chart.bars(model, users, means, deviations, chart.style())
    return chart.finish("Means of the repeats; bars are their standard deviation.")


def _deviation(values: Sequence[float]) -> float:
    mean = sum(values) / len(values)
    spare = max(1, len(values) - 1)
    return float((sum((v - mean) ** 2 for v in values) / spare) ** 0.5)


# ---- e: users who think ----

# A cached file costs this server a quarter of what it cost the document's server, and less than the
# request costs a generator on the only other core. The page of a folder is made for each request.
# Its cost is about that of the document's server.
E_FOLDER = "folder"
E_FILES = tuple(f"{E_FOLDER}/page-{n}.html" for n in range(1, 17))
E_PATH = f"/{E_FOLDER}/"
E_OPTIONS = "--threads 10 --listing on"
E_PROBE, E_PILOT = "probe/e", "pilot/e"
E_PROBE_S = 1.0


def _e_step(here: World, key: str, users: int, seconds: float, warmup_s: float) -> Step:
    return sweeping.step(
        here,
        key,
        "pool",
        Work(path=E_PATH, users=users),
        think_s=published.E_THINK_S,
        think="constant",
        seconds=seconds,
        warmup_s=warmup_s,
        options=E_OPTIONS,
    )


def e_measure(here: World, scale: Scale, store: Store, do: Perform) -> None:
    """Users swept past saturation, and the warm-up that a long run tells.

    Where saturation is, the CPU for each request tells. It falls as users grow, since one wake-up
    then serves several; so it is looked at again where it said saturation was.
    """
    if not runs.has_load(here.weir):
        raise LabError("document e has users who think: this weir has no `load`")
    think_s = published.E_THINK_S
    users = sweeping.PROBE_USERS
    for number in range(sweeping.PROBES):
        key = f"{E_PROBE}/{number}"
        machine.raise_descriptor_limit(users * 2)
        do([_e_step(here, key, users, E_PROBE_S, sweeping.least_warmup_s(think_s))])
        if not store.has(key):
            raise LabError("document e: the load that places the levels could not be measured")
        users = sweeping.knee_of(here, store.records[key], think_s)
    levels = e_levels(users)
    machine.raise_descriptor_limit(max(levels) * 2)
    if scale.pilot_s:
        do([_e_step(here, E_PILOT, _e_train_to(levels), scale.pilot_s, 0.0)])
    warmup_s = sweeping.settled(store, think_s, E_PILOT).warmup_s
    rounds = interleave.rounds([str(n) for n in levels], scale.single_repeats, D_SEED)
    do(
        [
            _e_step(here, f"e/{users}/{repeat}", int(users), scale.seconds, warmup_s)
            for repeat, turn in enumerate(rounds)
            for users in turn
        ]
    )


def e_levels(knee: int) -> list[int]:
    """Levels on both sides of the knee, and the document's own number of users."""
    return sorted({*sweeping.levels_past(knee), published.E_USERS})


def e_expected_s(_here: World, scale: Scale) -> float:
    """The time of the probes, of the pilot, and of every level."""
    start_s = sweeping.START_S + sweeping.least_warmup_s(published.E_THINK_S)
    levels = len(e_levels(published.E_USERS))
    probes_s = sweeping.PROBES * (start_s + E_PROBE_S)
    pilot_s = start_s + scale.pilot_s if scale.pilot_s else 0.0
    return probes_s + pilot_s + levels * scale.single_repeats * (start_s + scale.seconds)


def _e_train_to(levels: Sequence[int]) -> int:
    return levels[len(levels) * 2 // 3]


def e_section(store: Store, options: Options) -> Section:
    """Both curves, the knee, the bottleneck."""
    found = kept(store, "e/")
    sizes = sorted({r["users"] for r in found})
    settled = sweeping.settled(store, published.E_THINK_S, E_PILOT)
    studied = sweeping.study(
        "e",
        every(store, "e/"),
        options.placement,
        server="pool",
        train_to=_e_train_to(sizes),
        doubt=settled.doubt,
    )
    checks = [_e_limit(studied), _d_line(studied, "users who think")]
    whole = reported.section(
        studied,
        title="",
        method=[
            "The server had one core, the generator another, as in the document. Users requested "
            f"the page of a folder of {len(E_FILES)} files, which is made for each request. A "
            "cached file costs the server less than the request costs the generator, so the "
            "generator would be the limit.",
            settled.why,
        ],
        tables=[sweeping.precision(studied)],
    )
    return Section(
        title="e: a pool of threads, users who think for 40 ms",
        headline=Headline(
            sentence=f"The document's server saturates by its CPU at about {published.E_USERS:,} "
            f"users. {reported.sentence(studied)}",
            mark=mark(checks),
            numbers=reported.numbers(studied),
            pictures=whole.headline.pictures[:1],
            caption=whole.headline.caption,
        ),
        folds=[
            checked("e", checks),
            *whole.folds,
            Fold(
                title="All figures",
                findings=[
                    health(found, "pool"),
                    f"The document has {published.E_RATE:,.0f} requests per second of "
                    f"{published.E_RESPONSE_S * 1e3:.2f} ms at its limit. By Little's law it "
                    "agrees with itself.",
                ],
                tables=[_e_table(found)],
            ),
        ],
    )


def _e_limit(studied: Studied) -> Check:
    """Whether the server's CPU is the limit here, too."""
    what = "the CPU of the server is the limit"
    found = limits(studied.sweep)
    if not found:
        return Check(reported=what, holds=None, seen="no service demand was measured")
    seen = f"the {found[0].resource} was busy for {found[0].used:.0%} at the highest load"
    if found[0].used < SATURATED:
        return Check(reported=what, holds=None, seen=seen)
    return Check(reported=what, holds=found[0].resource == SERVER, seen=seen)


def _e_table(found: Sequence[Record]) -> Table:
    """The document's one point beside every level here, in ratios that machines share."""
    think_s = published.E_THINK_S
    by_users = {n: [r for r in found if r["users"] == n] for n in {r["users"] for r in found}}
    most = max((middle(here, rate_of) or 0.0) for here in by_users.values())

    def row(label: str, users: int, rate: float, response_s: float, part: str) -> list[str]:
        cycle_s = response_s + think_s
        little = rate * cycle_s / users
        return [
            label,
            f"{users:,}",
            number_text(rate),
            number_text(response_s * 1e3, 2),
            f"{response_s / think_s:.2f}",
            part,
            f"{little:.2f}",
        ]

    rows = [
        row("document", published.E_USERS, published.E_RATE, published.E_RESPONSE_S, "saturated")
    ]
    for users, here in sorted(by_users.items()):
        rate, mean_ms = middle(here, rate_of) or 0.0, middle(here, mean_ms_of) or 0.0
        rows.append(row("here", users, rate, mean_ms / 1e3, quotient_text(rate, most)))
    return Table(
        name="e",
        title="Users who think for 40 ms",
        head=["", "users", "req/s", "mean ms", "of think time", "of the most", "X (R + Z) / N"],
        rows=rows,
        note="The document gives one point, where its curve becomes flat. The last column is 1 by "
        "Little's law wherever the measurement is right, there and here.",
    )
