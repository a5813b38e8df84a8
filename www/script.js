/* SPDX-License-Identifier: MIT
 *
 * The moving parts of the demo site. Every page is whole without it: the weir
 * then shows one flow, the journey is a list, and the probes are curl lines.
 */
"use strict";

const stillness = window.matchMedia("(prefers-reduced-motion: reduce)");

/* The weir. Lengths in the drawing's units, 5 of them for a centimetre. */

const UNITS_PER_CM = 5;
const CREST = { x: 470, y: 230 };
const BRINK_X = CREST.x + 12;
const BED_Y = 402;
const POOL_Y = 345;
const STREAM_COUNT = 7;

const between = (a, b, share) => a + (b - a) * share;
const round = (value) => Math.round(value * 10) / 10;
const points = (list) => list.map(([x, y]) => `${round(x)},${round(y)}`).join(" ");

/* Height of the water over a 90° notch, in centimetres, for a flow in litres per
 * second: Q = 1.38 H^(5/2) in cubic metres per second and metres. */
function headOfFlow(flow) {
    return 100 * (flow / 1000 / 1.38) ** 0.4;
}

/* The path of one streamline behind the brink: 0 is the lowest, 1 the surface. It
 * is thrown off and falls, until it meets the pool. */
function fall(head, share) {
    const top = CREST.y - share * 0.8 * head;
    const slope = between(-0.3, 0.22, share);
    const reach = between(1.5, 2.4, share) * head;
    const drop = POOL_Y - top;
    const length = (reach * (Math.sqrt(slope * slope + (4 * drop) / reach) - slope)) / 2;
    const line = [];
    for (let i = 0; i <= 14; i++) {
        const x = (length * i) / 14;
        line.push([BRINK_X + x, top + slope * x + (x * x) / reach]);
    }
    return { line, slope, top };
}

function shapeOfUpstream(head) {
    const surface = CREST.y - head;
    const { top, slope } = fall(head, 1);
    const bend = 0.9 * head;
    const bending = [
        [BRINK_X - 1.5 * bend, surface],
        [BRINK_X - bend, top - slope * bend],
        [BRINK_X + 1, top], /* a hair beneath the falling water, so that no seam shows */
    ];
    return (
        `M0,${round(surface)} H${round(BRINK_X - 3 * bend)} C${points(bending)} ` +
        `V${CREST.y} H${CREST.x} V${BED_Y} H0 Z`
    );
}

function shapeOfNappe(head) {
    const upper = fall(head, 1).line;
    const lower = fall(head, 0).line.reverse();
    return `M${points(upper)} L${points(lower)} Z`;
}

function shapeOfStream(head, share) {
    const start = between(BED_Y - 12, CREST.y - head, share);
    const { line, slope, top } = fall(head, share);
    const bend = 50 + 0.5 * head;
    const [brink, ...falling] = line;
    const [hitX] = falling.at(-1);
    const end = between(POOL_Y + 55, POOL_Y + 12, share);
    return (
        `M-40,${round(start)} H${round(CREST.x - 230)} ` +
        `C${points([[CREST.x - 110, start], [BRINK_X - bend, top - slope * bend], brink])} ` +
        `L${points(falling)} S${points([[hitX + 40, end], [hitX + 150, end]])} H1000`
    );
}

/* Seen from downstream: the water narrows as it falls. */
function shapeOfJet(head) {
    const wide = 0.8 * head;
    const thin = 0.3 * head;
    const left = [
        [200 - 0.5 * head, CREST.y - 0.3 * head],
        [200 - thin, CREST.y],
        [200 - thin, POOL_Y + 6],
    ];
    const right = [
        [200 + thin, CREST.y],
        [200 + 0.5 * head, CREST.y - 0.3 * head],
        [200 + wide, CREST.y - wide],
    ];
    return (
        `M${points([[200 - wide, CREST.y - wide]])} C${points(left)} ` +
        `H${round(200 + thin)} C${points(right)} Z`
    );
}

function shapeOfThread(head, share) {
    const side = between(-1, 1, share);
    const way = [
        [200 + side * 0.42 * head, CREST.y - 0.3 * head],
        [200 + side * 0.26 * head, CREST.y],
        [200 + side * 0.26 * head, POOL_Y + 6],
    ];
    return `M${points([[200 + side * 0.72 * head, CREST.y - 0.8 * head + 4]])} C${points(way)}`;
}

