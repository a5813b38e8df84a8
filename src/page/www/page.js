// SPDX-License-Identifier: MIT
//
// The statistics page: receives /events and shows the numbers. figures.js computes them, and
// charts.js draws them.

import { Charts, row, setText } from "./charts.js";
import {
    History, bytes, clock, count, cpuOf, cpuShare, date, epoch, exact, figure, inUnit, loads, ofClass, percent, rates,
    seconds, span,
} from "./figures.js";

const SILENT_AFTER_MS = 5000; // events come each second
const AGAIN_AFTER_MS = 1000;
const LOADS_OVER = 5; // states of the server; the load of a process is the mean over them

const byId = (id) => document.getElementById(id);
const places = new Map([...document.querySelectorAll("[data-value]")].map((node) => [node.dataset.value, node]));

/** Writes a text into its place, with the exact value as a tooltip. */
function put(name, text, title) {
    const node = places.get(name);
    setText(node, text);
    if (title === undefined) node.removeAttribute("title");
    else if (node.title !== title) node.title = title;
}

const putCount = (name, number) => put(name, count(number), exact(number));

// ---- the numbers at the top ----

function plural(number, one, more = `${one}s`) {
    return `${exact(number)} ${number === 1 ? one : more}`;
}

function putModel({ model, sandbox, workers, threads_in_each: threads }) {
    const size = threads ? ` × ${plural(threads, "thread")}` : "";
    put("model", `${model}: ${plural(workers, "worker")}${size}`);
    put("sandbox", sandbox);
}

const share = (part, all) => (all > 0 ? `${percent(part / all)} of all` : "");

function putHeadline(stats, last) {
    const { counters, gauges, answers_by_status: answers } = stats;
    const rate = last?.requests;
    put("rate", rate == null ? "–" : figure(rate), rate == null ? undefined : String(rate));
    put("latency", last?.p50 ? `p50 ${seconds(last.p50)}, p99 ${seconds(last.p99)}` : "none in the last second");
    putCount("requests", counters.requests);
    put("since", `since ${clock(stats.started_unix_seconds)}`, date(stats.started_unix_seconds));
    putCount("active", gauges.connections_active);
    putCount("open", gauges.connections_open);
    put("accepted", `${count(counters.connections_accepted)} accepted`, exact(counters.connections_accepted));
    put("sent", bytes(counters.sent_bytes), `${exact(counters.sent_bytes)} bytes`);
    put("sent-rate", last?.sent == null ? "" : `${bytes(last.sent)}/s`);
    const failed = ofClass(stats, 5);
    for (const [name, number] of [["ok", answers[200]], ["missing", answers[404]], ["failed", failed]]) {
        putCount(name, number);
        put(`${name}-share`, share(number, counters.requests));
    }
    places.get("failed").parentElement.classList.toggle("none", failed === 0);
}

function putFacts(stats) {
    putModel(stats.configuration);
    const up = stats.read_unix_seconds - stats.started_unix_seconds;
    put("uptime", span(up), `since ${date(stats.started_unix_seconds)}`);
    put("version", stats.weir);
    put("updated", clock(stats.read_unix_seconds), date(stats.read_unix_seconds));
}

// ---- the machine ----

function putMachine(stats, before) {
    const { machine, configuration, last_reload: reload } = stats;
    byId("machine").classList.toggle("none", !machine);
    if (machine) {
        const now = cpuShare(before, stats);
        put("cpu", now === null ? "–" : `${percent(now)} of a CPU`);
        put("cpu-total", `${seconds(machine.cpu_user_seconds)} and ${seconds(machine.cpu_system_seconds)}`);
        const { requests } = stats.counters;
        put("cpu-request", requests > 0 ? seconds(cpuOf(stats) / requests) : "–");
        put("resident", bytes(machine.resident_bytes), `${exact(machine.resident_bytes)} bytes`);
        putCount("processes", machine.processes);
        const { descriptors_fullest: most, descriptors_fullest_limit: limit } = machine;
        if (machine.descriptors > 0)
            put("files", `${exact(machine.descriptors)}; at most ${exact(most)} of ${exact(limit)}`,
                "of the process nearest to its limit");
        else
            put("files", "–", "this page runs as another user, and may not read them");
    }
    put("configuration", `number ${configuration.number}`, `hash ${configuration.hash}`);
    if (!reload) put("reload", "none");
    else put("reload", `${date(reload.at_unix_seconds)}${reload.failed ? `, refused: ${reload.error}` : ""}`);
}

