// SPDX-License-Identifier: MIT
//
// The charts, and their options for Chart.js. Each chart has its current values beside its title,
// and all values in a table, for readers who cannot see it or point at it.

import { bytes, clock, count, fairness, figure, percent, seconds } from "./figures.js";

const PROCESSES_MAX = 16;

/** value(point): what is drawn; color: a custom property of page.css. */
const line = (label, color, value, more = {}) => ({ label, color, value, ...more });

const DESCRIPTIONS = [
    {
        id: "throughput",
        title: "Requests",
        about: "answered each second",
        words: figure,
        suggestedMax: 10,
        lines: [line("requests/s", "--teal", (point) => point.requests, { fill: true })],
    },
    {
        id: "latency",
        title: "Latency",
        about: "on a logarithmic scale",
        words: seconds,
        logarithmic: true,
        lines: [
            line("p50", "--teal", (point) => point.p50),
            line("p90", "--blue", (point) => point.p90),
            line("p99", "--amber", (point) => point.p99),
            line("p99.9", "--red", (point) => point.p999, { dash: [6, 4] }),
        ],
    },
    {
        id: "statuses",
        title: "Answers by class",
        about: "each second",
        words: figure,
        stacked: true,
        suggestedMax: 10,
        lines: [
            line("2xx", "--teal", (point) => point.classes[1], { fill: true }),
            line("3xx", "--sky-line", (point) => point.classes[2], { fill: true }),
            line("4xx", "--amber", (point) => point.classes[3], { fill: true }),
            line("5xx", "--red", (point) => point.classes[4], { fill: true }),
        ],
    },
    {
        id: "connections",
        title: "Connections",
        about: "at each second",
        words: count,
        whole: true,
        suggestedMax: 4,
        lines: [
            line("open", "--blue", (point) => point.open, { fill: true }),
            line("active", "--amber", (point) => point.active),
        ],
    },
    {
        id: "bytes",
        title: "Bytes",
        about: "each second",
        words: (number) => `${bytes(number)}/s`,
        binary: true,
        suggestedMax: 1024,
        lines: [
            line("sent", "--teal", (point) => point.sent, { fill: true }),
            line("received", "--violet", (point) => point.received),
        ],
    },
    {
        id: "cache",
        title: "Cache",
        about: "files found ready",
        words: percent,
        max: 1,
        lines: [
            line("hit ratio", "--teal", (point) => point.hitRatio),
            line("size", "--violet", (point) => point.cacheBytes, { beside: true, words: bytes, dash: [6, 4] }),
        ],
        beside: { words: bytes, binary: true, suggestedMax: 1024 },
    },
    {
        id: "queue",
        title: "Queue",
        about: "for a thread",
        words: count,
        whole: true,
        suggestedMax: 4,
        lines: [
            line("waiting", "--blue", (point) => point.queue, { fill: true }),
            line("mean wait", "--amber", (point) => point.wait, { beside: true, words: seconds, dash: [6, 4] }),
        ],
        beside: { words: seconds, suggestedMax: 0.0001 },
    },
];

// ---- colours ----

