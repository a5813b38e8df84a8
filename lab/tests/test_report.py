# SPDX-License-Identifier: MIT
"""The report as text: the answer first, in a page, in a terminal, and in files beside the page."""

import csv
import io
import json
import os
import re
import subprocess
from dataclasses import replace
from functools import cache
from math import inf
from pathlib import Path
from typing import Any

import pytest
from hdrh.histogram import HdrHistogram
from rich.console import Console

import measured
import touring
from command import LAB
from measured import report_of
from waiting import LIMIT_S
from weir_lab.capacity import findings, records
from weir_lab.capacity.answers import Interval
from weir_lab.capacity.findings import Findings
from weir_lab.capacity.sweep import SERVER
from weir_lab.commands import options
from weir_lab.experiments import remake
from weir_lab.report import capacity as capacities
from weir_lab.report import distribution, sweeps
from weir_lab.report import page as pages
from weir_lab.report import terminal as terminals
from weir_lab.report.chart import Chart, look
from weir_lab.report.ticks import TICKS_MAX, PlainLog
from weir_lab.rim.errors import LabError
from weir_lab.rim.store import FILE

PAGE_MAX = 1_500_000  # bytes


def test_the_answer_comes_first_and_raw_data_last(report: pages.Report) -> None:
    text = pages.render(report)
    places = [
        text.index('class="sentence"'),
        text.index('class="mark'),
        text.index('class="numbers"'),
        text.index("<svg"),
        text.index("How long do users wait?"),
        text.index("What is the limit?"),
        text.index("How was it measured?"),
        text.index('id="environment"'),
        text.index('id="data"'),
    ]
    assert places == sorted(places)
    assert "The bottleneck is the server CPU" in text


def test_pictures_and_tables_are_beside_the_page(written: Path, report: pages.Report) -> None:
    beside = {path.name for path in written.parent.iterdir()}
    for name in ("throughput", "response", "load", "cpu", "prediction"):
        assert {f"capacity-{name}.{kind}" for kind in ("svg", "png", "csv")} <= beside
    with (written.parent / "capacity-throughput.csv").open() as file:
        rows = list(csv.DictReader(file))
    points = [row for row in rows if row["series"] == "measured, for training"]
    assert {float(row["users"]) for row in points} == set(range(1, 21))
    with (written.parent / "capacity-levels.csv").open() as file:
        assert len(list(csv.reader(file))) == 1 + 28
    assert written.stat().st_size < PAGE_MAX
    text = (written.parent / "report.md").read_text()
    assert report.sections[0].headline.sentence in text
    for fold in report.sections[0].folds:
        assert all(words in text for words in (*fold.findings, *fold.text))


def test_where_nothing_could_be_forecast_the_answer_is_what_was_measured(tmp_path: Path) -> None:
    found = measured.lines("thread-ka")
    kept = [each for each in found if not str(each.get("key", "")).startswith(("2", "1", "pilot"))]
    section = report_of([*kept, found[1]], tmp_path).sections[0]
    mark = section.headline.mark
    assert mark
    assert mark.grade is not pages.Grade.GREEN
    assert mark.reason
    assert len(section.headline.numbers) == 3
    assert "requests per second" in section.headline.sentence


def test_one_held_out_level_is_no_range(tmp_path: Path) -> None:
    found = measured.lines("pool-ka")
    kept = [each for each in found if int(each.get("users") or 0) <= 25]
    said = report_of(kept, tmp_path).sections[0].findings
    assert any("from 1 to 20 users. At 25 users, which it had not seen, it was" in s for s in said)


def test_an_interrupted_experiment_says_how_much_is_missing(tmp_path: Path) -> None:
    found = measured.lines("pool-ka")
    section = report_of(found[:50], tmp_path).sections[0]
    mark = section.headline.mark
    assert mark
    assert mark.grade is not pages.Grade.GREEN
    assert "points are not measured yet" in mark.reason
    assert pages.render(report_of(found[:3], tmp_path))  # the pilot and one point
    nothing = report_of(found[:1], tmp_path).sections[0]
    assert nothing.headline.sentence == "Nothing of pool was measured."