// ---- HTTP/2 ----

function putHttp2({ counters, gauges }) {
    byId("http2").hidden = !(counters.http2_connections_begun > 0);
    if (byId("http2").hidden) return;
    const { requests, requests_http_2: ours } = counters;
    const both = (one, other) => `${count(counters[one])}, ${count(counters[other])}`;
    putCount("http2-connections", gauges.http2_connections_open);
    putCount("http2-streams", gauges.http2_streams_open);
    put("http2-requests", `${count(ours)}, ${share(ours, requests)}`, exact(ours));
    putCount("http2-stalls", counters.http2_stalls);
    put("http2-resets", both("http2_resets_received", "http2_resets_sent"));
    put("http2-refused", both("http2_floods", "http2_violations"));
}

// ---- what is wrong ----

const GRAVITIES = { wrong: "Wrong", warning: "Warning", note: "Note" };

function verdictItem() {
    const made = document.createElement("li");
    made.innerHTML = "<h3><span></span> <b></b></h3><p></p><p></p>"; // fixed markup only
    return made;
}

function putVerdicts({ verdicts }) {
    byId("verdicts").hidden = !verdicts;
    if (!verdicts) return;
    const list = document.querySelector(".verdicts");
    while (list.children.length > verdicts.length) list.lastChild.remove();
    while (list.children.length < verdicts.length) list.append(verdictItem());
    verdicts.forEach((verdict, at) => {
        const item = list.children[at];
        item.dataset.gravity = verdict.gravity;
        item.dataset.rule = verdict.rule;
        const [head, why, cure] = item.children;
        setText(head.children[0], GRAVITIES[verdict.gravity] ?? verdict.gravity);
        setText(head.children[1], verdict.text);
        setText(why, verdict.why);
        setText(cure, verdict.cure && `What to do: ${verdict.cure}`);
    });
    const grave = verdicts.filter(({ gravity }) => gravity !== "note").length;
    const summary = document.querySelector(".verdict-summary");
    summary.classList.toggle("well", grave === 0);
    setText(summary, grave === 0 ? "Nothing is wrong." : `${plural(grave, "problem needs", "problems need")} attention.`);
}

// ---- tables ----

/** Writes rows of texts into a table's body, and touches only the cells that differ. */
function fill(body, rows) {
    while (body.rows.length > rows.length) body.deleteRow(-1);
    rows.forEach((cells, at) => {
        const there = body.rows[at];
        if (!there || there.cells.length !== cells.length) body.append(row(cells));
        else cells.forEach((cell, column) => setText(there.cells[column], cell));
    });
}

function putSites({ sites }) {
    fill(byId("sites").tBodies[0], sites
        .filter((site) => site.name || site.requests)
        .map((site) => [
            site.name || "(no site)",
            ...["requests", "2xx", "3xx", "4xx", "5xx"].map((name) => count(site[name])),
            bytes(site.body_bytes),
            seconds(site.latency.p50_seconds),
            seconds(site.latency.p99_seconds),
        ]));
}

function putCertificates({ certificates }) {
    byId("certificates").closest("section").hidden = certificates.length === 0;
    fill(byId("certificates").tBodies[0], certificates.map((one) => [
        one.name,
        one.key,
        new Date(one.ends_unix_seconds * 1000).toISOString().slice(0, 10),
        one.days_left.toFixed(1),
    ]));
}

/** Bytes of a client, with what is invisible or changes the direction of writing made visible. */
const visible = (words) =>
    words.replace(/\p{C}|[\u2028\u2029]/gu, (unit) => `\\u{${unit.codePointAt(0).toString(16)}}`);

function putRecent({ recent = [], configuration }) {
    const { slow_seconds: slow = 0 } = configuration;
    byId("recent-title").textContent = slow > 0
        ? `Recent answers that failed, took ${seconds(slow)} or longer, or were cut`
        : "Recent answers that failed or were cut";
    byId("recent").closest("section").hidden = recent.length === 0;
    fill(byId("recent").tBodies[0], recent.map((one) => [
        `${span(one.seconds_ago)} ago`,
        one.kind,
        String(one.status),
        seconds(one.duration_seconds),
        visible(one.request) || "–",
        one.cause,
        one.site || "(no site)",
        one.id,
    ]));
}

