# SPDX-License-Identifier: MIT
"""Caches that threads share: hit ratios, and the time of an operation."""

import math
from collections.abc import Iterator, Sequence

from weir_lab.analysis import caching, crowd
from weir_lab.analysis.caching import CONTESTANTS, SCAN, Cell, Difference, Plan, Record, Records
from weir_lab.analysis.crowd import Figure
from weir_lab.analysis.middle import Middle
from weir_lab.analysis.ratio import Ratio, confidence_for
from weir_lab.analysis.trace import lru_in_theory, zipf_shares
from weir_lab.report.chart import Chart, Picture
from weir_lab.report.page import Section, Table, findings_first

POLICIES = {
    "belady": "Belady's optimum",
    "sieve": "sieve",
    "lru": "lru",
    "fifo": "fifo",
}
RIVALS = [c for c in CONTESTANTS if c != "sieve"]
TALL = (7.2, 5.6)
THEORY_STEPS = 40
RATIO_SHOWN = (0.02, 50.0)  # intervals may be wider than a picture


def _place(name: str, percent: float) -> str:
    return f"{name}, {percent:g} %"


# ---- hits ----


def _played(records: Records, plan: Plan) -> Iterator[tuple[str, float, Record]]:
    for name in plan.names:
        for percent in plan.sizes:
            record = records.get(caching.hits_key(name, percent))
            if record and "error" not in record:
                yield name, percent, record


def _agreement(played: Sequence[tuple[str, float, Record]]) -> str:
    different = [_place(n, p) for n, p, record in played if not caching.counts_agree(record)]
    if different:
        return (
            f"weir's caches and their simulation count different hits in {len(different)} of "
            f"{len(played)} cases ({different[0]}): one of them has a bug."
        )
    return (
        f"weir's sieve and lru have exactly the hits that their simulations predict, "
        f"in {len(played)} of {len(played)} cases."
    )


def _points(found: Sequence[tuple[str, Difference]]) -> str:
    """The largest difference, in percentage points, and its case."""
    where, most = max(found, key=lambda each: abs(each[1].value))
    return f"by up to {100 * abs(most.value):.1f} points ({where})"


def _sieve_or_lru(played: Sequence[tuple[str, float, Record]], what: str) -> str:
    """A sentence: which policy has more hits, in how many cases."""
    confidence = confidence_for(len(played))
    found = [
        (_place(n, p), caching.advantage(record, "sieve", "lru", confidence))
        for n, p, record in played
    ]
    more = [each for each in found if each[1].low > 0]
    fewer = [each for each in found if each[1].high < 0]
    parts = []
    if more:
        parts.append(f"sieve hits more often than lru in {len(more)} {_points(more)}")
    if fewer:
        parts.append(f"lru more often than sieve in {len(fewer)} {_points(fewer)}")
    if same := len(found) - len(more) - len(fewer):
        parts.append(f"no difference shown in {same}")
    return f"{what}, {len(found)} caches: {'; '.join(parts)}."


def _of_optimum(played: Sequence[tuple[str, float, Record]]) -> str:
    parts = []
    for policy in ("sieve", "lru", "fifo"):
        reached = [
            caching.hit_ratio(record, policy) / caching.hit_ratio(record, "belady")
            for _, _, record in played
            if caching.hit_ratio(record, "belady") > 0
        ]
        if reached:
            parts.append(f"{POLICIES[policy]} {min(reached):.0%} to {max(reached):.0%}")
    return f"Of the hits of a cache that knows the future: {', '.join(parts)}."


def hit_findings(records: Records, plan: Plan) -> list[str]:
    """The findings about hits."""
    played = list(_played(records, plan))
    if not played:
        return []
    steady = [each for each in played if each[0] != SCAN]
    scanned = [each for each in played if each[0] == SCAN]
    found = [_agreement(played)]
    if steady:
        found.append(_sieve_or_lru(steady, "Zipf's law"))
    if scanned:
        found.append(_sieve_or_lru(scanned, "With a scan among the requests"))
    return [*found, _of_optimum(played)]


def _theory(chart: Chart, plan: Plan, name: str) -> None:
    shares = zipf_shares(plan.objects, float(name.removeprefix("zipf-")))
    low, high = math.log(plan.sizes[0]), math.log(plan.sizes[-1])
    step = (high - low) / THEORY_STEPS
    sizes = [math.exp(low + step * i) for i in range(THEORY_STEPS + 1)]
    hits = [100 * lru_in_theory(shares, plan.capacity(percent)) for percent in sizes]
    chart.bound("lru in theory (Che)", sizes, hits)


