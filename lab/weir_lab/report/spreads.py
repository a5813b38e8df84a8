# SPDX-License-Identifier: MIT
"""Pictures and tables of a load from several machines."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from weir_lab.report import distribution
from weir_lab.report.chart import Chart, Picture
from weir_lab.report.page import Section, Table, findings_first

PERCENTILES = ("p50_ns", "p90_ns", "p99_ns", "p99_9_ns")
SPECTRA_MOST = 5

Record = Mapping[str, Any]


def why_void(record: Record) -> str:
    """The reason why a step is void; empty when it is valid."""
    load = record["load"]
    if load["failed"]:
        return f"{load['failed']} requests failed"
    return "; ".join(str(doubt).rstrip(".") for doubt in load["doubts"])


def durations(record: Record) -> Record:
    """The times for objectives: from sending in a closed loop, else from the due time."""
    step = record["result"]["steps"][0]
    name = "response" if record["loop"] == "closed" else "intended"
    found: Record = step[name]
    return found


def percentile_title(name: str) -> str:
    """`p99_9_ns` as a readable title."""
    return name.removesuffix("_ns").replace("_", ".")


def _ms(ns: float | None, digits: int = 3) -> str:
    return "-" if ns is None else f"{ns / 1e6:,.{digits}f}"


def _sorted(records: Sequence[Record]) -> list[Record]:
    return sorted(records, key=lambda r: r["level"])


def throughput(records: Sequence[Record], x: str) -> Picture:
    """The throughput of all hosts together, and of each host."""
    chart = Chart(name="spread-throughput", title="Throughput", x=x, y="requests/s")
    valid = [r for r in records if not why_void(r)]
    void = [r for r in records if why_void(r)]
    if valid:
        chart.points(
            "all hosts", [r["level"] for r in valid], [r["load"]["rate"] for r in valid], 0
        )
    chart.void([r["level"] for r in void], [r["load"]["rate"] for r in void])
    for number, name in enumerate(hosts(records)):
        rates: dict[float, list[float]] = {}
        for record in records:
            for host in record["hosts"]:
                if host["host"] == name:
                    rates.setdefault(record["level"], []).append(host["rate"])
        means = [fmean(found) for found in rates.values()]
        chart.line(name, list(rates), means, 1 + number % 7)
    return chart.finish("Marks are all hosts together, lines what each of them had of it.")


def response(records: Sequence[Record], x: str) -> Picture:
    """Percentiles of all answers of all hosts."""
    chart = Chart(name="spread-response", title="Response time, all hosts", x=x, y="ms", log_y=True)
    valid = [r for r in records if not why_void(r)] or list(records)
    for name in PERCENTILES:
        known = [(r["level"], durations(r)[name]) for r in valid if durations(r)[name]]
        style = chart.style()
        if known:
            xs, ys = [k[0] for k in known], [k[1] / 1e6 for k in known]
            if len(set(xs)) == len(xs):
                chart.line(percentile_title(name), xs, ys, style, marked=True)
            else:  # repeats
                chart.points(percentile_title(name), xs, ys, style)
    caption = "Of the hosts' histograms merged; percentiles are never averaged."
    if all(why_void(r) for r in records):
        caption += " All of these steps are void."
    return chart.finish(caption)


def spectra(records: Sequence[Record], x: str) -> list[Picture]:
    """Every percentile, for some levels from the lowest to the highest."""
    levels = sorted({r["level"] for r in records})
    last = len(levels) - 1
    some = [levels[round(n * last / (SPECTRA_MOST - 1))] for n in range(SPECTRA_MOST)]
    blobs = {
        f"{level:g} {x}": [durations(r)["hdr_v2_ns"] for r in records if r["level"] == level]
        for level in dict.fromkeys(some)
    }
    title = "Response time, all hosts, every percentile"
    picture = distribution.percentiles("spread-percentiles", title, blobs)
    return [picture] if picture else []


def hosts(records: Sequence[Record]) -> list[str]:
    """All hosts that took part, in the order of their shards."""
    return list(dict.fromkeys(h["host"] for r in records for h in r["hosts"]))


def steps_table(records: Sequence[Record], x: str) -> Table:
    """The table of steps."""
    rows = []
    for record in records:
        load, found = record["load"], durations(record)
        rows.append(
            [
                f"{record['level']:g}",
                str(len(record["hosts"])),
                f"{load['requests']:,}",
                f"{load['rate']:,.0f}",
                _ms(found["mean_ns"]),
                *(_ms(found[name]) for name in PERCENTILES),
                f"{load['failed']:,}",
                f"{record['start']['skew_most_s'] * 1e3:.2f}",
                why_void(record),
            ]
        )
    titles = [f"{percentile_title(name)} ms" for name in PERCENTILES]
    head = [x, "hosts", "answers", "requests/s", "mean ms", *titles, "failed"]
    return Table(
        name="spread-steps",
        title="Every step",
        head=[*head, "start skew ms, at most", "void"],
        rows=rows,
        note="Of closed loops times are from sending a request, of others from when it was due.",
    )


def shares_table(records: Sequence[Record], x: str) -> Table:
    """The table of hosts in each step."""
    rows = []
    for record in records:
        for host in record["hosts"]:
            rows.append(
                [
                    f"{record['level']:g}",
                    host["host"],
                    f"{host['users']:,}",
                    f"{host['answers']:,}",
                    f"{host['share']:.1%}",
                    f"{host['rate']:,.0f}",
                    f"{host['mean_s'] * 1e3:.3f}",
                    f"{host['p99_s'] * 1e3:.3f}" if host["p99_s"] else "-",
                    f"{host['busiest_thread_share'] or 0:.0%}",
                    f"{host['failed']:,}",
                ]
            )
    head = [x, "host", "users", "answers", "share", "requests/s", "mean ms", "p99 ms"]
    return Table(
        name="spread-hosts",
        title="Every host's share",
        head=[*head, "busiest thread", "failed"],
        rows=rows,
        note="A host whose times differ from the others' is farther away, or short of CPU.",
    )


def clocks_table(records: Sequence[Record], x: str) -> Table:
    """The table of clocks and starts."""
    rows = [
        [
            f"{record['level']:g}",
            host["host"],
            f"{host['clock_s'] * 1e3:+.3f}",
            f"±{host['clock_error_s'] * 1e3:.3f}",
            f"{host['late_s'] * 1e3:+.3f}",
        ]
        for record in records
        for host in record["hosts"]
    ]
    return Table(
        name="spread-clocks",
        title="Clocks, and when each host began",
        head=[x, "host", "clock ahead ms", "known to ms", "began after the common time ms"],
        rows=rows,
        note="Ahead of the clock of the machine that the command ran on. What is known is a bound, "
        "not a deviation. It follows from the round-trip times of the exchanges.",
    )


def findings(records: Sequence[Record], x: str) -> list[str]:
    """The verdict in sentences."""
    found = []
    valid = [r for r in records if not why_void(r)]
    if valid:
        best = max(valid, key=lambda r: r["load"]["rate"])
        tail = durations(best)["p99_ns"]
        found.append(
            f"{len(best['hosts'])} hosts together had {best['load']['rate']:,.0f} answers per "
            f"second at {best['level']:g} {x}"
            + (f", 99 % of them within {_ms(tail, 2)} ms." if tail else ".")
        )
    judged = [r for r in valid if r["slos_met"] is not None]
    if judged:
        missed = [f"{r['level']:g}" for r in judged if not r["slos_met"]]
        found.append(
            f"Objectives were missed at {', '.join(missed)} {x}."
            if missed
            else "All objectives were met at every valid step."
        )
    if len(hosts(records)) > 1:
        most = max(r["start"]["skew_most_s"] for r in records)
        error = max(h["clock_error_s"] for r in records for h in r["hosts"])
        found.append(
            f"The hosts began each step within {most * 1e3:.2f} ms of each other. Their "
            f"clocks are known to ±{error * 1e3:.2f} ms."
        )
    if len(valid) < len(records):
        found.append(
            f"{len(records) - len(valid)} of {len(records)} steps are void; the table gives "
            "the reasons."
        )
    return found


def section(found: Sequence[Record], x: str) -> Section:
    """The section about the hosts."""
    if not found:
        return findings_first("Load from several machines", [])
    records = _sorted(found)
    loop = records[0]["loop"]
    return findings_first(
        f"Load on {records[0]['server']} from {len(hosts(records))} hosts",
        findings(records, x),
        method=[
            f"Each host ran its part of the same load ({loop} loop) from a common start. "
            "Counts and "
            "histograms are added, so the result is the same as from one generator."
        ],
        pictures=[throughput(records, x), response(records, x), *spectra(records, x)],
        tables=[steps_table(records, x), shares_table(records, x), clocks_table(records, x)],
    )