function color(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

const shade = (hex) => `${hex}38`;

// ---- axes ----

/** The smallest power of two that is at least a quarter of a value. */
const binaryStep = (max) => 2 ** Math.ceil(Math.log2(max / 4));

function valueAxis({ words, logarithmic, stacked, whole, binary, max, suggestedMax }, position) {
    const axis = {
        type: logarithmic ? "logarithmic" : "linear",
        position,
        stacked: Boolean(stacked),
        beginAtZero: true,
        max,
        suggestedMax,
        grid: { color: color("--rule"), drawBorder: false, drawOnChartArea: position === "left", drawTicks: false },
        ticks: { color: color("--soft"), callback: words, maxTicksLimit: 5, padding: 6 },
    };
    if (whole) axis.ticks.precision = 0;
    if (logarithmic) {
        axis.ticks.autoSkip = false;
        axis.afterBuildTicks = (scale) => {
            scale.ticks = scale.ticks.filter(({ value }) => Number.isInteger(Math.round(Math.log10(value) * 1e6) / 1e6));
        };
    }
    if (binary) {
        axis.afterDataLimits = (scale) => {
            const step = binaryStep(Math.max(scale.max, suggestedMax));
            scale.options.ticks.stepSize = step;
            scale.max = Math.ceil(Math.max(scale.max, suggestedMax) / step) * step;
        };
    }
    return axis;
}

function timeAxis() {
    return {
        type: "linear",
        min: -60,
        max: 0,
        grid: { display: false, drawBorder: false },
        ticks: { color: color("--soft"), stepSize: 15, maxRotation: 0, callback: ago },
    };
}

/** Called by Chart.js on the axis. */
function ago(x) {
    if (x === 0) return "now";
    return this.min < -60 ? `−${-x / 60} min` : `−${-x} s`;
}

const FONT = { size: 12 };

function tooltip(title, label) {
    return {
        backgroundColor: color("--ink"),
        titleColor: color("--page"),
        bodyColor: color("--page"),
        displayColors: false,
        callbacks: { title, label },
    };
}

/** The radius of each point. A value without a neighbour has no line, so it gets a dot. */
function radii(data) {
    const has = (at) => data[at]?.y != null;
    const alone = data.map((_, at) => has(at) && !has(at - 1) && !has(at + 1));
    return alone.includes(true) ? alone.map((dot) => (dot ? 2 : 0)) : 0; // one radius for all points is faster
}

/** Whole decades around the values. */
function decades(datasets) {
    const values = datasets.flatMap(({ data }) => data.map(({ y }) => y)).filter((y) => y > 0);
    if (!values.length) return [1e-5, 1e-2];
    const low = 10 ** Math.floor(Math.log10(Math.min(...values)));
    return [low, Math.max(low * 10, 10 ** Math.ceil(Math.log10(Math.max(...values))))];
}

// ---- the figure around a chart ----

function element(name, text, className) {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
}

/** A row of a table; its first cell is its header. */
export function row(cells, head) {
    const made = element("tr");
    cells.forEach((text, at) => {
        const cell = element(head || at === 0 ? "th" : "td", text);
        if (cell.tagName === "TH") cell.scope = head ? "col" : "row";
        made.append(cell);
    });
    return made;
}

/** Changes only what differs, so that a selection or a screen reader keeps its place. */
export function setText(node, text) {
    if (node.textContent !== text) node.textContent = text;
}

class Card {
    constructor(place, { id, title, about }) {
        const made = document.getElementById("chart").content.cloneNode(true);
        this.figure = made.querySelector("figure");
        this.figure.id = `chart-${id}`;
        this.canvas = made.querySelector("canvas");
        this.legend = made.querySelector(".legend");
        this.details = made.querySelector("details");
        this.title = title;
        this.note = made.querySelector("figcaption p");
        this.head = made.querySelector("thead");
        this.body = made.querySelector("tbody");
        made.querySelector("h3").textContent = title;
        made.querySelector("summary .unseen").textContent = `${title}:`;
        made.querySelector(".scroll").setAttribute("aria-label", `${title} as a table`);
        this.note.textContent = about;
        place.append(made);
    }

    /** names: [label, custom property of its colour or none, whether it is dashed] */
    keys(names) {
        this.values = names.map(([label, property, dashed]) => {
            const item = element("li");
            const mark = element("i");
            if (property) mark.style.setProperty("--mark", `var(${property})`);
            mark.classList.toggle("dashed", Boolean(dashed));
            mark.classList.toggle("bare", !property);
            const value = element("b", "–");
            const name = element("span", label);
            name.prepend(mark);
            item.append(name, value);
            this.legend.append(item);
            return value;
        });
    }

    show(values) {
        this.values.forEach((node, at) => setText(node, values[at]));
    }

    describe(text) {
        this.canvas.setAttribute("aria-label", `${this.title}: ${text}. The values are in the table below.`);
    }

    table(head, rows) {
        if (!this.details.open) return;
        this.head.replaceChildren(row(head, true));
        this.body.replaceChildren(...rows.map((cells) => row(cells)));
    }
}

// ---- charts over time ----

class TimeChart {
    constructor(place, description) {
        this.description = description;
        this.card = new Card(place, description);
        this.card.keys(description.lines.map((each) => [each.label, each.color, each.dash]));
        this.points = [];
        this.details = this.card.details;
        this.details.addEventListener("toggle", () => this.#tabulate());
        this.chart = new Chart(this.card.canvas, {
            type: "line",
            data: this.#data(),
            options: this.#options(),
        });
    }

    #data() {
        return { datasets: this.description.lines.map((each, at) => this.#dataset(each, at)) };
    }

    #dataset(each, at) {
        const hex = color(each.color);
        return {
            label: each.label,
            data: [],
            yAxisID: each.beside ? "beside" : "y",
            borderColor: hex,
            backgroundColor: shade(hex),
            pointBackgroundColor: hex,
            borderDash: each.dash,
            borderWidth: 2,
            fill: each.fill ? (this.description.stacked && at > 0 ? "-1" : "origin") : false,
            pointRadius: 0,
            pointHoverRadius: 4,
            clip: 4,
        };
    }

    #options() {
        const { beside } = this.description;
        const scales = { x: timeAxis(), y: valueAxis(this.description, "left") };
        if (beside) scales.beside = valueAxis(beside, "right");
        return {
            animation: false,
            maintainAspectRatio: false,
            normalized: true,
            interaction: { mode: "index", intersect: false },
            font: FONT,
            scales,
            plugins: {
                legend: { display: false },
                tooltip: tooltip(
                    ([first]) => clock(first.raw.wall),
                    ({ datasetIndex, raw }) => `${this.description.lines[datasetIndex].label}: ${this.#words(datasetIndex, raw.y)}`),
            },
        };
    }

    #words(at, value) {
        const { lines, words } = this.description;
        return value == null ? "–" : (lines[at].words ?? words)(value);
    }

    paint() {
        this.chart.data = this.#data();
        this.chart.options = this.#options();
        this.draw(this.points, this.span);
    }

    draw(points, span = 60) {
        Object.assign(this, { points, span });
        const { lines, logarithmic } = this.description;
        const { datasets } = this.chart.data;
        lines.forEach((each, at) => {
            const data = points.map((point) => ({ x: point.x, y: each.value(point), wall: point.wall }));
            Object.assign(datasets[at], { data, pointRadius: radii(data) });
        });
        const { x, y } = this.chart.config.options.scales;
        Object.assign(x, { min: -span });
        x.ticks.stepSize = span / 4 > 60 ? 120 : span / 4;
        if (span === 300) x.ticks.stepSize = 60;
        if (logarithmic) [y.min, y.max] = decades(datasets);
        this.chart.update("none");
        const now = lines.map((each, at) => this.#words(at, points.length ? each.value(points.at(-1)) : null));
        this.card.show(now);
        this.card.describe(lines.map((each, at) => `${each.label} ${now[at]}`).join(", "));
        this.#tabulate();
    }

    #tabulate() {
        const { lines } = this.description;
        const rows = this.points.filter((point) => !point.gap).map((point) => [
            clock(point.wall),
            ...lines.map((each, at) => this.#words(at, each.value(point))),
        ]);
        this.card.table(["Time", ...lines.map((each) => each.label)], rows.reverse());
    }
}

// ---- charts of processes ----

class LoadChart {
    constructor(place) {
        this.card = new Card(place, { id: "loads", title: "Worker processes", about: "each, and their mean" });
        this.card.keys([["requests/s", "--teal"], ["CPU", "--amber"], ["processes"], ["fairness"]]);
        this.card.values[3].parentElement.title =
            "Jain’s index of their requests in the last seconds: 1 when all have the same, 1/n when one of n has all";
        this.loads = [];
        this.card.details.addEventListener("toggle", () => this.#tabulate());
        this.chart = new Chart(this.card.canvas, { type: "bar", data: this.#data([]), options: this.#options() });
    }

    #data(shown) {
        const bars = (axis, property, value) => ({
            xAxisID: axis,
            backgroundColor: color(property),
            maxBarThickness: 14,
            categoryPercentage: Math.min(0.8, 0.2 * shown.length), // a few bars stay together
            borderRadius: 3,
            data: shown.map(value),
        });
        return {
            labels: shown.map(({ pid }) => String(pid)),
            datasets: [bars("x", "--teal", ({ rate }) => rate), bars("cpu", "--amber", ({ cpu }) => cpu)],
        };
    }

    #options() {
        const axis = valueAxis({ words: figure, suggestedMax: 10 }, "bottom");
        const cpu = valueAxis({ words: percent, suggestedMax: 1 }, "top");
        axis.grid.drawOnChartArea = true;
        return {
            indexAxis: "y",
            animation: false,
            maintainAspectRatio: false,
            font: FONT,
            interaction: { mode: "index", axis: "y", intersect: false },
            scales: {
                x: axis,
                cpu,
                y: { grid: { display: false, drawBorder: false }, ticks: { color: color("--soft"), autoSkip: false } },
            },
            plugins: {
                legend: { display: false },
                tooltip: tooltip(
                    ([first]) => `process ${first.label}`,
                    ({ datasetIndex, raw }) => (datasetIndex ? `${percent(raw)} of a CPU` : `${figure(raw)} requests/s`)),
            },
        };
    }

    paint() {
        this.chart.options = this.#options();
        this.draw(this.loads, this.fair);
    }

    /** fair: whether all workers should have the same load */
    draw(loads, fair) {
        Object.assign(this, { loads, fair });
        const workers = loads.filter((load) => !load.master);
        const shown = workers.slice(0, PROCESSES_MAX).sort((a, b) => a.pid - b.pid);
        this.chart.data = this.#data(shown);
        this.chart.update("none");
        this.#say(workers, shown.length, fair);
        this.#tabulate();
    }

    #say(workers, shown, fair) {
        const mean = (name) => workers.reduce((sum, load) => sum + load[name], 0) / workers.length;
        const words = workers.length ? [figure(mean("rate")), percent(mean("cpu"))] : ["–", "–"];
        const index = fair && workers.length > 1 ? fairness(workers.map((load) => load.rate)) : null;
        words.push(count(workers.length), index === null ? "–" : index.toFixed(2));
        this.card.show(words);
        setText(this.card.note, workers.length > shown ? `the ${shown} busiest, and the mean` : "each, and their mean");
        this.card.describe(`mean of requests a second ${words[0]}, of CPU ${words[1]}, processes ${words[2]}, fairness ${words[3]}`);
    }

    #tabulate() {
        this.card.table(
            ["Process", "Threads", "Requests/s", "CPU"],
            this.loads.map((load) => [
                load.master ? `${load.pid} (master)` : String(load.pid),
                String(load.threads),
                figure(load.rate),
                percent(load.cpu),
            ]));
    }
}

/** All charts below `place`. */
export class Charts {
    constructor(place) {
        Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
        this.place = place;
        this.byId = {};
        for (const description of DESCRIPTIONS) {
            this.byId[description.id] = new TimeChart(place, description);
            if (description.id === "connections") this.byId.loads = new LoadChart(place);
        }
        this.#showQueue(false);
    }

    #showQueue(shown) {
        this.byId.queue.card.figure.hidden = !shown;
        this.place.classList.toggle("with-queue", shown);
    }

    draw(points, span, loads, stats) {
        this.#showQueue(stats.counters.queue_entered > 0);
        this.byId.loads.draw(loads, stats.configuration.serves !== "process"); // otherwise one process accepts for the others
        for (const { id } of DESCRIPTIONS) this.byId[id].draw(points, span);
    }

    /** Applies the colours again after a change of theme. */
    paint() {
        for (const each of Object.values(this.byId)) each.paint();
    }
}