def hit_picture(records: Records, plan: Plan, name: str) -> Picture | None:
    """Hit ratio against the size of the cache."""
    found = [(percent, r) for n, percent, r in _played(records, plan) if n == name]
    if not found:
        return None
    chart = Chart(
        name=f"sync-hits-{name}",
        title=f"Hit ratio, {name}",
        x="the cache holds, % of the objects",
        y="hits, %",
        log_x=True,
    )
    xs = [percent for percent, _ in found]
    for policy, title in POLICIES.items():
        ys = [100 * caching.hit_ratio(r, policy) for _, r in found]
        chart.line(title, xs, ys, chart.style(), marked=True)
    caption = f"{plan.measured:,} requests for {plan.objects:,} objects, after the cache was full."
    if name == SCAN:
        caption = (
            f"{caption} One request of {caching.SCAN_PART} belongs to a client that scans as many "
            f"other objects, in long sequences. The rest follow Zipf's law with exponent "
            f"{caching.SCAN_EXPONENT:g}."
        )
    elif len(xs) > 1:
        _theory(chart, plan, name)
    chart.axes.set_ylim(0, 100)
    return chart.finish(caption)


def _hit_table(records: Records, plan: Plan) -> Table:
    played = list(_played(records, plan))
    confidence = confidence_for(len(played))
    rows = []
    for name, percent, record in played:
        more = caching.advantage(record, "sieve", "lru", confidence)
        rows.append(
            [
                name,
                f"{percent:g} %",
                f"{plan.capacity(percent):,}",
                *(f"{caching.hit_ratio(record, policy):.2%}" for policy in POLICIES),
                f"{100 * more.value:+.2f} ({100 * more.low:+.2f} to {100 * more.high:+.2f})",
            ]
        )
    return Table(
        name="sync-hits",
        title="Hit ratios",
        head=["trace", "size", "objects", *POLICIES.values(), "sieve less lru, points"],
        rows=rows,
        note=f"Exact for these requests. The interval is Student's over {caching.BLOCKS} blocks of "
        f"them; all intervals hold together with 95 %.",
    )


def hit_section(records: Records, plan: Plan) -> Section:
    """The section about hits."""
    pictures = [hit_picture(records, plan, name) for name in plan.names]
    return findings_first(
        "Which objects stay",
        hit_findings(records, plan),
        method=[
            "A full cache has to guess which object will not be requested soon. lru evicts the "
            "object whose last request is the oldest. Each request moves its object to the front, "
            "so an object that is requested only once passes through the whole queue. With sieve "
            "objects keep their places. A hand moves along the queue and evicts the first object "
            "without a request since its last pass. An object that is requested once leaves soon, "
            "and an object that is requested often stays.",
            "Requests are independent here, so only the popularity of an object predicts its next "
            "request. That suits sieve best. Real requests also change over time, and lru follows "
            "a change sooner. Belady's optimum evicts the object whose next request is the "
            "furthest. No policy that caches every miss can have more hits.",
        ],
        pictures=[picture for picture in pictures if picture],
        tables=[_hit_table(records, plan)],
    )


# ---- times ----


def _cells(records: Records, plan: Plan, workers: int) -> list[Cell]:
    found = [
        caching.cell(records, plan, name, percent, workers)
        for name in plan.names
        for percent in plan.timed_sizes
    ]
    return [cell for cell in found if cell.runs]


def _figure(records: Records, plan: Plan) -> Figure:
    return crowd.believable(caching.alone(records, plan), caching.WALL, caching.CPU)


def _compared(cells: Sequence[Cell], rival: str, figure: Figure) -> list[tuple[Cell, Ratio]]:
    confidence = confidence_for(len(cells) * len(RIVALS))
    found = [(cell, cell.times_as_long(rival, "sieve", figure, confidence)) for cell in cells]
    return [(cell, ratio) for cell, ratio in found if ratio]


def _on_the_whole(cells: Sequence[Cell], rival: str, figure: Figure) -> str | None:
    confidence = confidence_for(len(RIVALS))
    found = caching.on_the_whole(cells, rival, "sieve", figure, confidence)
    if not found:
        return None
    if math.isinf(found.high):
        return "too few rounds to tell it from sieve"
    size = f"{found.value:.2f} times that of sieve ({found.low:.2f} to {found.high:.2f})"
    return size if found.is_shown else f"no difference from sieve shown, {size}"


def _one_by_one(cells: Sequence[Cell], rival: str, figure: Figure) -> str:
    """The number of cells in which a difference is shown."""
    found = _compared(cells, rival, figure)
    parts = []
    if more := sum(r.low > 1 for _, r in found):
        parts.append(f"more in {more}")
    if less := sum(r.high < 1 for _, r in found):
        parts.append(f"less in {less}")
    if same := len(found) - more - less:
        parts.append(f"no difference shown in {same}")
    return f"one by one, of {len(found)}: {', '.join(parts)}"


