# SPDX-License-Identifier: MIT
"""`weir load` beside other load generators, on the same servers: the rounds, the goals, the tables.

All generators load the same server. It is started once for a round. The generators load it one
after the other, and in the reverse order in the next round.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from bench import generators, rounds, servers
from bench.generators import (
    CROWD_THINK,
    CROWD_USERS,
    H2LOAD,
    KEEP_ALIVE,
    WEIR_LOAD,
    WEIR_SPIN,
    WRK,
    Generator,
    Take,
)
from bench.measure import verify
from bench.process import BenchError
from bench.report import DASH, Results, Row, number, spread
from bench.rounds import CHECK_S, Progress, Settings
from bench.servers import Choice, Product

SERVERS = (
    "nginx",
    "lighttpd",
    servers.WEIR,
)  # the goals use the first
SECONDS = 2  # of a round, by default
CROWD_ROUNDS = 3
CROWD_LENGTH = 5  # rounds' lengths
START_S = 0.1  # of a generator

CPU_AT_MOST = 0.75
AGREEMENT = 0.03
LAG_P99_BELOW_US = 1000
KIB_PER_USER_AT_MOST = 1.0
SATURATED = 0.95  # of its core, used by the server: then the server decides the throughput

Figure = Callable[[Take], float | None]


def products(choice: Choice) -> tuple[list[Product], list[str]]:
    """The servers to load: three by default."""
    found, missing = servers.products(choice)
    wanted = choice.only or SERVERS
    found = [p for p in found if p.name in wanted]
    if not found:
        raise BenchError(f"none of these servers is there: {', '.join(wanted)}")
    order = [*SERVERS, *(p.name for p in found)]
    found.sort(key=lambda p: order.index(p.name))
    return found, [m for m in missing if m.split()[0] in wanted]


def measure(
    found: list[Product],
    compared: list[Generator],
    weir: Path,
    settings: Settings,
    results: Results,
) -> None:
    """Runs all rounds, then those with many users. A failure is reported and left out."""
    crowd_s = CROWD_LENGTH * settings.seconds + generators.CROWD_WARM_UP_S + CHECK_S
    crowds = [1] + [CROWD_USERS] * min(CROWD_ROUNDS, settings.rounds)
    each_s = len(compared) * (settings.seconds + START_S) + CHECK_S
    progress = Progress(
        expected_s=settings.rounds * len(found) * each_s + len(crowds) * crowd_s,
    )
    for turn in range(settings.rounds):
        for product in found if turn % 2 == 0 else reversed(found):
            _compare(product, compared, turn, settings, results, progress)
    for users in crowds:
        what = f"{users:,} {'user' if users == 1 else 'users'}, {found[0].name}"
        try:
            setup = rounds.setup_for(found[0], KEEP_ALIVE, settings, results)
            with rounds.running(found[0], setup) as server:
                verify(server, KEEP_ALIVE, settings.root)
                seconds, cpu = CROWD_LENGTH * settings.seconds, settings.cores.generator
                crowd = generators.crowd(server, weir, users, seconds, cpu, settings.work)
            results.crowds.append(crowd)
            said = f"lag p99 {number(crowd.lag_p99_us)} µs, {crowd.memory_kib:,.0f} KiB"
        except BenchError as error:
            results.failures.append(f"{what}: {error}")
            said = f"FAILED: {error}"
        progress.tell(f"{what}: {said}", crowd_s)


def _compare(
    product: Product,
    compared: list[Generator],
    turn: int,
    settings: Settings,
    results: Results,
    progress: Progress,
) -> None:
    """One round: one server, loaded by each generator."""
    what = f"{turn + 1}/{settings.rounds} {product.name}"
    try:
        setup = rounds.setup_for(product, KEEP_ALIVE, settings, results)
        with rounds.running(product, setup) as server:
            verify(server, KEEP_ALIVE, settings.root)
            progress.tell(f"{what}: answers", CHECK_S)
            for generator in compared if turn % 2 == 0 else reversed(compared):
                try:
                    took = generators.take(
                        server, generator, turn, settings.seconds, settings.cores
                    )
                    results.takes.append(took)
                    said = f"{number(took.cpu_us_per_answer)} µs, {took.answers_per_s:,.0f}/s"
                except BenchError as error:
                    results.failures.append(f"{what}, {generator.name}: {error}")
                    said = f"FAILED: {error}"
                progress.tell(f"{what}, {generator.name}: {said}", settings.seconds + START_S)
    except BenchError as error:
        results.failures.append(f"{what}: {error}")
        progress.tell(f"{what}: FAILED: {error}", 0)


def _values(results: Results, server: str, generator: str, figure: Figure) -> dict[int, float]:
    """The figure by round, where it is known."""
    found = {
        t.round: figure(t) for t in results.takes if t.server == server and t.generator == generator
    }
    return {turn: value for turn, value in found.items() if value is not None}


def _ratios(
    results: Results, server: str, generator: str, figure: Figure, peer: str = WRK
) -> list[float]:
    """The generator's figure divided by its peer's, in each round that has both."""
    ours = _values(results, server, generator, figure)
    theirs = _values(results, server, peer, figure)
    return [ours[turn] / theirs[turn] for turn in sorted(ours.keys() & theirs.keys())]


def _cpu(take: Take) -> float:
    return take.cpu_us_per_answer


def _rate(take: Take) -> float:
    return take.answers_per_s


def _mean(take: Take) -> float | None:
    return take.mean_us


def _server_share(take: Take) -> float:
    return take.server_share


def _generator_share(take: Take) -> float:
    return take.generator_share


def _named(results: Results) -> list[str]:
    """The generators that measured anything, in their order."""
    return list(dict.fromkeys(t.generator for t in sorted(results.takes, key=lambda t: t.round)))


def _with_spread(values: Sequence[float], show: Callable[[float], str]) -> str:
    return f"{show(median(values))} ±{show(spread(values))}" if values else DASH


def cpu_table(results: Results) -> list[Row]:
    """CPU microseconds of the generators, and as a multiple of wrk's."""
    names = _named(results)
    rows = [["generator's CPU µs per answer", *names]]
    for server in results.servers:
        row = [server]
        for name in names:
            cell = _with_spread([*_values(results, server, name, _cpu).values()], number)
            ratios = _ratios(results, server, name, _cpu)
            if name != WRK and ratios:
                cell += f" ({median(ratios):.2f}x ±{spread(ratios):.2f})"
            row.append(cell)
        rows.append(row)
    return rows