@pytest.mark.parametrize("name", measured.NAMES)
def test_every_measured_sweep_has_an_answer_with_a_reason(name: str, tmp_path: Path) -> None:
    headline = report_of(measured.lines(name), tmp_path).sections[0].headline
    assert headline.mark
    assert headline.mark.reason.endswith(".")
    assert len(headline.numbers) == 3
    assert len(headline.pictures) == 2
    assert len(headline.sentence) < 200


@pytest.mark.parametrize(("name", "count"), [("percore-think", 1), ("pool-ka", 0)])
def test_where_users_mostly_think_the_report_says_what_an_error_of_throughput_means(
    name: str, count: int, tmp_path: Path
) -> None:
    (section,) = report_of(measured.lines(name), tmp_path).sections
    (fold,) = [each for each in section.folds if each.title == "How good is the forecast?"]
    said = [text for text in fold.findings if text.endswith("of the response time (Little's law).")]
    assert len(said) == count
    assert all("an error of 1 % of the throughput is 1" in text for text in said)


def test_records_too_large_for_the_page_are_left_out() -> None:
    small = [{"load": {"rate": 1.0, "histogram": "A" * 100}}]
    assert json.loads(pages.embedded(small)) == small
    large = [{"load": {"rate": 1.0, "histogram": "A" * pages.DATA_MAX}}]
    assert json.loads(pages.embedded(large)) == [{"load": {"rate": 1.0}}]
    assert json.loads(pages.embedded(["A" * pages.DATA_MAX])) is None