/* All paths for a head in drawing units, by the `data-part` they belong to. */
function shapesOfWeir(head) {
    const shapes = {
        upstream: shapeOfUpstream(head),
        nappe: shapeOfNappe(head),
        notch: `M200,${CREST.y} L${points([[200 - head, CREST.y - head]])} H${round(200 + head)} Z`,
        jet: shapeOfJet(head),
        level: `M246,${round(CREST.y - head)} H318`,
        "front-level": `M${round(200 - head - 14)},${round(CREST.y - head)} H${round(200 + head + 14)}`,
    };
    for (let i = 0; i < STREAM_COUNT; i++) {
        shapes[`stream-${i}`] = shapeOfStream(head, (i + 0.7) / (STREAM_COUNT + 0.4));
        shapes[`thread-${i}`] = shapeOfThread(head, (i + 0.5) / STREAM_COUNT);
    }
    return shapes;
}

function startWeir(figure) {
    const slider = figure.querySelector("input");
    const flowText = figure.querySelector("[data-flow]");
    const headText = figure.querySelector("[data-head]");
    const levelText = figure.querySelector("[data-part=level-text]");
    const foam = figure.querySelector("[data-part=foam]");
    const parts = new Map();
    for (const path of figure.querySelectorAll("path[data-part]"))
        parts.set(path.dataset.part, path);

    let shown = headOfFlow(Number(slider.value));
    let frame = 0;

    function draw() {
        const head = shown * UNITS_PER_CM;
        for (const [part, shape] of Object.entries(shapesOfWeir(head)))
            parts.get(part)?.setAttribute("d", shape);
        const [hitX] = fall(head, 0.6).line.at(-1);
        foam.setAttribute("transform", `translate(${round(hitX)} ${POOL_Y})`);
        levelText.setAttribute("y", round(CREST.y - head - 12));
        levelText.textContent = `H = ${shown.toFixed(1)} cm`;
    }

    function step() {
        const wanted = headOfFlow(Number(slider.value));
        const close = Math.abs(wanted - shown) < 0.02;
        shown = close || stillness.matches ? wanted : between(shown, wanted, 0.16);
        draw();
        frame = shown === wanted ? 0 : requestAnimationFrame(step);
    }

    function read() {
        const flow = Number(slider.value);
        const head = headOfFlow(flow);
        flowText.textContent = String(flow);
        headText.textContent = head.toFixed(1);
        slider.setAttribute("aria-valuetext", `${flow} litres per second, ${head.toFixed(1)} cm high`);
        for (const animation of figure.getAnimations({ subtree: true }))
            if (animation.animationName === "flow")
                animation.updatePlaybackRate(0.5 + flow / 25);
        if (frame === 0)
            frame = requestAnimationFrame(step);
    }

    slider.addEventListener("input", read);
    figure.querySelector(".weir-controls").hidden = false;
    read();

    /* Nothing moves that nobody sees. */
    new IntersectionObserver(([entry]) => {
        figure.classList.toggle("still", !entry.isIntersecting);
    }).observe(figure);
}

/* The way of a request: one step at a time, chosen on the map or by the buttons. */

