// SPDX-License-Identifier: MIT
//
// What tests of the statistics page ask inside of it.
({
    /** What a reader of the screen, or the keyboard, would stumble over. */
    audit() {
        const troubles = [];
        const textOf = (id) => document.getElementById(id)?.textContent ?? "";
        const hasOwnText = (node) => !node.matches("select, input, [role=region], section, [role=group]");
        const nameOf = (node) => [
            node.getAttribute("aria-label") ?? "",
            ...(node.getAttribute("aria-labelledby") ?? "").split(" ").map(textOf),
            ...[...(node.labels ?? [])].map((label) => label.textContent),
            hasOwnText(node) ? node.textContent : "",
        ].join("").trim();
        const all = (selector) => [...document.querySelectorAll(selector)];
        const find = (what, selector, wrong) => troubles.push(
            ...all(selector).filter(wrong).map((node) => `${what}: ${node.outerHTML.slice(0, 80)}`));

        find("no name", "a, button, select, input, summary, canvas, section, [role]", (node) =>
            !node.matches("[role=status]") && !nameOf(node));
        find("named after nothing", "[aria-labelledby]", (node) => !textOf(node.getAttribute("aria-labelledby")));
        find("an id twice", "[id]", (node) => all(`[id="${node.id}"]`).length > 1);
        find("a head of nothing", "th", (node) => !node.scope);
        find("scrolls, and no key can", ".scroll", (node) => node.tabIndex !== 0);
        const levels = all("h1, h2, h3, h4").map(({ tagName }) => Number(tagName[1]));
        if (levels[0] !== 1 || levels.filter((level) => level === 1).length !== 1) troubles.push("not one h1");
        if (levels.some((level, at) => level > (levels[at - 1] ?? 0) + 1)) troubles.push("a level is skipped");
        if (!document.documentElement.lang || !document.title) troubles.push("no language, or no title");
        for (const tag of ["header", "main", "footer"])
            if (all(`body > ${tag}`).length !== 1) troubles.push(`not one ${tag}`);
        return troubles;
    },

    /** Text that stands out less than WCAG 2.2 wants of ordinary text (1.4.3: 4.5 to 1). */
    pale() {
        const light = (color) => {
            const [r, g, b] = color.match(/[0-9.]+/g)
                .map((part) => part / 255)
                .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const behind = (node) => {
            if (!node) return "rgb(255, 255, 255)"; // paper
            const color = getComputedStyle(node).backgroundColor;
            return color === "rgba(0, 0, 0, 0)" ? behind(node.parentElement) : color;
        };
        const hasText = (node) => [...node.childNodes].some((each) => each.nodeType === 3 && each.data.trim());
        return [...document.querySelectorAll("body *")]
            .filter((node) => hasText(node) && node.checkVisibility())
            .map((node) => {
                const [a, b] = [getComputedStyle(node).color, behind(node)].map(light);
                return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), node.outerHTML.slice(0, 80)];
            })
            .filter(([ratio]) => ratio < 4.5)
            .map((found) => found.join(": "));
    },

    /** What has the focus: [tag, what it is, whether that can be seen]. */
    focused() {
        const node = document.activeElement;
        const style = getComputedStyle(node);
        const seen = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
        return [node.tagName, node.id || node.className || node.textContent.trim(), seen];
    },

    /** Has the page believe that nobody looks, or that somebody does. */
    hide(hidden) {
        Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
    },

    async words() {
        const f = await import("/figures.js");
        return [
            f.bytes(0), f.bytes(1023), f.bytes(1024), f.bytes(1536 * 1024), f.bytes(1048575),
            f.seconds(0), f.seconds(0.0000012), f.seconds(0.25), f.seconds(90), f.seconds(3725),
            f.span(59), f.span(3600), f.span(183845),
            f.count(1234567), f.figure(0.1234), f.figure(1234.5), f.percent(0.5),
        ];
    },

    async rates() {
        const f = await import("/figures.js");
        return [
            f.rate(10, 30, 2), f.rate(30, 10, 2), f.rate(10, 30, 0),
            f.fairness([5, 5, 5]), f.fairness([8, 0, 0, 0]), f.fairness([0, 0]),
        ];
    },

    /** [x, requests/s, 2xx/s] after servers have told of moments: [[process, now, [[at, total]...]]...] */
    async history(told) {
        const { History } = await import("/figures.js");
        const history = new History();
        const names = ["requests", "sent_bytes", "received_bytes", "connections_accepted", "cache_hits", "cache_misses"];
        for (const [pid, now, moments] of told) {
            history.add({
                pid,
                started_unix_seconds: pid,
                read_unix_seconds: now,
                read_monotonic_seconds: now,
                durations: { queue_wait: { count: 0, sum_seconds: 0 } },
                moments: moments.map(([at, total]) => ({
                    seconds_ago: now - at,
                    counters: Object.fromEntries(names.map((name) => [name, total])),
                    gauges: {},
                    latency: {},
                    "1xx": 0, "2xx": total, "3xx": 0, "4xx": 0, "5xx": 0,
                })),
            });
        }
        return history.points(600).map((point) => [point.x, point.requests ?? null, point.classes[1] ?? null]);
    },
})