def shown(report: pages.Report, *, terminal: bool, width: int = 100) -> str:
    console = Console(file=io.StringIO(), force_terminal=terminal, width=width, color_system=None)
    terminals.show(report, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_terminal_gets_a_plot_and_a_pipe_plain_lines(report: pages.Report) -> None:
    headline = report.sections[0].headline
    piped = shown(report, terminal=False)
    assert piped.splitlines()[0] == headline.sentence
    assert headline.mark
    assert headline.mark.reason in piped
    assert "│" not in piped
    assert "\x1b" not in piped
    plotted = shown(report, terminal=True)
    assert {"●", "○", "│"} <= set(plotted)
    assert "requests/s" in plotted
    assert max(map(len, plotted.splitlines())) <= 100
    assert "│" not in shown(report, terminal=True, width=60)  # too narrow for a plot


def test_a_terminal_of_another_encoding_gets_escapes(tmp_path: Path) -> None:
    folder = measured.put(measured.lines("pool-ka"), tmp_path)
    done = subprocess.run(
        [str(LAB), "report", str(folder)],
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert done.returncode == 0, done.stderr
    assert "\\u2713 " in done.stdout
    assert done.stdout.endswith(f"{(folder / 'report.html').resolve()}\n")


def test_a_browser_is_opened_or_its_absence_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    opened_pages: list[str] = []

    def browse(url: str) -> bool:
        opened_pages.append(url)
        return True

    monkeypatch.setattr("webbrowser.open", browse)
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    options.open_page(tmp_path / "report.html")
    assert opened_pages == []
    assert "No browser was found here" in capfd.readouterr().err
    monkeypatch.setenv("DISPLAY", ":0")
    options.open_page(tmp_path / "report.html")
    assert opened_pages == [(tmp_path / "report.html").as_uri()]


def test_no_two_series_differ_by_colour_alone() -> None:
    chart = Chart(name="x", title="x", x="users", y="requests/s")
    for number in range(7):
        chart.line(str(number), [0, 1], [0, number], chart.style())
    svg = chart.finish("").svg
    dashes = set(re.findall(r"stroke-dasharray: ([0-9. ,]+)", svg)) | {"solid"}
    # Grid lines are solid; of the seven series one is solid and six have dashes of their own.
    assert len(dashes) == 7


def test_more_series_than_colours_still_differ() -> None:
    looks = {(each.colour, each.marker, str(each.dash)) for each in map(look, range(40))}
    assert len(looks) == 40


def test_histograms_are_added_and_no_percentile_is_averaged() -> None:
    parts = [HdrHistogram(1, 3_600_000_000_000, 3) for _ in range(2)]
    for _ in range(1000):
        parts[0].record_value(1_000_000)
    for _ in range(1000):
        parts[1].record_value(9_000_000)
    whole = distribution.merged([part.encode().decode() for part in parts] + [""])
    assert whole
    line = dict(distribution.spectrum(whole))
    assert line[1] == pytest.approx(1, rel=2e-3)
    assert max(line) == pytest.approx(200, rel=0.1)  # ten of two thousand are left beyond it
    assert line[10] == pytest.approx(9, rel=2e-3)


@pytest.mark.parametrize("size", [sweeps.NARROW, (3.9, 3.0)])
def test_the_legend_of_a_narrow_picture_is_below_the_name_of_its_axis(
    size: tuple[float, float],
) -> None:
    chart = Chart(name="x", title="X", x="users", y="requests/s", size=sweeps.WIDE, left=0.95)
    for style, name in enumerate(("measured, for training", "measured, held out", "forecast")):
        chart.line(name, [1.0, 60.0], [10_000.0, 210_000.0], style)
    chart.finish("", narrow=size)
    chart.canvas.draw_without_rendering()
    (legend,) = chart.canvas.legends
    name_of_axis = chart.axes.xaxis.label.get_window_extent()
    assert legend.get_window_extent().y1 <= name_of_axis.y0


@pytest.mark.parametrize("length", [5, 30, 60])
def test_a_legend_of_long_names_has_as_many_columns_as_fit(length: int) -> None:
    chart = Chart(name="x", title="X", x="users", y="requests/s", size=sweeps.WIDE)
    for style in range(4):
        chart.line(f"{style}" * length, [1.0, 60.0], [10_000.0, 210_000.0], style)
    chart.finish("")
    (legend,) = chart.canvas.legends
    assert legend.get_window_extent().width <= chart.canvas.bbox.width


@pytest.mark.parametrize(("asked", "trained_to"), [("", 50), (" --train-to 45", 45)])
def test_the_report_again_has_the_training_levels_of_the_run(
    asked: str, trained_to: int, tmp_path: Path
) -> None:
    found = [r for r in measured.lines("pool-ka") if r.get("users", 60) > 20]
    found[0]["plan"]["users"] = list(range(25, 61, 5))
    found[0]["machine"]["command"] += f" --users 25..60:5 --as-given{asked}"
    (section,) = report_of(found, tmp_path).sections
    (fold,) = [each for each in section.folds if each.title == "How was it measured?"]
    assert f"Training went up to {trained_to} users." in fold.text[0]
    assert "There is no forecast" not in section.headline.sentence


@pytest.mark.parametrize(("name", "connects"), [("h2o-close", True), ("pool-ka", False)])
def test_with_a_connection_for_each_request_the_report_says_which_times_have_connecting(
    name: str, connects: bool, tmp_path: Path
) -> None:
    (section,) = report_of(measured.lines(name), tmp_path).sections
    tables = {table.name: table for fold in section.folds for table in fold.tables}
    times = tables["capacity-levels"].head[4:6]
    said = [*section.headline.caption.split(". "), *section.folds[0].text]
    about = [text for text in said if "time to connect" in text]
    if connects:
        assert times == ["mean ms, with connecting", "p99 ms, without connecting"]
        assert section.headline.numbers[2].name.endswith("ms, without connecting")
        assert ", without the time to connect, for up to" in section.folds[0].findings[0]
        assert len(about) == 2
    else:
        assert times == ["mean ms", "p99 ms"]
        assert section.headline.numbers[2].name.endswith(" ms")
        assert about == []


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("load",), None, "it has no load"),
        (("load", "rate"), None, "load.rate is None, which is no number"),
        (("users",), "5", "users is '5', which is no number"),
    ],
)
def test_a_damaged_record_ends_the_report_with_its_name(
    path: tuple[str, ...], value: object, said: str, tmp_path: Path
) -> None:
    found = measured.lines("pool-ka")
    place = found[5] if len(path) == 1 else found[5][path[0]]
    place[path[-1]] = value
    with pytest.raises(LabError, match=re.escape(f"{found[5]['key']!r} is damaged: {said}")):
        report_of(found, tmp_path)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((0, "plan", "seed"), "x"),
        ((0, "plan", "users"), 5),
        ((0, "machine", "command"), "weir-lab capacity pool --train-to many"),
        ((5, "users"), 0),
        ((5, "load", "doubts"), None),
        ((5, "load", "percentiles_s"), []),
        ((5, "lost"), [5]),
    ],
)
def test_other_damage_ends_the_report_with_the_name_of_the_file(
    path: tuple[int | str, ...], value: object, tmp_path: Path
) -> None:
    found = measured.lines("pool-ka")
    place: Any = found
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    with pytest.raises(LabError, match=f"{FILE} is damaged, or of another version"):
        report_of(found, tmp_path)