def _agreement_table(results: Results, title: str, figure: Figure, wrk: str) -> list[Row]:
    others = [name for name in _named(results) if name != WRK]
    rows = [[title, *others, wrk]]
    for server in results.servers:
        row = [server]
        for name in others:
            row.append(_with_spread(_ratios(results, server, name, figure), "{:.3f}".format))
        row.append(_with_spread([*_values(results, server, WRK, figure).values()], number))
        rows.append(row)
    return rows


def share_table(results: Results) -> list[Row]:
    """The utilisation of both cores, which shows whose limit the throughput is."""
    names = _named(results)
    rows = [["core of the server / of the generator", *names]]
    for server in results.servers:
        row = [server]
        for name in names:
            shares = [
                _values(results, server, name, figure).values()
                for figure in (_server_share, _generator_share)
            ]
            row.append(" / ".join(f"{median(s):.0%}" if s else DASH for s in shares))
        rows.append(row)
    return rows


def _kib_per_user(results: Results) -> float | None:
    alone = [c.memory_kib for c in results.crowds if c.users == 1]
    many = [c.memory_kib for c in results.crowds if c.users == CROWD_USERS]
    if not alone or not many:
        return None
    return (median(many) - median(alone)) / (CROWD_USERS - 1)


def crowd_table(results: Results) -> list[Row]:
    """The figures of the runs with many users."""
    many = [c for c in results.crowds if c.users == CROWD_USERS]
    if not many:
        return []
    kib = _kib_per_user(results)
    doubts = sorted({doubt for c in many for doubt in c.doubts})
    return [
        [f"{CROWD_USERS:,} users, think time {CROWD_THINK}", WEIR_LOAD],
        ["server", many[0].server],
        ["answers a second", f"{median(c.answers_per_s for c in many):,.0f}"],
        ["errors", str(sum(c.errors for c in many))],
        ["mean response, µs", number(median(c.mean_us for c in many))],
        ["lag p50, µs", _with_spread([c.lag_p50_us for c in many], number)],
        ["lag p99, µs", _with_spread([c.lag_p99_us for c in many], number)],
        ["lag max, µs", number(max(c.lag_max_us for c in many))],
        ["CPU µs per answer", number(median(c.cpu_us_per_answer for c in many))],
        ["share of its core", f"{median(c.core_share for c in many):.0%}"],
        ["KiB per user", DASH if kib is None else number(kib)],
        ["all of its memory, KiB", f"{median(c.memory_kib for c in many):,.0f}"],
        ["valid", "yes" if not doubts else f"no: {', '.join(doubts)}"],
    ]


