# SPDX-License-Identifier: MIT
"""Shared counters: updates lost without protection, and the cost of protection."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from weir_lab.analysis import crowd
from weir_lab.analysis.crowd import Figure
from weir_lab.analysis.middle import Middle, middle
from weir_lab.analysis.ratio import confidence_for, ratio
from weir_lab.report.chart import Chart, Picture
from weir_lab.report.page import Section, Table, findings_first

Record = dict[str, Any]
Records = Mapping[str, Record]

# way -> what it is
WAYS = {
    "none": "nothing",
    "semaphore": "named semaphore",
    "mutex": "process-shared mutex",
    "atomic": "atomic addition",
    "block": "a block for each worker",
}
KINDS = ("threads", "processes")
CAREFUL = ("semaphore", "mutex", "atomic")  # compared with a block for each worker


def key(way: str, kind: str, workers: int, repeat: int) -> str:
    """The key of the record of one run."""
    return f"count/{way}/{kind}/{workers}/{repeat}"


def runs(records: Records, way: str, kind: str, workers: int) -> dict[int, Record]:
    """The runs of one kind, by round."""
    prefix = key(way, kind, workers, 0).rpartition("/")[0] + "/"
    return {
        int(name.removeprefix(prefix)): record
        for name, record in records.items()
        if name.startswith(prefix) and "error" not in record
    }


def each_ns(record: Record) -> float:
    """Elapsed nanoseconds for each addition of all workers together."""
    return float(record["ns"] / record["expected"])


def cpu_each_ns(record: Record) -> float:
    """CPU nanoseconds for each addition."""
    return float(record["cpu_ns"] / record["expected"])


WALL = Figure(name="Time", of=each_ns)
CPU = Figure(name="CPU time", of=cpu_each_ns)


def _alone(records: Records) -> list[Record]:
    return [r for name, r in records.items() if name.startswith("count/") and r.get("workers") == 1]


def lost(record: Record) -> float:
    """The part of the updates that is lost."""
    return float(1 - record["counted"] / record["expected"])


def _time(records: Records, way: str, kind: str, workers: int) -> Middle | None:
    found = runs(records, way, kind, workers)
    return middle([each_ns(r) for r in found.values()]) if found else None


def _loss_finding(records: Records, kind: str, most: int) -> str | None:
    found = [lost(r) for r in runs(records, "none", kind, most).values()]
    if not found:
        return None
    if most == 1:
        return f"One of the {kind} alone loses no update, even without protection."
    if max(found) == 0:
        return f"Without protection {most} {kind} lost no update in these runs, by chance."
    if (hit := sum(part > 0 for part in found)) < len(found):
        return (
            f"Without protection {most} {kind} lose up to {max(found):.0%} of the updates of "
            "a shared "
            f"counter; in {len(found) - hit} of {len(found)} runs none, by chance."
        )
    if len(found) == 1:
        return (
            f"Without protection {most} {kind} lose {found[0]:.0%} of the updates of a shared "
            "counter."
        )
    return (
        f"Without protection {most} {kind} lose {middle(found).value:.0%} of the updates of a "
        "shared "
        f"counter ({min(found):.0%} to {max(found):.0%} in {len(found)} runs)."
    )


def _care_finding(records: Records) -> str | None:
    careful = [
        r
        for name, r in records.items()
        if name.startswith("count/") and "error" not in r and r["way"] != "none"
    ]
    if not careful:
        return None
    broken = sum(r["counted"] != r["expected"] for r in careful)
    if broken:
        return f"With protection updates are lost in {broken} of {len(careful)} runs: a bug."
    return f"With protection none is lost in {len(careful)} runs."


def _cost_finding(
    records: Records, kind: str, workers: int, figure: Figure, seed: int
) -> str | None:
    """A sentence: the cost of protection, compared with a block for each worker."""
    confidence = confidence_for(len(KINDS) * len(CAREFUL))
    block = {n: figure.of(r) for n, r in runs(records, "block", kind, workers).items()}
    parts = []
    for way in CAREFUL:
        ours = {n: figure.of(r) for n, r in runs(records, way, kind, workers).items()}
        times = ratio(ours, block, confidence=confidence, seed=seed)
        if times is None:
            continue
        size = f"{times.value:,.1f} ({times.low:,.1f} to {times.high:,.1f})"
        if math.isinf(times.high):
            size = f"{times.value:,.1f}, from too few runs for an interval"
        elif not times.is_shown:
            size = f"no difference shown, {size}"
        parts.append(f"{WAYS[way]} {size}")
    if not parts:
        return None
    return (
        f"{figure.name} of an update, {workers} {kind}, as a multiple of a block for each worker: "
        f"{'; '.join(parts)}."
    )


def findings(records: Records, workers: Sequence[int], seed: int) -> list[str]:
    """The findings about counters."""
    most = workers[-1]
    found = [_loss_finding(records, kind, most) for kind in KINDS]
    found.append(_care_finding(records))
    found.append(crowd.warning(_alone(records)))
    figure = crowd.believable(_alone(records), WALL, CPU)
    found += [_cost_finding(records, kind, most, figure, seed) for kind in KINDS]
    return [finding for finding in found if finding]


def loss_picture(records: Records, workers: Sequence[int]) -> Picture:
    """The race: the part of the updates that is lost."""
    chart = Chart(
        name="sync-lost",
        title="Updates lost without care",
        x="workers",
        y="of the updates, %",
    )
    for kind in KINDS:
        style = chart.style()
        found = [
            (n, [100 * lost(r) for r in runs(records, "none", kind, n).values()]) for n in workers
        ]
        found = [(n, values) for n, values in found if values]
        if not found:
            continue
        xs = [n for n, _ in found]
        chart.band(
            f"all runs, {kind}", xs, [min(v) for _, v in found], [max(v) for _, v in found], style
        )
        chart.line(kind, xs, [middle(v).value for _, v in found], style, marked=True)
    chart.axes.set_xticks(list(workers))
    chart.axes.set_ylim(0, 100)
    return chart.finish(
        "Each worker reads the counter, adds one, and writes it back. An update that another "
        "worker "
        "wrote in between is lost. The median of the runs, and the range of all runs."
    )


def cost_picture(records: Records, workers: Sequence[int], kind: str) -> Picture:
    """The cost of an update."""
    chart = Chart(
        name=f"sync-{kind}",
        title=f"Cost of an update, {kind}",
        x=kind,
        y="ns per update",
        log_y=True,
    )
    for way, title in WAYS.items():
        style = chart.style()
        found = [(n, t) for n in workers if (t := _time(records, way, kind, n))]
        if not found:
            continue
        xs = [n for n, _ in found]
        if all(t.count > 1 for _, t in found):
            chart.band("", xs, [t.low for _, t in found], [t.high for _, t in found], style)
        chart.line(title, xs, [t.value for _, t in found], style, marked=True)
    chart.axes.set_xticks(list(workers))
    return chart.finish(
        "Time from the first worker's start to the last one's end, divided by the updates of all: "
        "the median, and its 95 % bootstrap interval. Without protection is fast, and wrong."
    )


def _table(records: Records, workers: Sequence[int]) -> Table:
    rows = []
    for way, title in WAYS.items():
        for kind in KINDS:
            for n in workers:
                found = list(runs(records, way, kind, n).values())
                if not found:
                    continue
                time = middle([each_ns(r) for r in found])
                gone = sum(r["expected"] - r["counted"] for r in found)
                wanted = sum(r["expected"] for r in found)
                low_high = "" if time.count < 2 else f"{time.low:,.1f} to {time.high:,.1f}"
                rows.append(
                    [
                        title,
                        kind,
                        str(n),
                        f"{time.value:,.1f}",
                        low_high,
                        f"{middle([cpu_each_ns(r) for r in found]).value:,.1f}",
                        f"{gone:,} of {wanted:,}",
                        f"{gone / wanted:.1%}",
                    ]
                )
    return Table(
        name="sync",
        title="Cost of an update, and updates lost",
        head=["kept apart by", "", "workers", "ns", "95 % interval", "CPU ns", "lost", "%"],
        rows=rows,
        note="For each update of all workers together; the median of the runs, and its bootstrap "
        "interval. Lost in all runs together.",
    )


def _how() -> Table:
    return Table(
        name="sync-how",
        title="How an update is lost",
        head=["step", "worker A", "worker B", "the counter"],
        rows=[
            ["", "", "", "41"],
            ["1", "reads 41", "", "41"],
            ["2", "", "reads 41", "41"],
            ["3", "writes 41 + 1", "", "42"],
            ["4", "", "writes 41 + 1", "42, where 43 is due"],
        ],
        note="On several cores at once, or on one, when the kernel takes it away between "
        "reading and writing.",
    )


def section(records: Records, workers: Sequence[int], seed: int) -> Section:
    """The section about counters."""
    return findings_first(
        "Shared counters",
        findings(records, workers, seed),
        method=[
            "The documents found fewer requests counted than served, and put a named semaphore "
            "around the counters. weir has a block of counters for each worker. Each block has one "
            "writer, and readers add the blocks up. That is exact, too, and no worker waits."
        ],
        pictures=[
            loss_picture(records, workers),
            *(cost_picture(records, workers, kind) for kind in KINDS),
        ]
        if records
        else [],
        tables=[_how(), _table(records, workers)],
    )