function putStatuses({ answers_by_status: answers, unreadable_by_status: unreadable, counters }) {
    const rows = Object.entries(answers)
        .filter(([, number]) => number > 0)
        .map(([code, number]) => [
            code, count(number), percent(number / counters.requests), count(unreadable[code]),
        ]);
    byId("no-answers").hidden = rows.length > 0;
    byId("statuses").parentElement.hidden = rows.length === 0;
    fill(byId("statuses").tBodies[0], rows);
}

function putDurations({ durations, about }) {
    const names = ["p50", "p90", "p99", "p999", "max"];
    fill(byId("durations").tBodies[0], Object.entries(durations)
        .filter(([name, each]) => name === "latency" || each.count > 0)
        .map(([name, each]) => [
            name,
            count(each.count),
            each.count ? seconds(each.sum_seconds / each.count) : "–",
            ...names.map((quantile) => (each.count ? seconds(each[`${quantile}_seconds`]) : "–")),
        ]));
    for (const { cells } of byId("durations").tBodies[0].rows) {
        const sentence = about?.[cells[0].textContent]?.sentence;
        if (sentence) cells[0].title = sentence;
    }
}

/** One table for each section, with the sentence of each counter below its name. On a narrow screen
 * the tables are folded: together they are many screens long. */
function layOutCounters(about, names) {
    const tables = new Map(), isWide = matchMedia("(min-width: 44rem)").matches;
    for (const name of names) {
        const { section = "Others", sentence = "" } = about?.[name] ?? {};
        if (!tables.has(section)) {
            const folding = document.createElement("details");
            folding.open = isWide;
            const title = folding.appendChild(document.createElement("summary"));
            title.textContent = section;
            const table = folding.appendChild(document.createElement("table"));
            table.setAttribute("aria-label", section);
            table.createTHead().append(row(["What", "Total or now", "Each second"], true));
            tables.set(section, table.createTBody());
        }
        const made = row([name.replaceAll("_", " "), "", ""]);
        made.dataset.name = name;
        const explained = document.createElement("p");
        explained.textContent = sentence;
        made.cells[0].append(explained);
        tables.get(section).append(made);
    }
    byId("counters").replaceChildren(...[...tables.values()].map((body) => body.closest("details")));
}

function putCounters(stats, before) {
    const values = { ...stats.gauges, ...stats.counters };
    const order = Object.keys(stats.about ?? {}).filter((name) => name in values);
    const names = [...order, ...Object.keys(values).filter((name) => !order.includes(name))];
    const rows = () => [...byId("counters").querySelectorAll("[data-name]")];
    if (rows().map(({ dataset }) => dataset.name).join() !== names.join()) layOutCounters(stats.about, names);
    const each = rates(before, stats);
    for (const { dataset: { name }, cells: [, total, rate] } of rows()) {
        const unit = stats.about?.[name]?.unit ?? "";
        setText(total, inUnit(values[name], unit));
        total.title = `${exact(values[name])} ${unit}`;
        const words = unit === "bytes" ? bytes : figure;
        setText(rate, each[name] ? `${words(each[name])}/s` : "");
    }
}

// ---- the whole ----

class Page {
    history = new History();
    charts = new Charts(byId("charts"));
    stats = null;
    earlier = []; // earlier states, the oldest first
    paused = false;
    lostAt = null; // unix seconds

    take(stats) {
        if (this.stats && epoch(this.stats) !== epoch(stats)) this.earlier = [];
        else if (this.stats) this.earlier = [...this.earlier, this.stats].slice(-LOADS_OVER);
        this.stats = stats;
        this.history.add(stats);
        this.lostAt = null;
        if (this.paused) this.putState();
        else this.draw();
    }

    draw() {
        const { stats } = this;
        this.putState();
        if (!stats) return;
        const over = Number(byId("span").value);
        const points = this.history.points(over);
        const before = this.earlier.at(-1);
        putFacts(stats);
        putHeadline(stats, points.at(-1));
        putVerdicts(stats);
        putMachine(stats, before);
        putHttp2(stats);
        putCertificates(stats);
        putRecent(stats);
        putSites(stats);
        putStatuses(stats);
        putDurations(stats);
        putCounters(stats, before);
        this.charts.draw(points, over, loads(this.earlier, stats), stats);
    }