def _verdict(text: str, value: float | None, shown: str, is_met: bool) -> Row:
    if value is None:
        return [text, DASH, "not measured"]
    return [text, shown, "met" if is_met else "MISSED"]


def _agreement_goal(results: Results, server: str, peer: str) -> Row:
    """Throughputs are comparable only when the server is saturated.

    A generator that sleeps is woken by the server, which costs the server a part of its CPU time.
    So the goal is that of the generator that polls.
    """
    ratios = _ratios(results, server, WEIR_SPIN, _rate, peer)
    value = median(ratios) if ratios else None
    text = f"{server}: throughput with --spin within {AGREEMENT:.0%} of {peer}'s"
    row = _verdict(text, value, f"{value or 0:.3f}", round(abs((value or 0) - 1), 3) <= AGREEMENT)
    shares = [_values(results, server, name, _server_share) for name in (WEIR_SPIN, peer)]
    if value is not None and min(median(s.values()) for s in shares) < SATURATED:
        row[-1] += ", but the server was not at its limit"
    return row


def goal_table(results: Results) -> list[Row]:
    """Every goal: the figure, and whether it is met."""
    rows = [["goal", "measured", ""]]
    if SERVERS[0] in results.servers:
        cpu = _ratios(results, SERVERS[0], WEIR_LOAD, _cpu)
        value = median(cpu) if cpu else None
        text = f"{SERVERS[0]}: {WEIR_LOAD}'s CPU at most {CPU_AT_MOST:.2f} times {WRK}'s"
        shown = _with_spread(cpu, "{:.2f}".format)
        rows.append(_verdict(text, value, shown, round(value or 0, 2) <= CPU_AT_MOST))
    for server in results.servers:
        for peer in (name for name in (WRK, H2LOAD) if name in _named(results)):
            rows.append(_agreement_goal(results, server, peer))
    lags = [c.lag_p99_us for c in results.crowds if c.users == CROWD_USERS]
    lag = median(lags) if lags else None
    text = f"{CROWD_USERS:,} users: lag p99 below {LAG_P99_BELOW_US / 1000:.0f} ms"
    rows.append(_verdict(text, lag, f"{(lag or 0) / 1000:.3f}", (lag or 0) < LAG_P99_BELOW_US))
    kib = _kib_per_user(results)
    text = f"{CROWD_USERS:,} users: at most {KIB_PER_USER_AT_MOST:.0f} KiB each"
    rows.append(_verdict(text, kib, f"{kib or 0:.2f}", round(kib or 0, 2) <= KIB_PER_USER_AT_MOST))
    return rows


def tables(results: Results) -> list[list[Row]]:
    """Everything that is printed and recorded."""
    found = []
    if results.takes:
        throughput = "throughput divided by wrk's"
        response = "mean response divided by wrk's"
        found = [
            cpu_table(results),
            _agreement_table(results, throughput, _rate, "wrk: answers/s"),
            _agreement_table(results, response, _mean, "wrk: µs"),
            share_table(results),
        ]
    found += [table] if (table := crowd_table(results)) else []
    return [*found, goal_table(results)]
