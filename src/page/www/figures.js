// SPDX-License-Identifier: MIT
//
// What the page computes: rates from totals, and texts from numbers. Nothing here uses a document or
// a clock, so that it can be tested without a browser.

export const SPAN_MAX_S = 600;
const GAP_MAX_S = 5; // between two seconds of a rate

// ---- words ----

const whole = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 4 });
const three = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const hundredths = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });
const clockFormat = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
const dateFormat = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });

export const exact = (number) => whole.format(number);

export const count = (number) => (number < 1e9 ? whole.format(Math.round(number)) : short.format(number));

/** A rate, or another number with a fraction. */
export const figure = (number) => (number < 100 ? three.format(number) : count(number));

function scaled(number, units, base) {
    let at = 0;
    while (at + 1 < units.length && Math.abs(number) >= base * 0.9995) {
        number /= base;
        at++;
    }
    return `${number < 1000 ? three.format(number) : count(number)}\u00a0${units[at]}`;
}

export const bytes = (number) => scaled(number, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"], 1024);

export function seconds(number) {
    if (number === 0) return "0\u00a0s";
    if (number < 1) return scaled(number * 1e6, ["µs", "ms", "s"], 1000);
    return number < 120 ? `${three.format(number)}\u00a0s` : span(number);
}

export const percent = (part) => `${(part < 0.01 ? hundredths : three).format(part * 100)}\u00a0%`;

/** A long time: "2 d 4 h", "3 min 12 s". */
export function span(number) {
    const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
    const first = units.findIndex(([, each]) => number >= each);
    if (first < 0) return "0\u00a0s";
    return units
        .slice(first, first + 2)
        .map(([unit, each], at) => [Math.floor((at ? number % units[first][1] : number) / each), unit])
        .filter(([value], at) => at === 0 || value > 0)
        .map((pair) => pair.join("\u00a0"))
        .join(" ");
}

export const clock = (unixSeconds) => clockFormat.format(unixSeconds * 1000);

export const date = (unixSeconds) => dateFormat.format(unixSeconds * 1000);

/** A value in its unit of counters.def. */
export const inUnit = (value, unit) => (unit === "bytes" ? bytes(value) : count(value));

// ---- rates ----

/** Identifies the process that counts. Another process starts from 0. */
export const epoch = (stats) => `${stats.pid} ${stats.started_unix_seconds}`;

/** Total of the answers whose status begins with `digit`. */
export function ofClass(stats, digit) {
    return Object.entries(stats.answers_by_status)
        .filter(([code]) => code.startsWith(String(digit)))
        .reduce((sum, [, answers]) => sum + answers, 0);
}

/** The increase per second; null when counting restarted in between. */
export function rate(before, after, elapsed) {
    return elapsed > 0 && after >= before ? (after - before) / elapsed : null;
}

/** The increase per second of each counter, from one state of the server to a later one. */
export function rates(before, after) {
    const elapsed = before && epoch(before) === epoch(after) ? timeOf(after) - timeOf(before) : 0;
    const names = Object.keys(after.counters);
    return Object.fromEntries(
        names.map((name) => [name, rate(before?.counters[name] ?? 0, after.counters[name], elapsed)]));
}

/** What each process has done since it first appeared in an earlier state, the busiest first. */
export function loads(before, after) {
    const first = new Map();
    for (const stats of before.filter((each) => epoch(each) === epoch(after))) {
        for (const then of stats.processes ?? []) {
            if (!first.has(then.pid)) first.set(then.pid, { ...then, at: timeOf(stats) });
        }
    }
    return (after.processes ?? [])
        .filter(({ pid }) => first.has(pid))
        .map((now) => {
            const then = first.get(now.pid);
            const elapsed = timeOf(after) - then.at;
            return {
                ...now,
                rate: rate(then.requests, now.requests, elapsed) ?? 0,
                cpu: rate(then.cpu_seconds, now.cpu_seconds, elapsed) ?? 0,
            };
        })
        .sort((a, b) => b.rate - a.rate || b.cpu - a.cpu || a.pid - b.pid);
}

/** Jain's index: 1 when all values are equal, 1/n when one has everything; null when all are 0. */
export function fairness(shares) {
    const sum = shares.reduce((total, share) => total + share, 0);
    const squares = shares.reduce((total, share) => total + share * share, 0);
    return squares > 0 ? (sum * sum) / (shares.length * squares) : null;
}

/** CPU seconds per second, of all processes. */
export function cpuShare(before, after) {
    if (!before?.machine || !after.machine || epoch(before) !== epoch(after)) return null;
    return rate(cpuOf(before), cpuOf(after), timeOf(after) - timeOf(before));
}

export const cpuOf = (stats) => stats.machine.cpu_user_seconds + stats.machine.cpu_system_seconds;

/** On the server's monotonic clock. */
const timeOf = (stats) => stats.read_monotonic_seconds;

// ---- the last minutes ----

function momentOf(moment, stats) {
    const { counters, gauges } = moment;
    return {
        at: timeOf(stats) - moment.seconds_ago,
        wall: stats.read_unix_seconds - moment.seconds_ago,
        epoch: epoch(stats),
        counters,
        gauges,
        classes: [1, 2, 3, 4, 5].map((digit) => moment[`${digit}xx`]),
        latency: moment.latency,
        wait: null,
    };
}

/** The mean wait of the connections that left the queue in between. */
export function meanWait(before, after) {
    if (!before || epoch(before) !== epoch(after)) return null;
    const [then, now] = [before, after].map((stats) => stats.durations.queue_wait);
    return now.count > then.count ? (now.sum_seconds - then.sum_seconds) / (now.count - then.count) : null;
}

/** The seconds that servers have reported, each once, as far back as the charts reach. */
export class History {
    moments = [];
    #latest = null;

    add(stats) {
        const told = (stats.moments ?? []).map((moment) => momentOf(moment, stats));
        const last = this.moments.at(-1);
        if (last && told.length && told.at(-1).at < last.at) this.moments = []; // another machine's
        const since = this.moments.at(-1)?.at ?? -Infinity;
        const fresh = told.filter((moment) => moment.at > since + 0.001);
        this.moments.push(...fresh);
        if (fresh.length) fresh.at(-1).wait = meanWait(this.#latest, stats);
        const newest = this.moments.at(-1)?.at ?? 0;
        this.moments = this.moments.filter((moment) => newest - moment.at <= SPAN_MAX_S + 1);
        this.#latest = stats;
    }

    /** One point for each of the last `span` seconds, the oldest first, and one for each gap. */
    points(span) {
        const newest = this.moments.at(-1)?.at ?? 0;
        return this.moments
            .flatMap((moment, at) => {
                const before = this.moments[at - 1];
                const point = pointOf(before, moment, newest);
                return before && moment.at - before.at > GAP_MAX_S ? [gapBefore(point), point] : [point];
            })
            .filter((point) => point.x >= -span);
    }
}

/** A gap: the line is interrupted. */
function gapBefore({ x, wall }) {
    return { x, wall, gap: true, classes: [] };
}

const orNull = (number) => (number > 0 ? number : null);

/** The point of a second, given the second before; null where a value is unknown. */
export function pointOf(before, moment, newest) {
    const { counters, gauges, latency } = moment;
    const elapsed = before ? moment.at - before.at : 0;
    const follows = before?.epoch === moment.epoch && elapsed <= GAP_MAX_S;
    const each = (name) => (follows ? rate(before.counters[name], counters[name], elapsed) : null);
    const hits = each("cache_hits");
    const lookups = hits + each("cache_misses");
    return {
        x: moment.at - newest,
        wall: moment.wall,
        requests: each("requests"),
        sent: each("sent_bytes"),
        received: each("received_bytes"),
        accepted: each("connections_accepted"),
        classes: moment.classes.map((total, at) => (follows ? rate(before.classes[at], total, elapsed) : null)),
        open: gauges.connections_open,
        active: gauges.connections_active,
        hitRatio: lookups > 0 ? hits / lookups : null,
        cacheBytes: gauges.cache_bytes,
        queue: gauges.queue_length,
        wait: moment.wait,
        p50: orNull(latency.p50_seconds),
        p90: orNull(latency.p90_seconds),
        p99: orNull(latency.p99_seconds),
        p999: orNull(latency.p999_seconds),
    };
}
