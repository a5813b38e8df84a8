# SPDX-License-Identifier: MIT
"""From rounds to figures: medians, ratios, goals, and the tables in plain text and Markdown.

Pure: results in, text out. A ratio is the median of the ratios within each round, because two
servers measured seconds apart share the machine's mood and two measured minutes apart do not.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median, quantiles

from bench.generators import Crowd, Take
from bench.handshakes import Handshakes
from bench.measure import Idle, Round, Sizes, Syscalls
from bench.scenarios import GOALS, IDLE, Goal, Scenario
from bench.servers import FLOOR, WEIR

FOREIGN_SHARE_NOTED = 0.05
ERRORS_NOTED = 0.001
DASH = "-"
OVER_HTTP1 = "weir over HTTP/1.1"  # its idle connections, where the others speak HTTP/2

Row = list[str]


@dataclass(kw_only=True)
class Results:
    """Everything measured in one run."""

    servers: list[str]
    scenarios: list[Scenario] = field(default_factory=list)
    answers: dict[str, dict[str, Sizes]] = field(default_factory=dict)
    rounds: dict[str, list[Round]] = field(default_factory=dict)
    idle: dict[str, Idle] = field(default_factory=dict)
    syscalls: dict[str, dict[str, Syscalls]] = field(default_factory=dict)
    takes: list[Take] = field(default_factory=list)
    crowds: list[Crowd] = field(default_factory=list)
    handshakes: dict[str, dict[str, Handshakes]] = field(default_factory=dict)  # over TLS
    filled: dict[tuple[str, str], Idle] = field(default_factory=dict)  # by scenario and server
    failures: list[str] = field(default_factory=list)

    def of(self, scenario: str, server: str) -> dict[int, float]:
        """CPU microseconds per request by round."""
        rounds = self.rounds.get(scenario, ())
        return {r.round: r.cpu_us_per_request for r in rounds if r.server == server}

    def ratio(self, scenario: str, server: str, peer: str) -> float | None:
        """The server's CPU as a multiple of the peer's. None when either is missing."""
        ours, theirs = self.of(scenario, server), self.of(scenario, peer)
        both = ours.keys() & theirs.keys()
        return median(ours[n] / theirs[n] for n in both) if both else None


def spread(values: Sequence[float]) -> float:
    """Half the distance between the quartiles."""
    if len(values) < 2:
        return 0.0
    low, _, high = quantiles(values, n=4, method="inclusive")
    return (high - low) / 2


def number(value: float) -> str:
    """A number with three significant digits."""
    for limit, digits in ((1, 3), (10, 2), (100, 1)):
        if abs(value) < limit:
            return f"{value:.{digits}f}"
    return f"{value:,.0f}"


def cpu_table(results: Results) -> list[Row]:
    """CPU microseconds per request: median, spread, and the ratio to the floor."""
    rows = [["CPU µs per request", *results.servers]]
    for scenario in results.scenarios:
        row = [scenario.name]
        for server in results.servers:
            values = list(results.of(scenario.name, server).values())
            if not values:
                row.append(DASH)
                continue
            cell = f"{number(median(values))} ±{number(spread(values))}"
            ratio = results.ratio(scenario.name, server, FLOOR)
            if ratio is not None and server != FLOOR:
                cell += f" ({ratio:.2f}x)"
            row.append(cell)
        rows.append(row)
    return rows if len(rows) > 1 else []


def peer_table(results: Results) -> list[Row]:
    """weir's CPU per request as a multiple of each other server's."""
    peers = [s for s in results.servers if s != WEIR]
    if WEIR not in results.servers or not peers or not results.scenarios:
        return []
    rows = [["weir's CPU divided by", *peers]]
    for scenario in results.scenarios:
        ratios = [results.ratio(scenario.name, WEIR, peer) for peer in peers]
        rows.append([scenario.name, *(DASH if r is None else f"{r:.2f}" for r in ratios)])
    return rows


def idle_table(results: Results) -> list[Row]:
    """Memory per idle connection."""
    if not results.idle:
        return []
    count = next(iter(results.idle.values())).connections
    servers = [s for s in (*results.servers, OVER_HTTP1) if s in results.idle]
    found = [results.idle[s] for s in servers]
    return [
        [f"{count:,} idle connections", *servers],
        ["KiB per connection", *(number(i.kib_per_connection) for i in found)],
        ["all processes before, KiB", *(f"{i.before_kib:,.0f}" for i in found)],
        ["and with them, KiB", *(f"{i.after_kib:,.0f}" for i in found)],
    ]


def syscall_table(results: Results) -> list[Row]:
    """System calls per request, and which ones."""
    rows = [["system calls per request", "server", "all", "of which"]]
    for scenario, servers in results.syscalls.items():
        for server in (s for s in results.servers if s in servers):
            found = servers[server]
            parts = [f"{k} {v:.2f}" for k, v in found.by_name.items() if v >= 0.05]
            rows.append([scenario, server, f"{found.per_request:.2f}", ", ".join(parts)])
    return rows if len(rows) > 1 else []


def goal_text(goal: Goal) -> str:
    """The goal as a sentence."""
    if goal.figure == "idle":
        return f"{goal.scenario}: at most {goal.at_most} KiB per connection"
    if goal.figure == "syscalls":
        return f"{goal.scenario}: {goal.at_least} to {goal.at_most} system calls per request"
    if goal.strict:
        return f"{goal.scenario}: below {goal.peer}"
    return f"{goal.scenario}: at most {goal.at_most:.2f} times {goal.peer}"


def goal_value(goal: Goal, results: Results) -> float | None:
    """The figure that the goal bounds; None when it was not measured."""
    if goal.figure == "idle":
        idle = results.idle.get(WEIR)
        return idle.kib_per_connection if idle else None
    if goal.figure == "syscalls":
        counted = results.syscalls.get(goal.scenario, {}).get(WEIR)
        return counted.per_request if counted else None
    return results.ratio(goal.scenario, WEIR, goal.peer or FLOOR)


def is_met(goal: Goal, value: float) -> bool:
    """Whether the figure, rounded as it is shown, lies within the goal's bounds."""
    shown = round(value, 2)
    return goal.at_least <= shown and (
        value < goal.at_most if goal.strict else shown <= goal.at_most
    )