def test_damaged_histograms_cost_only_their_picture(tmp_path: Path) -> None:
    found = measured.lines("pool-ka")
    for number, record in enumerate(found[1:]):
        record["load"]["histogram"] = ("HISTFAAAFRB4", "!!!", "HISTFAAAAA==")[number % 3]
    (section,) = report_of(found, tmp_path).sections
    names = [picture.name for fold in section.folds for picture in fold.pictures]
    assert "capacity-load" in names
    assert "capacity-percentiles" not in names


def test_void_runs_name_no_bottleneck(tmp_path: Path) -> None:
    found = measured.lines("pool-ka")
    for record in found[1:]:
        record["load"]["failed"] = record["load"]["requests"]
    (section,) = report_of(found, tmp_path).sections
    assert "nothing is known" in section.headline.sentence
    limit = next(fold for fold in section.folds if fold.title == "What is the limit?")
    assert limit.findings[0] == "No measurement is valid, so the bottleneck is not known."


def test_a_void_run_counts_in_neither_table_of_levels(tmp_path: Path) -> None:
    (section,) = report_of(measured.lines("percore-think"), tmp_path).sections
    tables = {table.name: table for fold in section.folds for table in fold.tables}
    (level,) = [row for row in tables["capacity-levels"].rows if row[0] == "19"]
    (precision,) = [row for row in tables["capacity-precision"].rows if row[0] == "19"]
    assert level[1] == "2"
    assert level[-1] != ""  # one of the two is void
    assert precision[:4] == ["19", "1", level[2], "-"]


def test_without_the_servers_cpu_no_resource_is_named_as_the_limit(tmp_path: Path) -> None:
    found = measured.lines("pool-ka")
    for record in found:
        if str(record.get("key", ""))[:1].isdigit():
            record["load"]["server_demand_s"] = record["server_cpu_s"] = 0.0
    (section,) = report_of(found, tmp_path).sections
    assert "is the limit" not in section.headline.sentence
    (fold,) = [each for each in section.folds if each.title == "What is the limit?"]
    assert fold.findings[0].startswith("The server's CPU was not measured at every training load")


@cache
def of_pool() -> Findings:
    """What a measured sweep shows."""
    points = [r for r in measured.lines("pool-ka") if str(r.get("key", ""))[0:1].isdigit()]
    return findings.find(records.sweep(points, server_cores=1, generator_cores=1), train_to=20)


@pytest.mark.parametrize(
    ("ends", "value", "note"),
    [
        ((7.0, 3.0, 9.0), "7", "3 to 9 (95 %)"),
        ((0.0, 0.0, 0.0), "0", "not even one"),
        ((7.0, 3.0, inf), "7", "3 or more (95 %)"),
        ((200.0, 75.0, inf), "≥ 200", "75 or more (95 %)"),
        ((200.0, 200.0, inf), "≥ 200", "the search ended there"),
    ],
)
def test_users_within_an_objective_are_counted_in_whole_numbers(
    ends: tuple[float, float, float], value: str, note: str
) -> None:
    least = value.startswith("≥")
    within = Interval(value=ends[0], low=ends[1], high=ends[2], is_least=least)
    carried = replace(of_pool().capacity, users_within_p99=within, p99_limit_s=0.001)
    found = replace(of_pool(), capacity=carried)
    studied = capacities.Studied(name="x", server="pool", found=found, records=[])
    users = capacities.numbers(studied)[2]
    assert (users.value, users.note) == (value, note)
    assert "." not in sweeps.interval_text(within)
    (said,) = capacities.waiting_finding(studied)
    assert ("for at least 200 users" if least else f"for up to {value} users") in said