def _rival_findings(cells: Sequence[Cell], figure: Figure, together: str) -> list[str]:
    found = [(rival, _on_the_whole(cells, rival, figure)) for rival in RIVALS]
    return [
        f"{together}, {figure.name} of an operation, {CONTESTANTS[rival][0]}: {whole}; "
        f"{_one_by_one(cells, rival, figure)}."
        for rival, whole in found
        if whole
    ]


def _file_finding(cells: Sequence[Cell]) -> str | None:
    """A sentence: the ratios if a miss cost as much as in a server."""
    found = [(rival, _on_the_whole(cells, rival, caching.WITH_FILE)) for rival in RIVALS]
    said = [f"{rival} {whole}" for rival, whole in found if whole]
    if not said:
        return None
    return (
        f"If each miss used {caching.FILE_NS / 1000:g} µs of CPU more, about the cost of reading a "
        f"file: {'; '.join(said)}."
    )


def _threads(count: int) -> str:
    return f"{count} threads" if count > 1 else "1 thread"


def _growth_finding(records: Records, plan: Plan) -> str | None:
    workers = plan.side_by_side
    if workers == plan.workers[0]:
        return None
    parts = []
    for contestant in CONTESTANTS:
        found = caching.growth(records, plan, *plan.example, contestant, workers)
        if found and math.isfinite(found.high):
            parts.append(f"{contestant} {found.value:.2f} ({found.low:.2f} to {found.high:.2f})")
    if not parts:
        return None
    return (
        f"Operations per second of {_threads(workers)}, in those of {plan.workers[0]} "
        f"({_place(*plan.example)}): {', '.join(parts)}."
    )


def _refused_finding(records: Records, plan: Plan) -> str | None:
    found = [
        (cell.refused(contestant), cell, contestant)
        for workers in plan.workers
        for cell in _cells(records, plan, workers)
        for contestant in caching.OURS
        if contestant in cell.runs
    ]
    if not found or (most := max(found, key=lambda each: each[0]))[0] == 0:
        return None
    part, cell, contestant = most
    return (
        f"weir does not cache some of the misses while a thread that the kernel has stopped "
        f"delays freeing: up to {part:.1%} of them ({contestant}, "
        f"{_place(cell.name, cell.percent)}, {_threads(cell.workers)})."
    )


def time_findings(records: Records, plan: Plan) -> list[str]:
    """The findings about times."""
    cells = _cells(records, plan, plan.side_by_side)
    together = _threads(plan.side_by_side)
    found: list[str | None] = [
        crowd.warning(caching.alone(records, plan)),
        *_rival_findings(cells, _figure(records, plan), together),
        _file_finding(cells),
        _growth_finding(records, plan),
        _refused_finding(records, plan),
    ]
    return [finding for finding in found if finding]


def _line(chart: Chart, title: str, found: Sequence[tuple[int, Middle]]) -> None:
    style = chart.style()
    xs = [n for n, _ in found]
    if found and all(t.count > 1 for _, t in found):
        chart.band("", xs, [t.low for _, t in found], [t.high for _, t in found], style)
    if found:
        chart.line(title, xs, [t.value for _, t in found], style, marked=True)


def _time_picture(records: Records, plan: Plan, *, name: str, cpu: bool) -> Picture | None:
    percent = plan.example[1]
    cells = [caching.cell(records, plan, name, percent, workers) for workers in plan.workers]
    if not any(cell.runs for cell in cells):
        return None
    what = "CPU" if cpu else "Time"
    chart = Chart(
        name=f"sync-{what.lower()}-{name}",
        title=f"{what} of an operation, {_place(name, percent)}",
        x="threads",
        y=f"ns {'of CPU ' if cpu else ''}per operation",
        log_y=True,
    )
    for contestant, (title, _) in CONTESTANTS.items():
        found = []
        for cell in cells:
            if time := cell.cpu(contestant) if cpu else cell.wall(contestant):
                found.append((cell.workers, time))
        _line(chart, title, found)
    chart.axes.set_xticks(list(plan.workers))
    if plan.side_by_side < plan.workers[-1]:
        chart.mark("cores", plan.cores)
    how = (
        "CPU time of all cores together, divided by the operations. It is constant where threads "
        "do not disturb each other. It does not contain waiting."
        if cpu
        else "From the first thread's start to the last one's end, divided by the operations of "
        "all. It is half as long with two threads that do not disturb each other."
    )
    return chart.finish(f"{how} The median, and its 95 % bootstrap interval.")


