# SPDX-License-Identifier: MIT
"""The statistics page in a browser."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, Route

from tests.e2e.browsing import Watch, new_page
from tests.e2e.conftest import ServerFactory
from tests.e2e.load import Load
from tests.e2e.running import Server
from tests.e2e.statistics import Numbers, read, wait_for
from tests.e2e.wire import connect
from tests.waiting import LIMIT_S, wait_until

HELLO = b"hello\n"
PROBE = (Path(__file__).parent / "page_probe.js").read_text().strip()

pytestmark = pytest.mark.parametrize("model", ["percore"])


def page_of(running: Server) -> str:
    """The URL of the statistics page."""
    found = re.search("statistics: (http://[^ ]+)/", running.messages())
    assert found
    return found[1]


def probe(page: Page, name: str, *arguments: object) -> Any:  # noqa: ANN401
    """Calls a function of page_probe.js."""
    return page.evaluate(f"given => {PROBE}.{name}(...given)", list(arguments))


@contextmanager
def opened(browser: Browser, url: str, **how: object) -> Iterator[tuple[Page, Watch]]:
    """The page, once it shows numbers. Errors on the page fail the test at the end."""
    page = new_page(browser, **how)
    watch = Watch(page)
    page.goto(url + "/")
    wait_until(lambda: page.evaluate("weir.stats !== null"), "the page has numbers")
    yield page, watch
    page.close()
    assert watch.troubles == []


def title(page: Page, name: str) -> int:
    """The exact number. The page shows it rounded."""
    exact = page.get_attribute(f"[data-value={name}]", "title")
    assert exact, name
    return int(exact.split()[0].replace(",", ""))


def text(page: Page, name: str) -> str:
    return page.inner_text(f"[data-value={name}]").replace("\u00a0", " ")


def shown_requests(page: Page) -> int:
    return title(page, "requests")


def ask(running: Server, path: str, times: int) -> None:
    with connect(running.address) as connection:
        for _ in range(times):
            connection.get(path)


def loaded(running: Server) -> Load:
    return Load(running.address, "/hello.txt", HELLO, clients=2, keep=True, rest_s=0.005)


def series(page: Page, chart: str) -> list[list[float | None]]:
    """The values of each line of a chart."""
    found: list[list[float | None]] = page.evaluate(
        "id => weir.charts.byId[id].chart.data.datasets.map(({data}) => data.map(({y}) => y))",
        chart,
    )
    return found


def pixels(page: Page, chart: str) -> str:
    found: str = page.evaluate("id => weir.charts.byId[id].chart.canvas.toDataURL()", chart)
    return found


# ---- numbers ----


@pytest.mark.parametrize("other", ["percore", "pool", "fork"])
def test_the_page_shows_the_numbers_of_the_server(
    server: ServerFactory, browser: Browser, other: str
) -> None:
    running = server("--stats-listen", "127.0.0.1:0", "--model", other)
    with opened(browser, page_of(running)) as (page, _):
        ask(running, "/hello.txt", 1500)
        ask(running, "/nothing", 30)
        with connect(running.address) as connection:
            assert connection.get("/hello.txt", "a", "If-None-Match: *").status == 304
        wait_for(running, lambda numbers: numbers["gauges"]["connections_open"] == 0)
        expected: Numbers = {}

        def has_all() -> bool:  # requests of the page within 50 ms get the same text
            expected.update(page.request.get(page_of(running) + "/stats.json").json())
            return bool(expected["gauges"]["connections_open"] == 0)

        wait_until(has_all, "the page process has read the end of the connections")
        assert expected["counters"]["requests"] == 1531
        del expected["counters"]["accept_overflows"]  # the kernel counts for the whole machine
        of_these = "names => names.map(name => weir.stats.counters[name])"
        names, totals = list(expected["counters"]), list(expected["counters"].values())
        wait_until(lambda: page.evaluate(of_these, names) == totals, "the totals of the server")
        assert title(page, "requests") == 1531
        assert text(page, "requests") == "1,531"
        assert title(page, "ok") == expected["answers_by_status"]["200"] == 1500
        assert title(page, "missing") == expected["answers_by_status"]["404"] == 30
        assert title(page, "failed") == 0
        assert title(page, "sent") == expected["counters"]["sent_bytes"]
        assert title(page, "open") == title(page, "active") == 0
        assert text(page, "state") == "serving"
        assert text(page, "version") == expected["weir"]
        assert text(page, "model").startswith(expected["configuration"]["model"])
        everything = {**expected["counters"], **expected["gauges"]}
        for name, value in everything.items():
            row = page.locator(f"#counters tr[data-name={name}]")
            shown = row.locator("td").first.get_attribute("title")
            assert shown
            assert int(shown.split()[0].replace(",", "")) == value, name
            assert row.locator("p").inner_text() == expected["about"][name]["sentence"]
        statuses = dict(
            line.split("\t")[:2]
            for line in page.inner_text("#statuses tbody").replace("\u00a0", " ").splitlines()
        )
        assert statuses == {"200": "1,500", "304": "1", "404": "30"}
        site = page.inner_text("#sites tbody").split("\t")
        assert site[:6] == ["default", "1,531", "1,500", "1", "30", "0"]


def test_numbers_are_formatted_and_rates_are_computed(
    server: ServerFactory, browser: Browser
) -> None:
    running = server("--stats-listen", "127.0.0.1:0")
    with opened(browser, page_of(running)) as (page, _):
        words = probe(page, "words")
        assert [word.replace("\u00a0", " ") for word in words] == [
            *("0 B", "1,023 B", "1 KiB", "1.5 MiB", "1 MiB"),
            *("0 s", "1.2 µs", "250 ms", "90 s", "1 h 2 min"),
            *("59 s", "1 h", "2 d 3 h", "1,234,567", "0.123", "1,235", "50 %"),
        ]
        assert probe(page, "rates") == [10, None, None, 1, 0.25, None]


def test_history_has_each_second_once_and_no_rate_over_a_gap(
    server: ServerFactory, browser: Browser
) -> None:
    running = server("--stats-listen", "127.0.0.1:0")
    with opened(browser, page_of(running)) as (page, _):
        first = [1, 100, [[98, 0], [99, 50], [100, 150]]]
        again = [1, 101, [[99, 50], [100, 150], [101, 150]]]
        assert probe(page, "history", [first, again]) == [
            [-3, None, None],
            [-2, 50, 50],
            [-1, 100, 100],
            [0, 0, 0],
        ]
        restarted = [2, 110, [[109, 3], [110, 7]]]
        assert probe(page, "history", [first, restarted])[-2:] == [[-1, None, None], [0, 4, 4]]
        late = [1, 200, [[199, 900], [200, 901]]]
        gap = [-1, None, None]
        assert probe(page, "history", [first, late])[-3:] == [gap, [-1, None, None], [0, 1, 1]]
        other_machine = [3, 50, [[49, 1], [50, 2]]]
        assert probe(page, "history", [first, other_machine]) == [[-1, None, None], [0, 1, 1]]


# ---- charts ----


def test_charts_begin_with_the_last_minute_and_move(
    server: ServerFactory, browser: Browser
) -> None:
    running = server("--stats-listen", "127.0.0.1:0")
    with loaded(running):
        wait_for(running, lambda numbers: len(numbers["moments"]) >= 4)
        with opened(browser, page_of(running)) as (page, _):
            assert len([y for y in series(page, "throughput")[0] if y]) >= 2
            before = {name: (series(page, name), pixels(page, name)) for name in CHARTS}
            requests = shown_requests(page)
            wait_until(lambda: shown_requests(page) > requests, "more requests are shown")
            wait_until(
                lambda: series(page, "throughput") != before["throughput"][0], "the chart moves"
            )
            wait_until(
                lambda: all(pixels(page, name) != before[name][1] for name in MOVING),
                "every chart is redrawn",
            )
            throughput = [y for y in series(page, "throughput")[0] if y is not None]
            assert throughput[-1] > 0
            p50, _, _, p999 = (
                next(y for y in reversed(line) if y) for line in series(page, "latency")
            )
            assert 0 < p50 <= p999
            loads = page.evaluate("weir.charts.byId.loads.loads")
            wait_until(
                lambda: page.evaluate("weir.charts.byId.loads.loads.length") > 1,
                "the chart of loads has points",
            )
            assert all(load["rate"] >= 0 for load in loads)


CHARTS = ["throughput", "latency", "statuses", "connections", "bytes", "cache"]
MOVING = ["throughput", "latency", "statuses", "bytes"]


def test_the_queue_has_a_chart_where_the_model_has_a_queue(
    server: ServerFactory, browser: Browser
) -> None:
    running = server("--stats-listen", "127.0.0.1:0", "--model", "pool")
    with opened(browser, page_of(running)) as (page, _):
        assert not page.is_visible("#chart-queue")
        ask(running, "/hello.txt", 1)
        page.wait_for_selector("#chart-queue", timeout=LIMIT_S * 1000)


def test_each_chart_has_a_table(server: ServerFactory, browser: Browser) -> None:
    running = server("--stats-listen", "127.0.0.1:0")
    with loaded(running), opened(browser, page_of(running)) as (page, _):
        wait_until(lambda: series(page, "throughput")[0][1:], "the chart has points")
        assert "requests/s" in (page.get_attribute("#chart-throughput canvas", "aria-label") or "")
        for chart in [*CHARTS, "loads"]:
            page.click(f"#chart-{chart} summary")
            rows = page.locator(f"#chart-{chart} tbody tr")
            wait_until(rows.count, f"{chart} has rows")
            heads = page.locator(f"#chart-{chart} thead th").count()
            assert rows.first.locator("th, td").count() == heads > 1


def test_charts_show_the_selected_period(server: ServerFactory, browser: Browser) -> None:
    running = server("--stats-listen", "127.0.0.1:0")
    with opened(browser, page_of(running)) as (page, _):
        page.select_option("#span", "600")
        assert page.evaluate("weir.charts.byId.latency.chart.scales.x.min") == -600
        assert page.inner_text("#charts-title") == "The last 10 minutes"
        page.reload()
        wait_until(lambda: page.evaluate("weir.stats !== null"), "the page has numbers")
        assert page.evaluate("weir.charts.byId.latency.chart.scales.x.min") == -600


# ---- a server that stops ----


def test_the_page_recovers_after_a_restart(server: ServerFactory, browser: Browser) -> None:
    first = server("--stats-listen", "127.0.0.1:0")
    url = page_of(first)
    page = new_page(browser)
    failures: list[str] = []
    page.on("pageerror", lambda error: failures.append(str(error)))
    page.goto(url + "/")
    ask(first, "/hello.txt", 500)
    wait_until(
        lambda: page.evaluate("weir.stats?.counters.requests") == 500, "all requests are shown"
    )
    first.stop()
    wait_until(lambda: "no connection since" in text(page, "state"), "the page notices the end")
    assert "trying again" in text(page, "state")
    assert page.get_attribute("body", "class") == "lost"
    assert title(page, "requests") == 500
    second = server("--stats-listen", urlsplit(url).netloc)
    assert page_of(second) == url
    ask(second, "/hello.txt", 20)
    wait_until(
        lambda: page.evaluate("weir.stats.counters.requests") == 20, "the numbers of the new server"
    )
    assert text(page, "state") == "serving"
    assert page.get_attribute("body", "class") == ""
    assert title(page, "requests") == 20
    wait_until(
        lambda: page.evaluate("weir.history.moments.at(-1).epoch").startswith(
            str(second.master.pid)
        ),
        "a second of the new server",
    )
    drawn = [y for line in series(page, "throughput") + series(page, "bytes") for y in line]
    assert all(y is None or y >= 0 for y in drawn)
    assert "-" not in page.inner_text("#counters td")
    page.close()
    assert failures == []


def test_text_from_the_server_is_not_interpreted(server: ServerFactory, browser: Browser) -> None:
    running = server("--stats-listen", "127.0.0.1:0")
    numbers = read(running.master.pid)
    evil = "<img src=x onerror=alert(1)>"
    verdict = {"gravity": "wrong", "rule": "r", "text": evil, "why": f"why {evil}", "cure": evil}
    note = {"gravity": "note", "rule": "n", "text": "a note", "why": "", "cure": ""}
    numbers["verdicts"] = [verdict, note]
    numbers["sites"][-1] |= {"name": evil, "requests": 1}
    numbers["configuration"]["model"] = evil
    numbers["last_reload"] = {"at_unix_seconds": 1, "failed": True, "error": evil}
    page = new_page(browser)
    watch = Watch(page)

    def tell(route: Route) -> None:
        body = f"event: stats\ndata: {json.dumps(numbers)}\n\n"
        route.fulfill(body=body, content_type="text/event-stream")

    page.route("**/events", tell)
    page.goto(page_of(running) + "/")
    wrong = page.locator(".verdicts [data-gravity=wrong]")
    wrong.wait_for()
    shown = " ".join(wrong.inner_text().split())
    assert shown == f"Wrong {evil} why {evil} What to do: {evil}"
    assert page.inner_text(".verdict-summary") == "1 problem needs attention."
    assert page.locator(".verdicts li").count() == 2
    assert page.locator("main img").count() == 0
    for place in ("#sites", "[data-value=reload]", "[data-value=model]"):
        assert evil in page.inner_text(place)
    numbers["verdicts"] = []
    wait_until(
        lambda: "Nothing is wrong." in page.inner_text(".verdict-summary"), "no verdict is shown"
    )
    assert page.locator(".verdicts li").count() == 0
    page.evaluate("weir.take({ ...weir.stats, state: 'stopping' })")
    assert page.evaluate("weir.state()") == ["stopping", "stopping"]
    page.close()
    assert [each for each in watch.troubles if not each.endswith("/events")] == []


# ---- use ----


def test_the_page_can_be_paused(server: ServerFactory, browser: Browser) -> None:
    running = server("--stats-listen", "127.0.0.1:0")
    with opened(browser, page_of(running)) as (page, _):
        page.click("#pause")
        assert page.get_attribute("#pause", "aria-pressed") == "true"
        before = shown_requests(page)
        ask(running, "/hello.txt", 100)
        wait_until(
            lambda: page.evaluate("weir.stats.counters.requests") == 100,
            "the paused page receives numbers",
        )
        assert shown_requests(page) == before
        assert text(page, "state").startswith("paused")
        page.click("#pause")
        assert shown_requests(page) == 100
        assert text(page, "state") == "serving"


def test_a_hidden_page_reads_no_numbers(server: ServerFactory, browser: Browser) -> None:
    running = server("--stats-listen", "127.0.0.1:0")
    with opened(browser, page_of(running)) as (page, watch):
        probe(page, "hide", True)
        seen = page.evaluate("weir.stats.read_monotonic_seconds")
        ask(running, "/hello.txt", 100)
        wait_for(running, lambda numbers: numbers["read_monotonic_seconds"] > seen + 2.5)
        assert page.evaluate("weir.stats.read_monotonic_seconds") == seen
        probe(page, "hide", False)
        wait_until(lambda: shown_requests(page) == 100, "the page reads again")
        assert len([url for url in watch.requests if url.endswith("/events")]) == 2


def test_the_page_requests_nothing_from_other_servers(
    server: ServerFactory, browser: Browser
) -> None:
    running = server("--stats-listen", "127.0.0.1:0")
    with loaded(running), opened(browser, page_of(running)) as (page, watch):
        requests = shown_requests(page)
        wait_until(lambda: shown_requests(page) > requests, "more requests are shown")
        asked = {url.removeprefix(page_of(running)) for url in watch.requests}
    scripts = {"/chart.js", "/page.js", "/charts.js", "/figures.js"}
    assert asked - {"/favicon.svg"} == {"/", "/theme.css", "/page.css", "/events", *scripts}


# ---- appearance ----


def test_both_themes_can_be_selected(server: ServerFactory, browser: Browser) -> None:
    running = server("--stats-listen", "127.0.0.1:0")
    shots = {}
    with loaded(running):
        for theme in ("light", "dark"):
            with opened(browser, page_of(running), color_scheme=theme) as (page, _):
                page.wait_for_selector(".legend b:text('/s')", timeout=LIMIT_S * 1000)
                shots[theme] = page.screenshot()
                assert page.evaluate("document.documentElement.dataset.theme") == theme
                other = "light" if theme == "dark" else "dark"
                line = "weir.charts.byId.throughput.chart.data.datasets[0].borderColor"
                before = page.evaluate(line)
                page.select_option("#theme", other)
                assert page.evaluate(line) != before
                page.reload()
                assert page.evaluate("document.documentElement.dataset.theme") == other
                page.emulate_media(color_scheme=theme)
                page.select_option("#theme", "system")
                assert page.evaluate("document.documentElement.dataset.theme") == theme
                page.wait_for_selector("[data-value=state]:text('serving')")
    blank = new_page(browser)
    empty = len(blank.screenshot())
    blank.close()
    assert shots["light"] != shots["dark"]
    assert min(map(len, shots.values())) > 5 * empty


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 390, 768, 1280])
def test_the_page_is_no_wider_than_the_window(
    server: ServerFactory, browser: Browser, theme: str, width: int
) -> None:
    running = server("--stats-listen", "127.0.0.1:0")
    ask(running, "/hello.txt", 20)
    how = {"viewport": {"width": width, "height": 844}, "color_scheme": theme}
    with opened(browser, page_of(running), **how) as (page, _):
        page.click("#chart-statuses summary")
        assert page.evaluate("document.documentElement.scrollWidth") == width
        for canvas in page.locator("canvas:visible").all():
            box = canvas.bounding_box()
            assert box
            assert box["width"] > width / 5
            assert box["x"] + box["width"] <= width


def test_a_long_path_leaves_its_cause_in_the_window(
    server: ServerFactory, browser: Browser
) -> None:
    running = server("--stats-listen", "127.0.0.1:0")
    ask(running, "/" + "x" * 250, 3)
    how = {"viewport": {"width": 1280, "height": 844}}
    with opened(browser, page_of(running), **how) as (page, _):
        cause = page.locator("#recent tbody tr:first-child td:nth-child(6)")
        assert cause.inner_text() == "Not Found"
        wider = "node => node.scrollWidth > node.clientWidth"
        assert not page.locator("[aria-labelledby=recent-title].scroll").evaluate(wider)


def wait_for_more(page: Page, requests: int) -> None:
    wait_until(
        lambda: page.evaluate("weir.stats.counters.requests") > requests, "new numbers are shown"
    )


def test_the_counters_are_folded_in_a_narrow_window(
    server: ServerFactory, browser: Browser
) -> None:
    running = server("--stats-listen", "127.0.0.1:0")
    for width, folded in ((390, True), (1280, False)):
        how = {"viewport": {"width": width, "height": 844}}
        with opened(browser, page_of(running), **how) as (page, _):
            row = page.locator("#counters tr[data-name=requests]")
            row.wait_for(state="attached", timeout=LIMIT_S * 1000)
            assert row.is_visible() is not folded
            page.click("#counters summary:text-is('Requests')")
            assert row.is_visible() is folded
            before = page.evaluate("weir.stats.counters.requests")
            ask(running, "/hello.txt", 1)  # new numbers leave it as it is
            wait_for_more(page, before)
            assert row.is_visible() is folded


def test_reduced_motion_and_printing_are_supported(server: ServerFactory, browser: Browser) -> None:
    running = server("--stats-listen", "127.0.0.1:0")
    how = {"reduced_motion": "reduce", "color_scheme": "dark"}
    with opened(browser, page_of(running), **how) as (page, _):
        motion = "getComputedStyle(document.querySelector('main')).transitionDuration"
        assert page.evaluate(motion) == "0s"
        assert page.evaluate("weir.charts.byId.throughput.chart.options.animation") is False
        page.emulate_media(media="print")
        assert not page.is_visible(".controls")
        assert page.is_visible("#chart-throughput")
        assert probe(page, "pale") == []
        assert page.evaluate("getComputedStyle(document.body).color") == "rgb(28, 43, 51)"
        assert page.pdf()[:5] == b"%PDF-"


# ---- accessibility ----


def test_the_keyboard_reaches_every_control(server: ServerFactory, browser: Browser) -> None:
    running = server("--stats-listen", "127.0.0.1:0")
    with opened(browser, page_of(running)) as (page, _):
        reached = []
        for _ in range(60):
            page.keyboard.press("Tab")
            now = probe(page, "focused")
            if now[0] == "BODY":
                break
            reached.append(now)
        assert [name for _, name, _ in reached[:4]] == ["skip", "pause", "span", "theme"]
        summaries = [name for tag, name, _ in reached if tag == "SUMMARY"]
        assert len(summaries) == page.locator("summary:visible").count()
        assert all(outlined for _, _, outlined in reached), reached
        page.focus("#pause")
        page.keyboard.press("Enter")
        assert page.get_attribute("#pause", "aria-pressed") == "true"
        page.focus("#chart-throughput summary")
        page.keyboard.press("Enter")
        page.wait_for_selector("#chart-throughput thead", timeout=LIMIT_S * 1000)
        page.focus(".skip")
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "content"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_element_has_a_name_and_enough_contrast(
    server: ServerFactory, browser: Browser, theme: str
) -> None:
    running = server("--stats-listen", "127.0.0.1:0")
    ask(running, "/hello.txt", 20)
    with opened(browser, page_of(running), color_scheme=theme) as (page, _):
        wait_until(lambda: page.locator("#sites tbody tr").count(), "a site is listed")
        page.click("#chart-statuses summary")
        assert probe(page, "audit") == []
        assert probe(page, "pale") == []