    state() {
        if (this.lostAt) return ["lost", `no connection since ${clock(this.lostAt)}; trying again`];
        if (!this.stats) return ["waiting", "waiting for the first numbers"];
        const { running, state, master_seen_seconds_ago: silent } = this.stats;
        if (!running) return ["lost", "not running"];
        if (this.paused) return ["paused", "paused; the server is running"];
        if (silent > 5) return ["lost", `its master has not been seen for ${span(silent)}`];
        return state && state !== "serving" ? ["stopping", state] : ["serving", "serving"];
    }

    putState() {
        const [name, words] = this.state();
        document.querySelector(".state").dataset.state = name;
        put("state", words);
        document.body.classList.toggle("lost", name === "lost" && this.stats !== null);
    }

    lose() {
        this.lostAt ??= Date.now() / 1000;
        this.putState();
    }

    pause(paused) {
        this.paused = paused;
        byId("pause").setAttribute("aria-pressed", String(paused));
        this.draw();
    }
}

/** Receives events while the page is visible, and connects again when they stop. */
class Listener {
    #source = null;
    #timer = 0;

    constructor(page) {
        this.page = page;
    }

    begin() {
        this.end();
        this.#source = new EventSource("/events");
        this.#source.addEventListener("stats", ({ data }) => this.#hear(JSON.parse(data)));
        this.#source.addEventListener("second", ({ data }) =>
            this.#hear({ about: this.page.stats.about, ...JSON.parse(data) }));
        this.#source.addEventListener("error", () => this.#stumble());
        this.#wait(SILENT_AFTER_MS);
    }

    end() {
        clearTimeout(this.#timer);
        this.#source?.close();
        this.#source = null;
    }

    #hear(stats) {
        this.#wait(SILENT_AFTER_MS);
        this.page.take(stats);
    }

    /** The browser reconnects on its own, with the id of its last event, but not after a refusal. */
    #stumble() {
        if (this.#source.readyState === EventSource.CLOSED) this.#lose();
        else this.page.lose();
    }

    #lose() {
        this.end();
        this.page.lose();
        this.#timer = setTimeout(() => this.begin(), AGAIN_AFTER_MS);
    }

    #wait(milliseconds) {
        clearTimeout(this.#timer);
        this.#timer = setTimeout(() => this.#lose(), milliseconds);
    }
}

// ---- settings ----

const prefersDark = matchMedia("(prefers-color-scheme: dark)");

/** The earlier choice; a browser may refuse to store it. */
const memory = {
    get(name) {
        try {
            return localStorage.getItem(`weir-${name}`);
        } catch {
            return null;
        }
    },
    set(name, value) {
        try {
            localStorage.setItem(`weir-${name}`, value);
        } catch {
            // The choice lasts as long as the page.
        }
    },
};

function showTheme(forced) {
    const chosen = forced ?? byId("theme").value;
    const dark = chosen === "system" ? prefersDark.matches : chosen === "dark";
    document.documentElement.dataset.theme = dark ? "dark" : "light";
}

function remember(select, then) {
    const before = memory.get(select.id);
    if ([...select.options].some(({ value }) => value === before)) select.value = before;
    select.addEventListener("change", () => {
        memory.set(select.id, select.value);
        then();
    });
}

function showSpan() {
    const { value, selectedOptions } = byId("span");
    put("span", value === "60" ? "minute" : selectedOptions[0].textContent);
}

function begin() {
    showTheme(memory.get("theme") ?? "system");
    const page = new Page();
    const listener = new Listener(page);
    const repaint = (forced) => {
        showTheme(forced);
        page.charts.paint();
    };
    remember(byId("theme"), () => repaint());
    remember(byId("span"), () => {
        showSpan();
        page.draw();
    });
    showSpan();
    prefersDark.addEventListener("change", () => repaint());
    addEventListener("beforeprint", () => repaint("light"));
    addEventListener("afterprint", () => repaint());
    byId("pause").addEventListener("click", () => page.pause(!page.paused));
    document.addEventListener("visibilitychange", () => (document.hidden ? listener.end() : listener.begin()));
    addEventListener("pagehide", () => listener.end());
    addEventListener("pageshow", () => listener.begin());
    return page;
}

/** For the console, and for tests. */
globalThis.weir = begin();