def goal_table(results: Results) -> list[Row]:
    """Every goal whose scenario was run: the figure and whether it is met."""
    if WEIR not in results.servers:
        return []
    rows = [["goal", "measured", ""]]
    run = {
        "cpu": set(results.rounds),
        "idle": {IDLE} if results.idle else set(),
        "syscalls": set(results.syscalls),
    }
    for goal in (g for g in GOALS if g.scenario in run[g.figure]):
        value = goal_value(goal, results)
        if value is None:
            rows.append([goal_text(goal), DASH, "not measured"])
        else:
            verdict = "met" if is_met(goal, value) else "MISSED"
            rows.append([goal_text(goal), f"{value:.2f}", verdict])
    return rows if len(rows) > 1 else []


def generator_notes(results: Results) -> list[str]:
    """The errors of the generators, and the results that `weir load` calls invalid."""
    found = []
    for server, name in dict.fromkeys((t.server, t.generator) for t in results.takes):
        takes = [t for t in results.takes if (t.server, t.generator) == (server, name)]
        answers, errors = sum(t.answers for t in takes), sum(t.errors for t in takes)
        if errors > ERRORS_NOTED * answers:
            found.append(f"{name} on {server}: {errors:,} errors in {answers:,} requests")
        if doubts := sorted({doubt for t in takes for doubt in t.doubts}):
            count = sum(bool(t.doubts) for t in takes)
            said = f"{count} of {len(takes)} rounds invalid by its own account"
            found.append(f"{name} on {server}: {said} ({', '.join(doubts)})")
    return found


def notes(results: Results) -> list[str]:
    """Facts that a reader needs to judge the figures."""
    found = []
    for scenario in results.scenarios:
        for server in results.servers:
            rounds = [r for r in results.rounds.get(scenario.name, ()) if r.server == server]
            requests = sum(r.requests for r in rounds)
            errors: dict[str, int] = {}
            for r in rounds:
                for kind, count in r.errors.items():
                    errors[kind] = errors.get(kind, 0) + count
            if sum(errors.values()) > ERRORS_NOTED * requests:
                found.append(f"{scenario.name}, {server}: {errors} in {requests:,.0f} requests")
    found += generator_notes(results)
    everything = [r.foreign_share for rounds in results.rounds.values() for r in rounds]
    everything += [take.foreign_share for take in results.takes]
    if everything and median(everything) > FOREIGN_SHARE_NOTED:
        share = median(everything)
        found.append(f"something else took {share:.0%} of a core in use: repeat when quiet")
    return found + [f"FAILED: {f}" for f in results.failures]


def tables(results: Results) -> list[list[Row]]:
    """All tables with at least one row."""
    makers = (cpu_table, peer_table, idle_table, syscall_table, answers_table, goal_table)
    return [table for maker in makers if (table := maker(results))]


def as_text(rows: list[Row]) -> str:
    """A table for the terminal: first column to the left, a rule under the head."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    padded = [[c.ljust(w) for c, w in zip(row, widths, strict=True)] for row in rows]
    lines = ["  ".join(row).rstrip() for row in padded]
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]])


def as_markdown(rows: list[Row]) -> str:
    """The same table in Markdown."""
    head, *body = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([head, "|" + "---|" * len(rows[0]), *body])


def answers_table(results: Results) -> list[Row]:
    """The bytes of the servers' answers, head + body. The figures depend on them."""
    rows = [["bytes of the answer", *results.servers]]
    for scenario in results.scenarios:
        sizes = results.answers.get(scenario.name, {})
        found = [sizes.get(server) for server in results.servers]
        cells = [f"{v.head_bytes} + {v.body_bytes:,}" if v else DASH for v in found]
        rows.append([scenario.name, *cells])
    return rows if len(rows) > 1 else []