@pytest.mark.parametrize(
    ("limit_s", "said"), [(1.0, "1,000"), (10.0, "10,000"), (0.05, "50"), (0.00052, "0.52")]
)
def test_an_objective_is_a_plain_number(limit_s: float, said: str) -> None:
    carried = replace(of_pool().capacity, p99_limit_s=limit_s)
    found = replace(of_pool(), capacity=carried)
    studied = capacities.Studied(name="x", server="pool", found=found, records=[])
    assert capacities.numbers(studied)[2].name == f"Users with p99 within {said} ms"
    assert f"objective: p99 within {said} ms" in sweeps.response("x", found).alt


def test_the_users_within_an_objective_as_measured_are_those_of_the_last_level_within_it() -> None:
    points = of_pool().sweep.points
    slow_start = [replace(p, p99_s=0.001 if p.users < 4 else 0.0005) for p in points]
    assert capacities.within_measured(slow_start, 0.0006) == 60
    assert capacities.within_measured(slow_start, 0.0001) is None


def test_a_ratio_is_the_same_in_the_table_and_in_its_sentence(tmp_path: Path) -> None:
    report = remake.run(touring.tour(tmp_path) / "compare")
    (section,) = report.sections
    (table,) = section.headline.tables
    for server, times, *_ in table.rows:
        if said := re.search(rf"\b{server} ([\d.]+) times as much", section.headline.sentence):
            assert times.startswith(said[1])


@pytest.mark.parametrize("knee", [19.0, 19.9, 20.0, 21.0])
def test_names_of_marks_that_are_near_to_each_other_do_not_overlap(knee: float) -> None:
    at = Interval(value=knee, low=knee - 1, high=knee + 1)
    seen = replace(of_pool(), capacity=replace(of_pool().capacity, saturation_users=at))
    chart = Chart(name="x", title="X", x="users", y="requests/s", size=sweeps.WIDE, left=0.95)
    sweeps.mark_places(chart, 20, seen)
    chart.canvas.draw_without_rendering()
    one, other = (text.get_window_extent() for text in chart.axes.texts)
    assert not one.padded(-1).overlaps(other)


@pytest.mark.parametrize(("last", "high"), [(2, True), (20, False)])
def test_the_end_of_training_is_named_where_no_marks_are(last: int, high: bool) -> None:
    chart = Chart(name="x", title="X", x="users", y="requests/s", size=sweeps.WIDE, left=0.95)
    sweeps.mark_places(chart, last, of_pool())
    (text,) = [text for text in chart.axes.texts if text.get_text() == "trained up to here"]
    assert text.get_verticalalignment() == ("top" if high else "bottom")


def test_a_picture_has_a_description_in_words() -> None:
    chart = Chart(name="x", title="Throughput", x="users", y="requests/s")
    chart.line("epoll", [1, 20], [900, 12_000], 0)
    chart.mark("N*", 9)
    alt = chart.finish("").alt
    assert alt == "Throughput: requests/s against users. epoll 900 at 1, 12,000 at 20; N* at 9."


@pytest.mark.parametrize("ends", [(1.0, 1.02), (0.9, 9.0), (0.05, 20.0), (0.001, 5000.0)])
def test_a_logarithmic_axis_has_a_readable_number_of_ticks(ends: tuple[float, float]) -> None:
    assert 2 <= len(PlainLog().tick_values(*ends)) <= TICKS_MAX


def test_sections_of_the_same_name_have_different_ids() -> None:
    twice = [pages.findings_first(title, []) for title in ("Answer", "Data!", "A")]
    assert [name for name, _ in pages.named([*twice, twice[2]])] == [
        "answer-2",
        "data-2",
        "a",
        "a-2",
    ]


def test_a_picture_takes_its_ink_from_the_page() -> None:
    chart = Chart(name="x", title="x", x="users", y="requests/s")
    chart.line("a", [0, 1], [0, 1], 0)
    picture = chart.finish("")
    assert "currentColor" in picture.svg
    assert "#000000" not in picture.svg
    assert picture.svg.startswith("<svg")
    assert SERVER not in picture.csv