def ratio_picture(records: Records, plan: Plan, rival: str) -> Picture | None:
    """A rival against sieve, under all conditions."""
    figure = _figure(records, plan)
    found = _compared(_cells(records, plan, plan.side_by_side), rival, figure)
    found = [(cell, ratio) for cell, ratio in found if math.isfinite(ratio.high)]
    if not found:
        return None
    chart = Chart(
        name=f"sync-ratio-{rival}",
        title=f"{CONTESTANTS[rival][0]} against sieve, {_threads(plan.side_by_side)}",
        x=f"{figure.name} of an operation, times that of sieve",
        y="",
        log_x=True,
        size=TALL if len(found) > 6 else Chart.size,
    )
    chart.intervals(
        [_place(cell.name, cell.percent) for cell, _ in found],
        [r.value for _, r in found],
        [r.low for _, r in found],
        [r.high for _, r in found],
        1.0,
    )
    low, high = chart.axes.get_xlim()
    chart.axes.set_xlim(max(low, RATIO_SHOWN[0]), min(high, RATIO_SHOWN[1]))
    return chart.finish(
        "Geometric mean of the ratios within rounds; the intervals of all such pictures hold "
        "together with 95 %. Intervals that exclude 1 are marked.",
        legend=False,
        from_zero=False,
    )


def _row(cell: Cell, contestant: str) -> list[str]:
    wall, cpu = cell.wall(contestant), cell.cpu(contestant)
    assert wall is not None  # it ran
    assert cpu is not None
    return [
        contestant,
        f"{wall.value:,.0f}",
        f"{wall.low:,.0f} to {wall.high:,.0f}" if wall.count > 1 else "",
        f"{cpu.value:,.0f}",
        *(cell.shown(contestant, member) for member in PERCENTILES),
        f"{cell.hit_ratio(contestant):.1%}",
        f"{cell.refused(contestant):.1%}",
    ]


PERCENTILES = ("p50_ns", "p99_ns", "p999_ns", "hit_p50_ns", "miss_p50_ns")
HEAD = [
    *("ns", "95 % interval", "CPU ns", "p50 ns", "p99 ns", "p99.9 ns", "a hit, p50", "a miss, p50"),
    *("hits", "refused"),
]


def _example_table(records: Records, plan: Plan) -> Table:
    cells = [caching.cell(records, plan, *plan.example, workers) for workers in plan.workers]
    return Table(
        name="sync-threads",
        title=f"Time of an operation, {_place(*plan.example)}",
        head=["threads", "cache", *HEAD],
        rows=[[str(cell.workers), *_row(cell, c)] for cell in cells for c in cell.runs],
        note="ns: of all threads together. Percentiles are those of single operations, of which "
        "one in 31 was timed, without the cost of the clock. Refused is a share of the misses. All "
        "are medians of the runs.",
    )


def _time_table(records: Records, plan: Plan) -> Table:
    cells = _cells(records, plan, plan.side_by_side)
    return Table(
        name="sync-times",
        title=f"Time of an operation, {_threads(plan.side_by_side)}",
        head=["trace", "size", "cache", *HEAD],
        rows=[[c.name, f"{c.percent:g} %", *_row(c, each)] for c in cells for each in c.runs],
        note="What was measured with other numbers of threads is in the data of this page.",
    )


def time_section(records: Records, plan: Plan) -> Section:
    """The section about times."""
    pictures = [
        _time_picture(records, plan, name=plan.example[0], cpu=False),
        _time_picture(records, plan, name=plan.example[0], cpu=True),
        _time_picture(records, plan, name=SCAN, cpu=False),
        *(ratio_picture(records, plan, rival) for rival in RIVALS),
    ]
    return findings_first(
        "What sharing a cache costs",
        time_findings(records, plan),
        method=[
            "An operation looks an object up. A miss allocates memory and copies 1,024 bytes, "
            "without a disk. So a miss costs much less than in a server, and times have to be read "
            "together with hit ratios. At 100 % all objects fit, and nearly all operations are "
            "hits.",
            "sieve and lru are weir's own, as a server uses them, with the estimates for other "
            "cache sizes that weir keeps. A hit of sieve takes no lock and at most writes a "
            "mark. A "
            "hit of lru takes the reader-writer lock for reading to find its object, and again for "
            "writing to move it. So threads that only read still wait for each other. The other "
            "three are the source documents' designs, built for this comparison. rwlock is a list "
            "below a reader-writer lock. With stamps a hit writes the time and takes the lock for "
            "reading only. An eviction searches the whole cache and reads the file while all other "
            "threads wait. semaphore is a list below one semaphore.",
        ],
        pictures=[picture for picture in pictures if picture],
        tables=[_example_table(records, plan), _time_table(records, plan)],
    )