function startJourney(journey) {
    const list = journey.querySelector(".steps");
    const steps = [...list.children];
    const stops = [...journey.querySelectorAll(".map a")];
    const walk = journey.querySelector(".walk");
    const [back, forth] = walk.querySelectorAll("button");
    const place = walk.querySelector("[data-place]");
    let current = -1;

    function show(index) {
        if (index < 0 || index >= steps.length || index === current)
            return;
        current = index;
        steps.forEach((step, i) => step.classList.toggle("shown", i === index));
        stops.forEach((stop, i) => {
            if (i === index)
                stop.setAttribute("aria-current", "step");
            else
                stop.removeAttribute("aria-current");
        });
        const lit = steps[index].dataset.rooms.split(" ");
        for (const room of journey.querySelectorAll("[data-room]"))
            room.classList.toggle("here", lit.includes(room.dataset.room));
        back.disabled = index === 0;
        forth.disabled = index === steps.length - 1;
        place.textContent = `Step ${index + 1} of ${steps.length}`;
    }

    function showHash() {
        const index = steps.findIndex((step) => `#${step.id}` === window.location.hash);
        show(index < 0 ? 0 : index);
    }

    function go(index) {
        if (index < 0 || index >= steps.length)
            return;
        show(index);
        history.replaceState(null, "", `#${steps[index].id}`);
    }

    stops.forEach((stop, index) => {
        stop.addEventListener("mouseenter", () => show(index));
        stop.addEventListener("focus", () => show(index));
        stop.addEventListener("click", (event) => {
            event.preventDefault();
            go(index);
        });
    });
    back.addEventListener("click", () => go(current - 1));
    forth.addEventListener("click", () => go(current + 1));
    journey.addEventListener("keydown", (event) => {
        const move = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        const onStop = stops.includes(document.activeElement);
        if (move === undefined || !(onStop || walk.contains(document.activeElement)))
            return;
        event.preventDefault();
        go(current + move);
        if (onStop)
            stops[current].focus();
    });
    window.addEventListener("hashchange", showHash);

    list.classList.add("stepping");
    walk.hidden = false;
    showHash();
}

/* Probes: real requests to the server that sent this page. */

const FILE = "/small.html";
const probes = {
    get: { path: FILE },
    head: { path: FILE, method: "HEAD" },
    range: { path: FILE, headers: { Range: "bytes=0-99" } },
    ranges: { path: FILE, headers: { Range: "bytes=0-14, 150-169, -8" } },
    behind: { path: FILE, headers: { Range: "bytes=1000-" } },
    again: { path: FILE, headers: {}, withTag: true },
    mismatch: { path: FILE, headers: { "If-Match": '"another"' } },
    listing: { path: "/files/", headers: { Accept: "application/json" } },
    absent: { path: "/no/such/page" },
    remove: { path: FILE, method: "DELETE" },
};
const BODY_SHOWN = 700;

async function probe({ path, method = "GET", headers = {}, withTag = false }) {
    const sent = { ...headers };
    if (withTag) {
        const first = await fetch(path, { method: "HEAD", cache: "no-store" });
        const tag = first.headers.get("ETag");
        const modified = first.headers.get("Last-Modified");
        if (tag !== null)
            sent["If-None-Match"] = tag;
        else if (modified !== null)
            sent["If-Modified-Since"] = modified;
    }
    const began = performance.now();
    const response = await fetch(path, { method, headers: sent, cache: "no-store" });
    const body = await response.text();
    const tookMs = performance.now() - began;

    const asked = [`${method} ${path} HTTP/1.1`, `Host: ${window.location.host}`];
    for (const [name, value] of Object.entries(sent))
        asked.push(`${name}: ${value}`);
    const answered = [`HTTP/1.1 ${response.status} ${response.statusText}`];
    for (const [name, value] of response.headers)
        answered.push(`${name}: ${value}`);
    const cut = body.length > BODY_SHOWN ? `${body.slice(0, BODY_SHOWN)}…` : body;
    return {
        request: asked.join("\n"),
        response: `${answered.join("\n")}\n\n${cut}`.trimEnd(),
        tookMs,
    };
}

function startProbes(panel) {
    const request = panel.querySelector("[data-request]");
    const response = panel.querySelector("[data-response]");
    const took = panel.querySelector("[data-took]");
    const buttons = [...panel.querySelectorAll("button[data-probe]")];
    let latest = 0;

    async function run(button) {
        const ticket = ++latest;
        for (const other of buttons)
            other.setAttribute("aria-pressed", String(other === button));
        try {
            const result = await probe(probes[button.dataset.probe]);
            if (ticket !== latest)
                return;
            request.textContent = result.request;
            response.textContent = result.response;
            took.textContent = `Answered in ${result.tookMs.toFixed(1)} ms, browser included.`;
        } catch {
            if (ticket === latest)
                took.textContent = "No answer: has the server stopped?";
        }
    }

    for (const button of buttons)
        button.addEventListener("click", () => run(button));
    panel.hidden = false;
    run(buttons[0]);
}

if (typeof document !== "undefined") {
    document.querySelectorAll("[data-weir]").forEach(startWeir);
    document.querySelectorAll("[data-journey]").forEach(startJourney);
    document.querySelectorAll("[data-probes]").forEach(startProbes);
}
